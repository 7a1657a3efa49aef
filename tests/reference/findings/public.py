#!/usr/bin/env python3
"""Runs public operators with `opdev run`, disturbs each of them, and writes down all that opdev tells.

Usage: public.py OPDEV FOLDER [NAME...]     (needs Go, git and kubectl; without names, all of public/operators.json)

FOLDER holds the sources, one folder an operator; what is missing is cloned from its repository, and each one is set to its
commit. An operator is run as `opdev run --embedded --fresh` runs it. What happens, in this order: the samples are applied, each
change is made, a child of each kind is changed by hand and then deleted by hand, the program is killed and the custom resource
changed before it is up again, the program is killed at rest, the custom resources are deleted, the program is killed once more.
Findings go to FOLDER/NAME.findings.json, all events to FOLDER/NAME.events.json, steps to the terminal. Nothing is judged here:
that needs somebody who reads the operator's code, and README.md has the verdicts.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# Kinds that the plane makes, or that are nobody's child.
SKIP = {
    "Pod", "ReplicaSet", "PersistentVolume", "CustomResourceDefinition", "Namespace", "Node", "Event", "Lease", "EndpointSlice",
    "Endpoints", "ControllerRevision", "APIService", "FlowSchema", "PriorityLevelConfiguration", "StorageClass", "PriorityClass",
    "IngressClass", "RuntimeClass", "CSINode", "ServiceCIDR", "IPAddress", "ComponentStatus",
}


class Opdev:
    def __init__(self, program, project, plan, events):
        self.project, self.path = project, events
        # A program without controller-runtime's logger says it in words of its own.
        self.ready = [plan["ready"]] if "ready" in plan else ["Starting workers", "Starting Controller"]
        env = dict(os.environ, NO_COLOR="1", **plan.get("env", {}))
        env.pop("KUBECONFIG", None)
        subprocess.run([program, "trust", "--project", str(project)], env=env, check=True, capture_output=True)
        words = [program, "run", "--embedded", "--fresh", "--json=compact", *plan.get("arguments", [])]
        log = open(events.with_suffix(".stderr"), "w")
        self.child = subprocess.Popen(words, cwd=project, env=env, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        self.events, self.last, self.begin = [], time.time(), time.time()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            event = json.loads(line)
            self.events.append(event)
            if event["event"] not in ("log", "queueChanged", "podLog", "memory") and not event["event"].startswith("finding"):
                self.last = time.time()

    def started(self):
        words = self.ready
        return any(event["event"] == "log" and any(word in event["message"] for word in words) for event in list(self.events))

    def failed(self):
        """True if opdev starts the program no more."""
        states = [event["state"]["state"] for event in list(self.events) if event["event"] == "processChanged"]
        return states[-1:] == ["failed"]

    def kubectl(self, *words, text=None, say=True):
        config = self.project / ".opdev/kubeconfig"
        command = ["kubectl", "--kubeconfig", str(config), *words]
        out = subprocess.run(command, input=text, capture_output=True, text=True)
        if out.returncode and say:
            print(f"      kubectl {' '.join(words)[:150]}: {out.stderr.strip()[:400]}", flush=True)
        return out

    def settle(self, quiet=3.0, least=4.0, most=40.0):
        begin = time.time()
        while time.time() < begin + most:
            if time.time() - self.last > quiet and time.time() > begin + least:
                return
            if self.child.poll() is not None:
                sys.exit("opdev has ended")
            time.sleep(0.2)

    def objects(self):
        """All objects that can be deleted, by kind, namespace and name."""
        names = self.kubectl("api-resources", "--verbs=list,delete", "-o", "name").stdout.split()
        names = [name for name in names if not name.startswith(("events", "componentstatuses", "bindings"))]
        out = self.kubectl("get", ",".join(names), "-A", "-o", "json", "--ignore-not-found", "--show-managed-fields")
        found = {}
        for item in json.loads(out.stdout or '{"items":[]}').get("items", []):
            meta = item["metadata"]
            found[(item["kind"], meta.get("namespace", ""), meta["name"])] = item
        return found

    def program(self):
        """The process of the operator's program: the newest one below opdev."""
        rows = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True).stdout.splitlines()[1:]
        rows = [line.split(None, 2) for line in rows]
        mine = {str(self.child.pid)}
        for _ in range(5):
            mine |= {pid for pid, parent, *_ in rows if parent in mine}
        found = [(int(pid), args[0]) for pid, _, *args in rows if pid in mine and int(pid) != self.child.pid and args]
        found = [pid for pid, args in found if ".opdev" in args.split()[0] or "/operator" in args.split()[0]]
        return found[-1] if found else None

    def kill(self, why):
        pid = self.program()
        step(self, f"kill the program, {why}: {pid}")
        if pid:
            os.kill(pid, signal.SIGKILL)

    def findings(self):
        told = {}
        for event in list(self.events):
            if event["event"].startswith("finding"):
                finding = dict(event.get("finding", event))
                told[finding["id"]] = finding
        return list(told.values())


def step(opdev, what):
    print(f"{time.time() - opdev.begin:6.1f} {what}", flush=True)
    opdev.events.append({"event": "step", "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "what": what})


def change_by_hand(item):
    """One change of a field that the operator has set: its name, the patch and the patch's kind."""
    kind, spec, labels = item["kind"], item.get("spec") or {}, item["metadata"].get("labels") or {}
    replace = lambda path, value: (path, [{"op": "replace", "path": path, "value": value}], "json")
    if kind in ("Deployment", "StatefulSet", "DaemonSet"):
        image = spec["template"]["spec"]["containers"][0].get("image", "x")
        return replace("/spec/template/spec/containers/0/image", image + "-hand")
    if kind == "Service" and spec.get("ports"):
        return replace("/spec/ports/0/port", int(spec["ports"][0]["port"]) + 1000)
    if kind in ("ConfigMap", "Secret") and item.get("data"):
        name = sorted(item["data"])[0]
        return "data." + name, {"data": {name: "aGFuZA==" if kind == "Secret" else "hand"}}, "merge"
    if kind in ("Role", "ClusterRole") and item.get("rules"):
        return replace("/rules/0/verbs", ["hand"])
    if kind in ("RoleBinding", "ClusterRoleBinding") and item.get("subjects"):
        return replace("/subjects/0/name", "hand")
    if kind == "PodDisruptionBudget":
        name = "minAvailable" if "minAvailable" in spec else "maxUnavailable"
        return "spec." + name, {"spec": {name: 7}}, "merge"
    if kind == "NetworkPolicy":
        return "spec.podSelector", {"spec": {"podSelector": {"matchLabels": {"hand": "hand"}}}}, "merge"
    if kind == "CronJob":
        return replace("/spec/schedule", "1 1 1 1 1")
    if kind == "HorizontalPodAutoscaler":
        return replace("/spec/maxReplicas", spec["maxReplicas"] + 3)
    if labels and kind not in ("Job", "PersistentVolumeClaim"):
        name = sorted(labels)[0]
        return "labels." + name, {"metadata": {"labels": {name: "hand"}}}, "merge"
    return None


def by_hand(opdev, base):
    """Changes, then deletes, a child of each kind."""
    kinds = {}
    for key, item in sorted(opdev.objects().items()):
        managers = {entry.get("manager") for entry in item["metadata"].get("managedFields") or []}
        applied = "kubectl.kubernetes.io/last-applied-configuration" in (item["metadata"].get("annotations") or {})
        skip = key in base or key[0] in SKIP or item["metadata"].get("deletionTimestamp") or applied
        plane = {"kube-controller-manager"} >= managers or key[2] in ("default", "kube-root-ca.crt")
        if not skip and not plane:
            kinds.setdefault(key[0], (key, item))
    for (kind, space, name), item in kinds.values():
        changed = change_by_hand(item)
        if changed:
            field, patch, form = changed
            step(opdev, f"change by hand: {kind} {space}/{name} {field}")
            words = ["-n", space] if space else []
            which = f"{resource(item)}/{name}"
            opdev.kubectl("patch", *words, which, f"--type={form}", "--field-manager=by-hand", "-p", json.dumps(patch))
            opdev.settle(least=7, most=11)
    for (kind, space, name), item in kinds.values():
        step(opdev, f"delete by hand: {kind} {space}/{name}")
        words = ["-n", space] if space else []
        opdev.kubectl("delete", *words, f"{resource(item)}/{name}", "--wait=false")
        opdev.settle(least=7, most=11)


def resource(item):
    group, _, version = item["apiVersion"].rpartition("/")
    return f"{item['kind'].lower()}.{version}.{group}" if group else item["kind"].lower()


def apply(opdev, project, what):
    path = project / what if isinstance(what, str) and not what.startswith("{") else None
    if isinstance(what, dict):
        text = json.dumps(what)
    elif path:
        text = path.read_text()
    step(opdev, f"apply {what if path else what['kind'] + ' ' + what['metadata']['name']}")
    opdev.kubectl("apply", "--field-manager=by-hand", "-f", "-", text=text)


def patch(opdev, change, say=True):
    words, body = change["patch"].split(), json.dumps(change["with"])
    if say:
        step(opdev, f"patch {change['patch']} {body}")
    form = change.get("type", "merge")
    opdev.kubectl("patch", *words, f"--type={form}", "--field-manager=by-hand", "-p", body)


def drive(opdev, project, plan):
    deadline = time.time() + plan.get("build", 500)
    while not opdev.started():
        if time.time() > deadline or opdev.child.poll() is not None or opdev.failed():
            print("      it never started", flush=True)
            return
        time.sleep(0.5)
    step(opdev, "started")
    opdev.settle(least=6)
    base = set(opdev.objects())
    for what in plan.get("before", []):
        apply(opdev, project, what)
    for what in plan["samples"]:
        apply(opdev, project, what)
        opdev.settle(least=12, most=24)
    for change in plan["changes"]:
        patch(opdev, change)
        opdev.settle(least=8, most=16)
    by_hand(opdev, base)
    opdev.kill("and change before it is up")
    for change in plan.get("stopped", []):
        patch(opdev, change)
    opdev.settle(quiet=6, least=12, most=20)
    opdev.kill("at rest")
    opdev.settle(quiet=6, least=12, most=20)
    for what in plan["delete"]:
        step(opdev, f"delete {what}")
        opdev.kubectl("delete", *what.split(), "--wait=false")
        opdev.settle(least=14, most=30)
    opdev.kill("after the deletion")
    opdev.settle(quiet=6, least=16, most=20)
    left = sorted(key for key in opdev.objects() if key not in base and key[0] not in ("Event", "Lease"))
    step(opdev, "left: " + ", ".join(f"{kind} {space}/{name}" for kind, space, name in left))


def run(program, folder, plan):
    name, place = plan["name"], folder / plan["name"]
    if not place.exists():
        subprocess.run(["git", "clone", "-q", plan["repository"], str(place)], check=True)
    head = subprocess.run(["git", "-C", str(place), "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    if not head.startswith(plan["commit"]):
        subprocess.run(["git", "-C", str(place), "checkout", "-qf", plan["commit"]], check=True)
    for path, text in plan.get("files", {}).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text("\n".join(text) + "\n" if isinstance(text, list) else text)
    print(f"== {name} {plan['commit']}", flush=True)
    project = place / plan.get("folder", ".")
    opdev = Opdev(program, project, plan, folder / f"{name}.events.json")
    try:
        drive(opdev, place, plan)
    finally:
        opdev.child.send_signal(signal.SIGINT)
        try:
            opdev.child.wait(20)
        except subprocess.TimeoutExpired:
            opdev.child.kill()
        findings = opdev.findings()
        (folder / f"{name}.events.json").write_text("\n".join(map(json.dumps, opdev.events)))
        (folder / f"{name}.findings.json").write_text(json.dumps(findings, indent=1))
    reconciles = {event.get("id") for event in opdev.events if event["event"] == "reconciled"}
    print(f"   {len(reconciles)} reconciles, {len(findings)} findings", flush=True)
    for finding in findings:
        print("   " + line(finding), flush=True)


def line(finding):
    place = finding.get("place")
    where = f" ({place['file']}:{place['line']})" if place else ""
    told = lambda ref: f"{ref['kind']} {ref.get('namespace') or ''}/{ref['name']}" if ref else ""
    about = told(finding.get("about"))
    ended = ", ended" if finding.get("ended") else ""
    return re.sub(
        " +", " ",
        f"{finding['severity']} {finding['rule']} ×{finding['times']}{ended}: {told(finding['object'])} {about} {finding.get('field') or ''} "
        f"{finding['title']} | {finding['why']}{where}",
    )


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    program, folder = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    plans = json.loads((HERE / "public/operators.json").read_text())
    known = {plan["name"]: plan for plan in plans}
    for name in sys.argv[3:] or known:
        run(program, folder, known[name])


if __name__ == "__main__":
    main()
