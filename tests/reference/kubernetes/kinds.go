package main

import (
	"encoding/base64"
	"math/rand"
)

func kinds() []kind {
	return []kind{
		{apiVersion: "v1", name: "ConfigMap", plural: "configmaps", strategic: true, weight: 10, make: configMap},
		{apiVersion: "v1", name: "Secret", plural: "secrets", strategic: true, weight: 6, make: secret},
		{apiVersion: "v1", name: "Service", plural: "services", strategic: true, weight: 10, make: service},
		{apiVersion: "v1", name: "ServiceAccount", plural: "serviceaccounts", strategic: true, weight: 3, make: account},
		{apiVersion: "v1", name: "Pod", plural: "pods", status: true, strategic: true, weight: 8, make: pod},
		{apiVersion: "v1", name: "PersistentVolumeClaim", plural: "persistentvolumeclaims", status: true, strategic: true, weight: 4, make: claim},
		{apiVersion: "apps/v1", name: "Deployment", plural: "deployments", status: true, scale: true, strategic: true, weight: 14, make: deployment},
		{apiVersion: "apps/v1", name: "StatefulSet", plural: "statefulsets", status: true, scale: true, strategic: true, weight: 6, make: statefulSet},
		{apiVersion: "batch/v1", name: "Job", plural: "jobs", status: true, strategic: true, weight: 5, make: job},
		{apiVersion: "batch/v1", name: "CronJob", plural: "cronjobs", status: true, strategic: true, weight: 4, make: cronJob},
		{apiVersion: "rbac.authorization.k8s.io/v1", name: "Role", plural: "roles", strategic: true, weight: 5, make: role},
		{apiVersion: "rbac.authorization.k8s.io/v1", name: "RoleBinding", plural: "rolebindings", strategic: true, weight: 4, make: binding},
		{apiVersion: "coordination.k8s.io/v1", name: "Lease", plural: "leases", strategic: true, weight: 4, make: lease},
		{apiVersion: "networking.k8s.io/v1", name: "Ingress", plural: "ingresses", status: true, strategic: true, weight: 6, make: ingress},
		{apiVersion: "policy/v1", name: "PodDisruptionBudget", plural: "poddisruptionbudgets", status: true, strategic: true, weight: 3, make: budget},
		{apiVersion: "autoscaling/v2", name: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers", status: true, strategic: true, weight: 3, make: autoscaler},
		{apiVersion: "compare.example.com/v1", name: "Widget", plural: "widgets", status: true, scale: true, weight: 25, make: widget},
	}
}

// odd is one of the usual values, and now and then one that is refused or rare: what is refused leaves nothing to
// change later.
func odd(random *rand.Rand, usual []any, rare ...any) any {
	if random.Intn(20) == 0 {
		return rare[random.Intn(len(rare))]
	}
	return usual[random.Intn(len(usual))]
}

func maybe(random *rand.Rand, one int, into object, name string, value any) {
	if random.Intn(one) == 0 {
		into[name] = value
	}
}

func configMap(random *rand.Rand) object {
	data := object{}
	for _, key := range []string{"a", "b", "c.txt"} {
		maybe(random, 2, data, key, pick(random, "1", "two", "", "line\nline"))
	}
	made := object{"data": data}
	maybe(random, 5, made, "binaryData", object{"bin": base64.StdEncoding.EncodeToString([]byte{0, 1, byte(random.Intn(9))})})
	maybe(random, 12, made, "immutable", random.Intn(2) == 0)
	maybe(random, 20, data, "bad/key", "v")
	return made
}

func secret(random *rand.Rand) object {
	made := object{"data": object{"k": base64.StdEncoding.EncodeToString([]byte(pick(random, "v", "w", "")))}}
	maybe(random, 2, made, "type", odd(random, []any{"Opaque", "custom"}, "kubernetes.io/tls", "kubernetes.io/basic-auth", "kubernetes.io/dockerconfigjson", "kubernetes.io/ssh-auth", "kubernetes.io/service-account-token"))
	maybe(random, 3, made, "stringData", object{"s": pick(random, "x", "y")})
	maybe(random, 12, made, "immutable", true)
	maybe(random, 30, made, "data", object{"k": "not base64!"})
	return made
}

func account(random *rand.Rand) object {
	made := object{}
	maybe(random, 3, made, "automountServiceAccountToken", random.Intn(2) == 0)
	maybe(random, 3, made, "imagePullSecrets", []any{object{"name": pick(random, "r1", "r2")}})
	maybe(random, 4, made, "secrets", []any{object{"name": pick(random, "s1", "s2")}, object{"name": "s3"}})
	return made
}

func ports(random *rand.Rand) []any {
	var out []any
	for at := range 1 + random.Intn(3) {
		port := object{"port": odd(random, []any{80, 443, 8080}, 70000, 0)}
		port["name"] = pick(random, "http", "https", "metrics")
		if at > 0 || random.Intn(4) == 0 {
			port["name"] = odd(random, []any{"http", "https", "metrics", "dns", "grpc"}, "UPPER", "")
		}
		maybe(random, 2, port, "targetPort", odd(random, []any{8080, "web", "http"}, 0, "-bad-", 70000, "way-too-long-a-name"))
		maybe(random, 3, port, "protocol", odd(random, []any{"TCP", "UDP", "SCTP"}, "HTTP"))
		out = append(out, port)
	}
	return out
}

func service(random *rand.Rand) object {
	spec := object{"ports": ports(random)}
	maybe(random, 2, spec, "selector", object{"app": pick(random, "a", "b")})
	maybe(random, 3, spec, "type", odd(random, []any{"ClusterIP", "NodePort", "LoadBalancer"}, "ExternalName", "Other"))
	maybe(random, 8, spec, "clusterIP", odd(random, []any{"None", ""}, "10.0.0.300"))
	maybe(random, 8, spec, "externalName", "example.com")
	maybe(random, 6, spec, "sessionAffinity", odd(random, []any{"None", "ClientIP"}, "Sticky"))
	maybe(random, 8, spec, "externalTrafficPolicy", pick(random, "Local", "Cluster"))
	maybe(random, 10, spec, "publishNotReadyAddresses", true)
	return object{"spec": spec}
}

func container(random *rand.Rand, name string) object {
	made := object{"name": name, "image": pick(random, "nginx:1", "nginx:2", "busybox")}
	maybe(random, 3, made, "command", []any{"sh", "-c", "true"})
	maybe(random, 3, made, "env", []any{object{"name": "A", "value": pick(random, "1", "2")}, object{"name": pick(random, "B", "A"), "value": "b"}})
	maybe(random, 3, made, "ports", []any{object{"containerPort": odd(random, []any{80, 90}, 0, 70000), "name": "web"}})
	maybe(random, 4, made, "resources", object{"limits": object{"cpu": odd(random, []any{"1", "100m", "0.5"}, "x", "10m")}, "requests": object{"memory": odd(random, []any{"64Mi", "1G", "1536Mi"}, "-1", "0.1"), "cpu": "50m"}})
	maybe(random, 5, made, "volumeMounts", []any{object{"name": odd(random, []any{"v"}, "w"), "mountPath": odd(random, []any{"/v", "/w"}, "")}})
	maybe(random, 5, made, "imagePullPolicy", odd(random, []any{"Always", "IfNotPresent", "Never"}, "Sometimes"))
	maybe(random, 6, made, "livenessProbe", object{"httpGet": object{"path": "/", "port": odd(random, []any{80, "web"}, 0)}, "periodSeconds": odd(random, []any{0, 1, 5, 10}, -1)})
	maybe(random, 8, made, "readinessProbe", object{"exec": object{"command": []any{"true"}}})
	maybe(random, 8, made, "securityContext", object{"runAsNonRoot": true, "privileged": odd(random, []any{false}, true), "allowPrivilegeEscalation": odd(random, []any{true}, false)})
	maybe(random, 60, made, "image", "")
	return made
}

func podSpec(random *rand.Rand, restart ...string) object {
	containers := []any{container(random, "main")}
	if random.Intn(3) == 0 {
		containers = append(containers, container(random, odd(random, []any{"side"}, "main").(string)))
	}
	spec := object{"containers": containers}
	maybe(random, 4, spec, "volumes", []any{object{"name": "v", "emptyDir": object{}}, object{"name": odd(random, []any{"w"}, "v"), "configMap": object{"name": "cm"}}})
	maybe(random, 5, spec, "initContainers", []any{container(random, "init")})
	maybe(random, 4, spec, "terminationGracePeriodSeconds", odd(random, []any{0, 5, 30, 60}, -1))
	maybe(random, 6, spec, "nodeSelector", object{"disk": "ssd"})
	maybe(random, 6, spec, "tolerations", []any{object{"key": "k", "operator": odd(random, []any{"Exists", "Equal"}, "Near"), "effect": "NoSchedule"}})
	maybe(random, 8, spec, "serviceAccountName", "default")
	maybe(random, 8, spec, "hostNetwork", random.Intn(2) == 0)
	maybe(random, 8, spec, "securityContext", object{"runAsUser": odd(random, []any{0, 1000}, -1), "fsGroup": 1})
	maybe(random, 8, spec, "affinity", object{"podAntiAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": []any{object{"weight": odd(random, []any{1, 50, 100}, 0, 119), "podAffinityTerm": object{"topologyKey": "zone", "labelSelector": object{"matchLabels": object{"app": "a"}}}}}}})
	if len(restart) > 0 {
		spec["restartPolicy"] = pick(random, restart...)
	} else {
		maybe(random, 6, spec, "restartPolicy", odd(random, []any{"Always"}, "Never", "Whenever").(string))
	}
	return spec
}

func pod(random *rand.Rand) object {
	return object{"spec": podSpec(random)}
}

func template(random *rand.Rand, restart ...string) object {
	return object{"metadata": object{"labels": object{"app": odd(random, []any{"a"}, "b")}}, "spec": podSpec(random, restart...)}
}

func deployment(random *rand.Rand) object {
	spec := object{"selector": object{"matchLabels": object{"app": "a"}}, "template": template(random)}
	maybe(random, 2, spec, "replicas", odd(random, []any{0, 1, 2, 3}, -1))
	maybe(random, 3, spec, "strategy", []any{
		object{"type": "Recreate"}, object{"type": "RollingUpdate"},
		object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": odd(random, []any{1, "25%", 2}, 0, "x"), "maxUnavailable": []any{0, "10%", 1}[random.Intn(3)]}},
		odd(random, []any{object{"type": "Recreate"}}, object{"type": "Recreate", "rollingUpdate": object{"maxSurge": 1}}, object{"type": "Other"})}[random.Intn(4)])
	maybe(random, 5, spec, "minReadySeconds", odd(random, []any{0, 5}, -1))
	maybe(random, 5, spec, "revisionHistoryLimit", odd(random, []any{0, 2, 10}, -1))
	maybe(random, 8, spec, "paused", true)
	maybe(random, 8, spec, "progressDeadlineSeconds", odd(random, []any{10, 600}, 0, 3))
	return object{"spec": spec}
}

func statefulSet(random *rand.Rand) object {
	spec := object{"selector": object{"matchLabels": object{"app": "a"}}, "template": template(random), "serviceName": pick(random, "svc", "svc", "other")}
	maybe(random, 2, spec, "replicas", odd(random, []any{0, 1, 3}, -1))
	maybe(random, 4, spec, "podManagementPolicy", odd(random, []any{"OrderedReady", "Parallel"}, "Chaos"))
	maybe(random, 4, spec, "updateStrategy", []any{object{"type": "OnDelete"}, object{"type": "RollingUpdate", "rollingUpdate": object{"partition": odd(random, []any{0, 2}, -1)}}}[random.Intn(2)])
	maybe(random, 4, spec, "volumeClaimTemplates", []any{object{"metadata": object{"name": "data"}, "spec": claim(random)["spec"]}})
	return object{"spec": spec}
}

func job(random *rand.Rand) object {
	spec := object{"template": object{"spec": podSpec(random, "Never", "OnFailure", "Never", "OnFailure", "Never", "OnFailure", "Never", "Always")}}
	maybe(random, 3, spec, "completions", odd(random, []any{1, 2}, -1, 0))
	maybe(random, 3, spec, "parallelism", odd(random, []any{0, 1, 2}, -1))
	maybe(random, 3, spec, "backoffLimit", odd(random, []any{0, 3}, -1))
	maybe(random, 6, spec, "ttlSecondsAfterFinished", odd(random, []any{0, 30}, -1))
	maybe(random, 6, spec, "suspend", random.Intn(2) == 0)
	maybe(random, 8, spec, "completionMode", odd(random, []any{"Indexed", "NonIndexed"}, "Other"))
	return object{"spec": spec}
}

func cronJob(random *rand.Rand) object {
	spec := object{"schedule": odd(random, []any{"* * * * *", "*/5 0 1 * *", "@daily", "0 9-17/2 * JAN,FEB MON-FRI"}, "bad", "61 * * * *", "TZ=UTC 0 0 * * *", "@every 1h", ""), "jobTemplate": object{"spec": job(random)["spec"]}}
	maybe(random, 4, spec, "concurrencyPolicy", odd(random, []any{"Allow", "Forbid", "Replace"}, "Maybe"))
	maybe(random, 4, spec, "suspend", true)
	maybe(random, 6, spec, "timeZone", odd(random, []any{"Europe/Berlin", "UTC"}, "Nowhere/City", "Local"))
	maybe(random, 6, spec, "successfulJobsHistoryLimit", odd(random, []any{0, 3}, -1))
	return object{"spec": spec}
}

func claim(random *rand.Rand) object {
	spec := object{"accessModes": []any{odd(random, []any{"ReadWriteOnce", "ReadWriteMany"}, "Sometimes")}, "resources": object{"requests": object{"storage": odd(random, []any{"1Gi", "2Gi"}, "0", "x")}}}
	maybe(random, 3, spec, "storageClassName", pick(random, "fast", "slow", ""))
	maybe(random, 5, spec, "volumeMode", odd(random, []any{"Filesystem", "Block"}, "Other"))
	return object{"spec": spec}
}

func role(random *rand.Rand) object {
	rule := object{"verbs": []any{"get", pick(random, "list", "watch")}, "apiGroups": []any{pick(random, "", "apps")}, "resources": []any{pick(random, "pods", "deployments")}}
	maybe(random, 6, rule, "resourceNames", []any{"x"})
	maybe(random, 30, rule, "verbs", []any{})
	maybe(random, 30, rule, "nonResourceURLs", []any{"/healthz"})
	return object{"rules": []any{rule}}
}

func binding(random *rand.Rand) object {
	made := object{"roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": odd(random, []any{"Role", "ClusterRole"}, "Other"), "name": pick(random, "r", "r", "s")}}
	subject := object{"kind": odd(random, []any{"User", "Group"}, "Robot"), "name": odd(random, []any{"n"}, "", "N!")}
	if random.Intn(2) == 0 {
		subject["kind"] = "ServiceAccount"
		subject["namespace"] = odd(random, []any{"default"}, "")
	} else {
		maybe(random, 20, subject, "namespace", "default")
	}
	maybe(random, 12, subject, "apiGroup", pick(random, "rbac.authorization.k8s.io", "", "other"))
	made["subjects"] = []any{subject}
	return made
}

func lease(random *rand.Rand) object {
	spec := object{}
	maybe(random, 2, spec, "holderIdentity", odd(random, []any{"me", "you"}, ""))
	maybe(random, 2, spec, "leaseDurationSeconds", odd(random, []any{15, 30}, 0, -1))
	maybe(random, 3, spec, "leaseTransitions", odd(random, []any{0, 1, 2}, -1))
	maybe(random, 4, spec, "renewTime", odd(random, []any{"2024-01-01T00:00:00.000000Z", "2024-01-01T00:00:00.123456Z"}, "2024-01-01T00:00:00Z", "yesterday"))
	return object{"spec": spec}
}

func ingress(random *rand.Rand) object {
	backend := object{"service": object{"name": odd(random, []any{"web", "api"}, "Web!", ""), "port": odd(random, []any{object{"number": 80}, object{"name": "http"}}, object{"number": 80, "name": "http"}, object{}, object{"number": 70000}, object{"name": "NOT ok"})}}
	path := object{"path": odd(random, []any{"/", "/a"}, "a", "/b//c", "/a/../b", "/a/.", "/%2f", ""), "backend": backend}
	maybe(random, 1, path, "pathType", odd(random, []any{"Prefix", "Exact", "ImplementationSpecific"}, "Fuzzy"))
	rule := object{"http": object{"paths": []any{path}}}
	maybe(random, 2, rule, "host", odd(random, []any{"a.example.com", "*.example.com"}, "BAD HOST", "1.2.3.4", "*.*.com"))
	spec := object{"rules": []any{rule}}
	maybe(random, 3, spec, "ingressClassName", odd(random, []any{"nginx"}, "Bad_Class"))
	maybe(random, 4, spec, "tls", []any{object{"hosts": []any{odd(random, []any{"a.example.com"}, "b b", "*.b")}, "secretName": "tls"}})
	maybe(random, 6, spec, "defaultBackend", backend)
	return object{"spec": spec}
}

func budget(random *rand.Rand) object {
	spec := object{"selector": object{"matchLabels": object{"app": "a"}}}
	maybe(random, 2, spec, "minAvailable", odd(random, []any{1, "50%"}, "x", -1, "150%", "5"))
	maybe(random, 3, spec, "unhealthyPodEvictionPolicy", odd(random, []any{"IfHealthyBudget", "AlwaysAllow"}, "Never"))
	if spec["minAvailable"] == nil || random.Intn(12) == 0 {
		maybe(random, 2, spec, "maxUnavailable", odd(random, []any{1, "50%"}, "120%", -1))
	}
	return object{"spec": spec}
}

func autoscaler(random *rand.Rand) object {
	spec := object{"maxReplicas": odd(random, []any{5, 8}, 0, 1), "scaleTargetRef": object{"apiVersion": odd(random, []any{"apps/v1"}, "", "a/b/c"), "kind": odd(random, []any{"Deployment", "StatefulSet"}, "", "a/b"), "name": odd(random, []any{"web"}, "", "w/b")}}
	maybe(random, 2, spec, "minReplicas", odd(random, []any{1, 2}, 0, -1, 9))
	maybe(random, 2, spec, "metrics", []any{object{"type": "Resource", "resource": object{"name": "cpu", "target": odd(random, []any{object{"type": "Utilization", "averageUtilization": 50}, object{"type": "AverageValue", "averageValue": "100m"}}, object{"type": "AverageValue", "averageUtilization": 5}, object{"type": "Utilization", "averageUtilization": -1}, object{"type": "Other"}, object{"type": "Utilization", "averageValue": "1", "averageUtilization": 2})}}})
	return object{"spec": spec}
}

func widget(random *rand.Rand) object {
	spec := object{"size": odd(random, []any{0, 1, 5, 12}, -1, 13, 9)}
	maybe(random, 2, spec, "color", odd(random, []any{"red", "green", "blue"}, "pink"))
	maybe(random, 3, spec, "name", odd(random, []any{"abc", "xyz"}, "Abc", "a", "toolongname"))
	maybe(random, 3, spec, "percent", odd(random, []any{5, "5%"}, "many", 1.5))
	maybe(random, 3, spec, "tags", []any{odd(random, []any{"x"}, "y"), pick(random, "y", "z")})
	maybe(random, 3, spec, "ports", []any{object{"name": "a", "port": odd(random, []any{1, 2, 3}, 0)}, object{"name": odd(random, []any{"b"}, "a"), "port": 7, "protocol": "UDP"}})
	maybe(random, 3, spec, "limits", object{"cpu": "1", "mem": pick(random, "2", "3")})
	maybe(random, 4, spec, "free", object{"any": anything(random), "deep": object{"er": random.Intn(3)}})
	maybe(random, 4, spec, "when", odd(random, []any{"2024-01-01T00:00:00Z"}, "tomorrow"))
	maybe(random, 4, spec, "ratio", odd(random, []any{0.5, 1, 1.5}, 2.5, "0.5", 0.7))
	maybe(random, 4, spec, "nothing", []any{nil, "x"}[random.Intn(2)])
	maybe(random, 4, spec, "once", pick(random, "p", "q"))
	maybe(random, 5, spec, "template", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "t", "labels": object{"a": "b"}}, "data": object{"x": "y"}})
	maybe(random, 6, spec, "min", random.Intn(10))
	maybe(random, 6, spec, "max", random.Intn(10))
	made := object{"spec": spec}
	maybe(random, 8, made, "status", object{"replicas": 2})
	return made
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.compare.example.com}
spec:
  group: compare.example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList, shortNames: [wg]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Color, type: string, jsonPath: .spec.color}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: "!has(self.min) || !has(self.max) || self.min <= self.max", message: min must not exceed max}
            - {rule: "self.size != 9", messageExpression: "'size must not be ' + 'nine'", fieldPath: .size}
            properties:
              size: {type: integer, format: int32, minimum: 0, maximum: 12, default: 1}
              color: {type: string, enum: [red, green, blue], default: red}
              name: {type: string, pattern: "^[a-z]+$", minLength: 2, maxLength: 8}
              percent: {x-kubernetes-int-or-string: true, pattern: "^[0-9]+%$"}
              tags: {type: array, items: {type: string, maxLength: 9}, x-kubernetes-list-type: set, maxItems: 5}
              ports:
                type: array
                maxItems: 5
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string, maxLength: 9}
                    port: {type: integer, minimum: 1}
                    protocol: {type: string, default: TCP}
              limits: {type: object, additionalProperties: {type: string, maxLength: 4}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              when: {type: string, format: date-time}
              ratio: {type: number, multipleOf: 0.5, exclusiveMaximum: true, maximum: 2.5}
              nothing: {type: string, nullable: true}
              once: {type: string, maxLength: 4, x-kubernetes-validations: [{rule: "self == oldSelf", message: once is immutable}]}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              min: {type: integer}
              max: {type: integer}
          status:
            type: object
            properties:
              replicas: {type: integer}
              note: {type: string}
`
