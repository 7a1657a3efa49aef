#!/usr/bin/env python3
"""Runs the same kubectl commands against two clusters, one after the other, and prints what differs.

    kubectl.py KUBECTL REFERENCE_KUBECONFIG OTHER_KUBECONFIG

Uids, ages, versions, addresses and generated names are made equal first. Both sides need their controllers.
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

KUBECTL, REFERENCE, OTHER = sys.argv[1:4]

FILES = {
    "web.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {set: one}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'nginx:1'}], terminationGracePeriodSeconds: 0}
""",
    "map.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: map, labels: {set: one}}
data: {a: '1'}
""",
    "map2.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: map, labels: {set: one}}
data: {a: '2', b: '3'}
""",
    "bad.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: bad}
spec: {replicas: many, nonsense: true}
""",
    "set.yaml": """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: 'postgres:1'}], terminationGracePeriodSeconds: 0}
""",
}

COMMANDS = """
version -o json
create namespace kc
config set-context --current --namespace=kc
wait --for=create serviceaccount/default --timeout=20s
diff -f web.yaml
apply -f web.yaml
rollout status deployment/web --timeout=30s
get deployment web
get pods
get rs
diff -f web.yaml
scale deployment web --replicas=3
rollout status deployment/web --timeout=30s
scale deployment web --replicas=2 --current-replicas=5
set image deployment/web main=nginx:2
rollout status deployment/web --timeout=30s
rollout history deployment/web
annotate deployment/web kubernetes.io/change-cause=second
rollout history deployment/web
rollout history deployment/web --revision=1
rollout undo deployment/web
rollout status deployment/web --timeout=30s
rollout pause deployment/web
rollout pause deployment/web
rollout resume deployment/web
rollout restart deployment/web
rollout status deployment/web --timeout=30s
set env deployment/web A=b
set resources deployment/web --limits=cpu=200m
set serviceaccount deployment/web default
rollout status deployment/web --timeout=30s
autoscale deployment web --min=1 --max=5 --cpu-percent=80
get hpa
apply -f map.yaml
diff -f map2.yaml
apply -f map2.yaml
apply -f map2.yaml
apply -f map.yaml --server-side
apply -f map2.yaml --server-side --force-conflicts
apply -f map2.yaml --prune -l set=one --prune-allowlist=core/v1/ConfigMap
apply -f bad.yaml
apply -f bad.yaml --validate=false
label configmap map x=y
label configmap map x=z
label configmap map x=z --overwrite
label configmap map x-
annotate configmap map note=hello
taint nodes --all dedicated=a:NoSchedule
taint nodes --all dedicated-
cordon -l kubernetes.io/os=linux
uncordon -l kubernetes.io/os=linux
auth can-i create pods
auth can-i --list --no-headers
auth whoami
create configmap c1 --from-literal=a=b
create secret generic s1 --from-literal=a=b
create secret tls s2 --cert=/nowhere --key=/nowhere
create deployment d1 --image=nginx --replicas=1
create service clusterip svc1 --tcp=80:8080
create service nodeport svc2 --tcp=80
create service externalname svc3 --external-name=a.example.com
create job j1 --image=busybox -- true
create cronjob cj1 --image=busybox --schedule=*/5 * * * *
create job j2 --from=cronjob/cj1
create ingress i1 --rule=a.example.com/*=svc1:80
create role r1 --verb=get --resource=pods
create rolebinding rb1 --role=r1 --user=jane
create clusterrole kc-cr1 --verb=get --resource=nodes
create clusterrolebinding kc-crb1 --clusterrole=kc-cr1 --user=jane
create serviceaccount sa1
create token sa1 --duration=10m -o jsonpath={.kind}
create quota q1 --hard=pods=20
create poddisruptionbudget p1 --selector=app=web --min-available=1
create priorityclass kc-pc1 --value=10
expose deployment web --port=80
run one --image=nginx --restart=Always
wait --for=condition=Ready pod/one --timeout=20s
wait --for=condition=Available deployment/web --timeout=20s
wait --for=jsonpath={.status.readyReplicas}=3 deployment/web --timeout=20s
wait --for=delete pod/nothing --timeout=5s
wait --for=condition=complete job/j1 --timeout=5s
get all
get svc,ing,pdb,quota,sa,role,rolebinding,cronjob
get cm map -o yaml
get deployment web -o jsonpath={.spec.template.spec.containers[0].image}
get pods --field-selector=status.phase=Running -l app=web -o name
get pods --sort-by=.metadata.name -o custom-columns=N:.metadata.name,P:.status.phase
get nothing
get configmap nothing
describe configmap map
describe deployment web
describe service svc1
describe quota q1
explain deployment.spec.replicas
explain configmap.data
api-resources --api-group=apps
api-versions
get events --field-selector=involvedObject.name=web -o custom-columns=R:.reason,M:.message
apply -f set.yaml
rollout status statefulset/db --timeout=30s
get statefulset,pods -l app=db
rollout history statefulset/db
patch deployment web -p {"spec":{"replicas":1}}
patch deployment web --type=json -p [{"op":"replace","path":"/spec/replicas","value":2}]
patch configmap map --type=merge -p {"data":{"z":"1"}}
replace -f map.yaml
edit configmap map
delete pod one --now
delete deployment d1 --cascade=orphan
delete deployment d1
delete job j1 j2
delete configmap c1 --dry-run=server
delete configmap c1
delete statefulset db
delete clusterrole kc-cr1
delete clusterrolebinding kc-crb1
delete priorityclass kc-pc1
delete namespace kc
get namespace kc
""".strip().splitlines()

EQUAL = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} [\d:]+ [+-]\d{4}"), "TIME"),
    (re.compile(r"resourceVersion: \"\d+\""), "resourceVersion: …"),
    (re.compile(r"(?<=\s)(\d+[smh])+(?=\s|$)", re.M), "AGE"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+"), "IP"),
    (re.compile(r"\b3\d{4}/"), "PORT/"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}(-[bcdfghjklmnpqrstvwxz2456789]{5})?\b"), "-HASH"),
    (re.compile(r"\b(j1|j2|web)-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), r"\1-ID"),
    (re.compile(r"/tmp/\S+"), "FILE"),
    (re.compile(r"https://\S+"), "URL"),
    (re.compile(r"FILE\t.*"), "FILE"),
    (re.compile(r"pod-template-hash=\w+"), "pod-template-hash=HASH"),
    (re.compile(r"SHA256=\w+"), "SHA256=…"),
    (re.compile(r"\b(reference-node|opdev)\b"), "NODE"),
    (re.compile(r'Context "\w+"'), "Context"),
    # How often it is looked at hangs on how quick the other side is.
    (re.compile(r"Waiting for .* (rollout|spec update|roll out).*\n|Waiting for \d+ pods.*\n|partitioned roll out.*\n"), ""),
    (re.compile(r" +"), " "),
]


def run(kubeconfig, command, folder):
    words = command.split(" ")
    # A schedule and a patch are one word each.
    text = command
    for start, end in (("--schedule=", None), ("-p ", None)):
        at = text.find(start)
        if at >= 0:
            head, tail = text[:at].split(), text[at:]
            words = head + ([tail] if start != "-p " else ["-p", tail[3:]])
    env = dict(os.environ, KUBECONFIG=kubeconfig, EDITOR="sed -i s/zzz/zzz/", KUBECTL_EXTERNAL_DIFF="diff -u -N")
    done = subprocess.run([KUBECTL, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    text = done.stdout + "".join(f"! {line}\n" for line in done.stderr.splitlines()) + f"[{done.returncode}]\n"
    for pattern, equal in EQUAL:
        text = pattern.sub(equal, text)
    return text.splitlines()


def main():
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text.lstrip())
        for command in COMMANDS:
            sides = [run(config, command, folder) for config in (REFERENCE, OTHER)]
            if sides[0] != sides[1]:
                different += 1
                print(f"=== kubectl {command}")
                print("\n".join(difflib.unified_diff(*sides, "reference", "other", lineterm="", n=1)))
    print(f"{len(COMMANDS) - different} of {len(COMMANDS)} commands answered equally")


main()
