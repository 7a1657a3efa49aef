//! Random changes of kustomizations, the same for the same seed: what users add by hand, in combinations
//! nobody has tried.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }

    fn of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.roll(list.len())]
    }

    fn bool(&mut self) -> bool {
        self.roll(2) == 0
    }
}

/// More objects, with references among each other.
const MORE: &str = r#"apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
  labels: {tier: db, on: "yes"}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      serviceAccountName: db
      priorityClassName: high
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: db}}}
      containers:
      - name: db
        image: registry.example.com:5000/team/db:1.2@sha256:0123456789abcdef
        args: [--one, "2", yes, 1.50]
        env:
        - {name: A, value: "1"}
        - {name: B, valueFrom: {configMapKeyRef: {name: settings, key: a}}}
        - {name: C, valueFrom: {secretKeyRef: {name: password, key: p}}}
        ports:
        - {containerPort: 5432, name: db}
        - {containerPort: 5433, protocol: UDP}
        volumeMounts: [{name: data, mountPath: /data}, {name: conf, mountPath: /conf}]
      volumes:
      - {name: conf, configMap: {name: settings}}
      - {name: both, projected: {sources: [{configMap: {name: settings}}, {secret: {name: password}}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec:
  selector: {app: db}
  ports: [{port: 80, targetPort: db}, {port: 81, name: x, protocol: UDP}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: db}
imagePullSecrets: [{name: password}]
---
apiVersion: v1
kind: Secret
metadata: {name: password, annotations: {a: 1, b: null}}
stringData: {p: x}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  annotations: {}
  labels:
data:
  a: yes
  long: "a long text that goes on and on until it is longer than any line of a terminal would be, and then some more"
  lines: |
    one
      two

    three
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: db}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: db}
subjects:
- {kind: ServiceAccount, name: db, namespace: system}
- {kind: ServiceAccount, name: default, namespace: elsewhere}
- {kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: db}
rules: [{apiGroups: [""], resources: [configmaps, secrets], resourceNames: [settings, password, other], verbs: [get]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  annotations: {nginx.ingress.kubernetes.io/auth-secret: password}
spec:
  tls: [{hosts: [a.example.com], secretName: password}]
  rules:
  - host: a.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: db, port: {number: 80}}}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: db}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}, minReplicas: 1, maxReplicas: 3}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db}
spec: {minAvailable: 50%, selector: {matchLabels: {app: db}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup}
spec:
  schedule: "0 1 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: db:latest, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: password}}]}]
---
apiVersion: v1
kind: List
items:
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 10}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: only-here, annotations: {config.kubernetes.io/local-config: "true"}}}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: thing, creationTimestamp: null}
spec: {secretRef: {name: password}, list: [{name: a, v: 1}, {name: b}], when: 2020-01-01, number: 017, float: 1e3}
"#;

/// Copies the project of a kustomization and changes it; gives the folder to build and what was changed.
pub(super) fn project(starts: &[PathBuf], scratch: &Path, seed: u64) -> (PathBuf, String) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        dice.roll(2);
    }
    // Most are those that bring everything together.
    let whole: Vec<&PathBuf> = starts.iter().filter(|start| start.ends_with("config/default")).collect();
    let start = if dice.roll(4) > 0 && !whole.is_empty() {
        whole[dice.roll(whole.len())]
    } else {
        &starts[dice.roll(starts.len())]
    };
    let config = start.ancestors().find(|above| above.ends_with("config")).unwrap_or(start);
    let to = scratch.join("config");
    copy(config, &to);
    let folder = to.join(start.strip_prefix(config).unwrap());
    let mut said = format!("{}", start.strip_prefix(config.parent().unwrap()).unwrap().display());
    let mut file = Kustomized::read(&folder);
    if dice.bool() {
        fs::write(folder.join("more.yaml"), MORE).unwrap();
        file.push("resources", json!("more.yaml"));
        said.push_str(" +more");
        if dice.bool() {
            generate(&mut file, &mut dice, &mut said);
        }
    }
    for _ in 0..=dice.roll(4) {
        change(&mut file, &mut dice, &mut said);
    }
    file.write();
    if dice.roll(3) > 0 {
        return (folder, said);
    }
    let above = scratch.join("config/overlays/test");
    fs::create_dir_all(&above).unwrap();
    let below = format!("../../{}", folder.strip_prefix(scratch.join("config")).unwrap().display());
    let mut file = Kustomized { folder: above.clone(), content: json!({ "resources": [below] }) };
    said.push_str(" / overlay:");
    for _ in 0..=dice.roll(4) {
        change(&mut file, &mut dice, &mut said);
    }
    file.write();
    (above, said)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

struct Kustomized {
    folder: PathBuf,
    content: Value,
}

impl Kustomized {
    fn read(folder: &Path) -> Kustomized {
        let text = fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
        Kustomized { folder: folder.to_owned(), content: opdev_object::yaml::from_str(&text).unwrap() }
    }

    fn push(&mut self, key: &str, value: Value) {
        if self.content[key].is_null() {
            self.content[key] = json!([]);
        }
        self.content[key].as_array_mut().unwrap().push(value);
    }

    fn write(&self) {
        fs::write(self.folder.join("kustomization.yaml"), opdev_object::yaml::to_string(&self.content))
            .unwrap();
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn generate(file: &mut Kustomized, dice: &mut Dice, said: &mut String) {
    file.file("files/app.conf", "a=1\nb = <two> & more\n");
    file.file("files/env.txt", "# a comment\nONE=1\n  TWO=a=b\nTHREE\n\n");
    let key = dice.of(&["configMapGenerator", "secretGenerator"]);
    let mut entry = json!({ "name": dice.of(&["generated", "settings", "password"]) });
    entry["literals"] = json!(["x=1", "y=\"quoted\"", "z="]);
    if dice.bool() {
        entry["files"] = json!(["files/app.conf", "renamed.conf=files/app.conf"]);
    }
    if dice.bool() {
        entry["envs"] = json!(["files/env.txt"]);
    }
    if dice.roll(3) == 0 {
        entry["behavior"] = json!(dice.of(&["merge", "replace", "create"]));
    }
    if dice.roll(3) == 0 {
        entry["options"] = json!({ "labels": { "made": "yes" }, "disableNameSuffixHash": dice.bool(), "immutable": dice.bool() });
    }
    if key == "secretGenerator" && dice.bool() {
        entry["type"] = json!("kubernetes.io/tls");
        entry["literals"] = json!([format!("tls.crt={}", "long ".repeat(40)), "tls.key=k"]);
    }
    let _ = write!(said, " {key}");
    file.push(key, entry);
    if dice.roll(4) == 0 {
        file.content["generatorOptions"] =
            json!({ "annotations": { "note": "made" }, "labels": { "made": "all" } });
    }
}

/// Makes a change that users often make.
fn change(file: &mut Kustomized, dice: &mut Dice, said: &mut String) {
    let what = dice.roll(20);
    let name = match what {
        0 => {
            file.content["namePrefix"] = json!(dice.of(&["a-", "test-", ""]));
            "namePrefix"
        }
        1 => {
            file.content["nameSuffix"] = json!(dice.of(&["-v1", "-x"]));
            "nameSuffix"
        }
        2 => {
            file.content["namespace"] = json!(dice.of(&["other", "default", "system"]));
            "namespace"
        }
        3 => {
            let label = json!({ "pairs": { "team": "a", "on": "yes" }, "includeSelectors": dice.bool(), "includeTemplates": dice.bool() });
            file.push("labels", label);
            "labels"
        }
        4 => {
            file.content["commonLabels"] = json!({ "app.kubernetes.io/part-of": "x", "n": "1" });
            "commonLabels"
        }
        5 => {
            file.content["commonAnnotations"] = json!({ "who": "me", "when": "2020-01-01" });
            "commonAnnotations"
        }
        6 => {
            let image = match dice.roll(4) {
                0 => json!({ "name": "controller", "newName": "example.com/op", "newTag": "v2" }),
                1 => json!({ "name": "registry.example.com:5000/team/db", "digest": "sha256:aa" }),
                2 => json!({ "name": "db", "newTag": "9" }),
                _ => json!({ "name": "controller", "newTag": "1.0", "digest": "sha256:bb" }),
            };
            file.push("images", image);
            "images"
        }
        7 => {
            file.push(
                "replicas",
                json!({ "name": dice.of(&["controller-manager", "db"]), "count": dice.roll(5) }),
            );
            "replicas"
        }
        8..=11 => {
            let patch = patch(dice, file);
            file.push("patches", patch);
            "patches"
        }
        12 => {
            generate(file, dice, said);
            "generated"
        }
        13..=18 => rarer_change(what, file, dice),
        _ => {
            let key = dice.of(&["resources", "patches", "replacements"]);
            if let Some(list) = file.content[key].as_array_mut().filter(|list| list.len() > 1) {
                let at = dice.roll(list.len());
                list.remove(at);
            }
            "removed"
        }
    };
    let _ = write!(said, " {name}");
}

/// Makes a change that few users make.
fn rarer_change(what: usize, file: &mut Kustomized, dice: &mut Dice) -> &'static str {
    match what {
        13 => {
            file.file(
                "component/kustomization.yaml",
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [extra.yaml]\nnamePrefix: c-\n\
                 patches:\n- target: {kind: Deployment}\n  patch: '[{\"op\": \"add\", \"path\": \"/spec/paused\", \"value\": true}]'\n",
            );
            file.file(
                "component/extra.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {a: b}\n",
            );
            file.content["components"] = json!(["component"]);
            "components"
        }
        14 => {
            file.content["sortOptions"] = match dice.roll(3) {
                0 => json!({ "order": "fifo" }),
                1 => json!({ "order": "legacy" }),
                _ => {
                    json!({ "order": "legacy", "legacySortOptions": { "orderFirst": ["Deployment", "Role"], "orderLast": ["Namespace"] } })
                }
            };
            "sortOptions"
        }
        15 => {
            let replacement = replacement(dice);
            file.push("replacements", replacement);
            "replacements"
        }
        16 => {
            file.file(
                "rules.yaml",
                "nameReference:\n- kind: Secret\n  version: v1\n  fieldSpecs:\n  - {path: spec/secretRef/name, kind: Thing}\n\
                 commonLabels:\n- {path: spec/selector, create: true, kind: Thing}\nnamespace:\n- {path: spec/namespace, create: true, kind: Thing}\n\
                 images:\n- {path: spec/list/name, kind: Thing}\n",
            );
            file.push("configurations", json!("rules.yaml"));
            "configurations"
        }
        17 => {
            file.file(
                "merge.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: controller-manager, namespace: system, labels: {x: y}}\n\
                 spec: {replicas: 3}\n",
            );
            file.push("patchesStrategicMerge", json!("merge.yaml"));
            "patchesStrategicMerge"
        }
        _ => {
            file.push(
                "patchesJson6902",
                json!({
                    "target": { "version": "v1", "kind": "Deployment", "group": "apps", "name": ".*controller-manager" },
                    "patch": "- op: replace\n  path: /spec/replicas\n  value: 7\n- {op: test, path: /kind, value: Deployment}\n",
                }),
            );
            "patchesJson6902"
        }
    }
}

fn replacement(dice: &mut Dice) -> Value {
    let create = dice.bool();
    let target = match dice.roll(5) {
        0 => {
            json!({ "select": { "kind": "Deployment" }, "fieldPaths": ["metadata.annotations.from", "spec.template.metadata.labels.from"],
                     "options": { "create": true } })
        }
        1 => {
            json!({ "select": { "kind": "Deployment" }, "fieldPaths": ["spec.template.spec.containers.[name=manager].env.[name=FROM].value"],
                     "options": { "create": true } })
        }
        2 => {
            json!({ "select": { "kind": "ConfigMap", "name": "settings" }, "fieldPaths": ["data.a", "data.new"], "options": { "create": create } })
        }
        3 => {
            json!({ "select": { "kind": "Service" }, "reject": [{ "name": "db" }], "fieldPaths": ["metadata.annotations.[a.b/c]"],
                     "options": { "create": true } })
        }
        _ => json!({ "select": { "kind": "StatefulSet" },
                     "fieldPaths": ["spec.template.spec.containers.0.image"], "options": { "delimiter": ":", "index": dice.roll(4) } }),
    };
    let source = match dice.roll(4) {
        0 => json!({ "kind": "Deployment", "name": "controller-manager" }),
        1 => {
            json!({ "kind": "Deployment", "fieldPath": "spec.template.spec.containers.0.image", "options": { "delimiter": ":", "index": 0 } })
        }
        2 => json!({ "kind": "Deployment", "fieldPath": "spec.replicas" }),
        _ => json!({ "kind": "Service", "name": "db", "fieldPath": "spec.ports.[port=81].name" }),
    };
    json!({ "source": source, "targets": [target] })
}

/// A patch: strategic or JSON, in line or in a file, with a target or by name.
fn patch(dice: &mut Dice, file: &Kustomized) -> Value {
    let strategic = [
        "spec: {replicas: 2, template: {spec: {containers: [{name: manager, image: other, env: [{name: X, value: \"1\"}]}, {name: side, image: s}]}}}",
        "spec: {template: {spec: {containers: [{name: manager, args: [--a], ports: [{containerPort: 8443, name: x}, {containerPort: 9, protocol: UDP}]}], volumes: [{name: v, emptyDir: {}}]}}}",
        "spec: {template: {metadata: {annotations: {a: null, b: c}}, spec: {securityContext: null, terminationGracePeriodSeconds: null}}}",
        "spec: {template: {spec: {containers: [{name: manager, resources: {$patch: replace, limits: {cpu: 1}}, securityContext: {$patch: delete}}], tolerations: [{key: a}]}}}",
        "spec: {template: {spec: {containers: [{name: manager, $patch: delete}, {name: new, image: n}], imagePullSecrets: [{name: password}]}}}",
        "$patch: delete",
        "metadata_is_here: {a: [1, 2], b: null}",
    ];
    let json = [
        "- {op: add, path: /spec/template/spec/containers/0/args/-, value: --more}",
        "- {op: replace, path: /metadata/name, value: renamed}",
        "[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"a~b\": \"1\", \"n\": 2}}, {\"op\": \"remove\", \"path\": \"/metadata/annotations/n\"}]",
        "- {op: copy, from: /metadata/name, path: /metadata/labels/copied}\n- {op: move, from: /metadata/labels/copied, path: /metadata/labels/moved}",
    ];
    let kind = dice.of(&["Deployment", "StatefulSet"]);
    let own = if kind == "Deployment" { "controller-manager" } else { "db" };
    let is_json = dice.roll(3) == 0;
    let text = if is_json {
        (*dice.of(&json)).to_owned()
    } else {
        let metadata = match dice.roll(3) {
            0 => format!("{{name: {own}, namespace: system}}"),
            1 => format!("{{name: {own}, labels: {{l: m, control-plane: null}}}}"),
            _ => format!("{{name: {own}}}"),
        };
        format!("apiVersion: apps/v1\nkind: {kind}\nmetadata: {metadata}\n{}\n", dice.of(&strategic))
    };
    let mut entry = json!({});
    if dice.bool() {
        let name = format!("patches/p{}.yaml", dice.roll(1000));
        file.file(&name, &text);
        entry["path"] = json!(name);
    } else {
        entry["patch"] = json!(text);
    }
    if is_json || dice.bool() {
        entry["target"] = match dice.roll(5) {
            0 => json!({ "kind": kind }),
            1 => json!({ "kind": "Deploy.*|Stateful.*" }),
            2 => json!({ "group": "apps", "version": "v1", "name": "cont.*|db" }),
            3 => json!({ "kind": kind, "labelSelector": "tier=db" }),
            _ => json!({ "name": own, "namespace": "system|default" }),
        };
    }
    if !is_json && dice.roll(6) == 0 {
        entry["options"] = json!({ "allowNameChange": true });
    }
    entry
}
