#!/usr/bin/env python3
"""Holds the life of a release by `opdev run` against the same steps by Helm, each on an API server of its own.

Usage: lifecycle.py OPDEV HELM KUBECTL FOLDER REPOSITORY[:PATH]...    (needs git)
       --only NAME,NAME   some charts only
       --compat 4         opdev as this Helm; HELM has to be one

The repositories and what is taken of them are those of ../upgrade/charts.py: the last step to a new major version of each chart, and the
newest one. Steps: install the older version; upgrade to the newer one (a saved chart, and `helm upgrade`); roll back where Helm
refuses the upgrade; uninstall (the custom resource is deleted, and `helm uninstall`). After each step all objects are compared, and
which Jobs and bare pods were made, which is what hooks make. Of values that charts draw by chance only the keys are compared.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "upgrade"))
from charts import RELEASE, arguments, both_ends, pairs, project, run, shelves, with_programs  # noqa: E402

# What controllers make, and what opdev's own custom resource is.
LEFT_OUT = {"events", "endpoints", "endpointslices", "pods", "replicasets", "controllerrevisions", "leases", "samples", "apiservices",
            "componentstatuses", "nodes", "bindings", "flowschemas", "prioritylevelconfigurations", "csinodes", "persistentvolumes",
            "persistentvolumeclaims", "ipaddresses", "servicecidrs"}
SERVER_MADE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences", "selfLink")
# Set by the server by chance, or from an order in time.
BY_CHANCE = re.compile(r"^(clusterIPs?|nodePort|healthCheckNodePort|caBundle)$")
DRAWN_ANEW = "drawn anew"
OPERATOR = re.compile(r"helm\.sdk\.operatorframework\.io|operator-sdk/")


class Server:
    """The API server of one side, and what is made on it."""

    def __init__(self, tools, config):
        self.tools, self.env, self.made = tools, dict(os.environ, KUBECONFIG=str(config)), []
        self.watching = []

    def kubectl(self, *words, **more):
        return run(self.tools.kubectl, *words, env=self.env, **more)

    def watch(self):
        """Collects the Jobs and the pods without an owner that are made from now on."""
        for path in ("/apis/batch/v1/jobs", "/api/v1/pods"):
            # The watch begins where the list ends: what is made before it has begun is not missed.
            now = json.loads(self.kubectl("get", "--raw", path).stdout)["metadata"]["resourceVersion"]
            words = [self.tools.kubectl, "get", "--raw", f"{path}?watch=1&resourceVersion={now}"]
            process = subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            threading.Thread(target=self.collect, args=(process.stdout,), daemon=True).start()
            self.watching.append(process)

    def collect(self, lines):
        for line in lines:
            event = json.loads(line)
            meta = event["object"].get("metadata", {})
            owned = any(owner["kind"] != "Sample" for owner in meta.get("ownerReferences", []))
            if event["type"] == "ADDED" and not owned:
                self.made.append(f"{event['object'].get('kind', 'Pod')}/{meta['name']}")

    def stop(self):
        for process in self.watching:
            process.kill()

    def objects(self):
        """All objects, once they no longer change."""
        listed = self.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
        names = [name for name in listed if name.split(".")[0] not in LEFT_OUT and not name.endswith("metrics.k8s.io")]
        before = None
        for _ in range(40):
            found = self.once(names)
            if found == before:
                return found
            before = found
        return before

    def once(self, names):
        items = json.loads(self.kubectl("get", ",".join(names), "-A", "-o", "json").stdout or '{"items": []}')["items"]
        return {key(item): plain(item) for item in items if is_charts(item)}

    def take_made(self):
        made, self.made = self.made, []
        return sorted(made)


def key(item):
    meta = item["metadata"]
    return f"{item['kind']}/{meta.get('namespace', '')}/{meta['name']}"


def is_charts(item):
    meta = item["metadata"]
    if item.get("type") in ("helm.sh/release.v1", "kubernetes.io/service-account-token"):
        return False
    return not (item["kind"] == "CustomResourceDefinition" and meta["name"] == "samples.charts.example.com")


def plain(item):
    meta = {name: value for name, value in item["metadata"].items() if name not in SERVER_MADE}
    marks = {name: value for name, value in meta.get("annotations", {}).items() if not OPERATOR.search(name)}
    # A checksum of what is drawn by chance is drawn by chance.
    meta["annotations"] = {name: "checksum" if "checksum" in name else value for name, value in marks.items()}
    meta["finalizers"] = [name for name in meta.get("finalizers", []) if not OPERATOR.search(name)]
    rest = {name: value for name, value in item.items() if name not in ("metadata", "status")}
    if item["kind"] == "Secret":
        rest["data"] = sorted(rest.get("data") or {})
    if all(OPERATOR.search(name) for name in meta.get("labels", {})):
        meta.pop("labels", None)
    return json.loads(json.dumps({"metadata": meta, **rest}), object_hook=without_chance)


def without_chance(value):
    return {name: ("checksum" if "checksum" in name else part) for name, part in value.items()
            if not BY_CHANCE.match(name) and not OPERATOR.search(name)}


def until(condition, seconds=60):
    deadline = time.time() + seconds
    while time.time() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    return None


def is_drawn_anew(tools, server, chart):
    """Whether a chart says something else each time, though it sees what is installed: then the operator upgrades it each time."""
    words = ["upgrade", RELEASE, str(chart), "--dry-run=server", "-n", "default", "-o", "json"]
    drawn = [run(tools.helm, *words, env=server.env) for _ in range(2)]
    if any(one.returncode for one in drawn):
        return False
    first, second = (json.loads(one.stdout)["manifest"].strip() for one in drawn)
    return first != second


def by_helm(tools, folder, old, new):
    config = folder / "kubeconfig"
    config.unlink(missing_ok=True)
    shutil.rmtree(folder / "data", ignore_errors=True)
    words = [tools.opdev, "serve", "--data-dir", str(folder / "data"), "--kubeconfig", str(config)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    server, steps = Server(tools, config), []
    try:
        if not until(lambda: config.exists() and server.kubectl("get", "--raw", "/readyz").returncode == 0, 30):
            return [("install", "opdev serve does not come up", {}, [])]
        begun = server.objects()
        server.watch()

        def step(name, *words):
            done = run(tools.helm, *words, "-n", "default", env=server.env)
            found = {name: value for name, value in server.objects().items() if begun.get(name) != value}
            steps.append((name, done.stderr.strip() if done.returncode else "", found, server.take_made()))
            return done.returncode == 0

        if step("install", "install", RELEASE, str(old)):
            if is_drawn_anew(tools, server, old):
                return [(DRAWN_ANEW, "", {}, [])]
            if not step("upgrade", "upgrade", RELEASE, str(new)):
                step("rollback", "rollback", RELEASE)
            step("uninstall", "uninstall", RELEASE)
        else:
            step("taken back", "uninstall", RELEASE)
    finally:
        server.stop()
        process.terminate()
        process.wait()
    return steps


def revision(server):
    listed = server.kubectl("get", "secret", "-n", "default", "-l", f"owner=helm,name={RELEASE}", "-o", "json").stdout
    labels = [item["metadata"]["labels"] for item in json.loads(listed or '{"items": []}')["items"]]
    return max([(int(one["version"]), one["status"]) for one in labels] or [(0, "none")])


def condition(server, name):
    listed = server.kubectl("get", "samples", RELEASE, "-n", "default", "-o", "json").stdout
    for one in json.loads(listed or "{}").get("status", {}).get("conditions", []):
        if one["type"] == name and one["status"] == "True":
            return one.get("message") or one.get("reason")
    return None


def by_opdev(tools, folder, new, chart):
    words = [tools.opdev, "run", "--embedded", "--plain", "--helm-compat", tools.compat, "--reconcile-period", "0"]
    log = open(folder / "run.log", "w")
    process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    config = folder / ".opdev/kubeconfig"
    server, steps = Server(tools, config), []
    try:
        ready = lambda: config.exists() and server.kubectl("get", "crd", "samples.charts.example.com").returncode == 0
        if not until(ready, 30):
            return [("install", "opdev run does not come up", {}, [])]
        begun = server.objects()
        server.watch()

        def step(name):
            found = {name: value for name, value in server.objects().items() if begun.get(name) != value}
            # A saved chart that fails is taken back: the last working version keeps running, and no condition stays.
            taken_back = name == "upgrade" and re.search(r"reload +failed, .*", (folder / "run.log").read_text())
            error = condition(server, "ReleaseFailed") or condition(server, "Irreconcilable") or (taken_back[0] if taken_back else "")
            steps.append((name, error, found, server.take_made()))
            return not error

        server.kubectl("apply", "-f", str(folder / "config/samples/sample.yaml"))
        until(lambda: condition(server, "Deployed") or condition(server, "ReleaseFailed"))
        if step("install"):
            place = folder / "helm-charts" / chart
            shutil.copytree(new, folder / "next")
            place.rename(folder / "before")
            (folder / "next").rename(place)
            # The same manifest again makes no revision with the operator, and one with Helm.
            told = lambda: "reload     failed" in (folder / "run.log").read_text()
            until(lambda: revision(server)[0] > 1 and not revision(server)[1].startswith("pending") or told()
                  or condition(server, "ReleaseFailed") or condition(server, "Irreconcilable"), 25)
            step("upgrade")
            server.kubectl("delete", "samples", RELEASE, "-n", "default", "--timeout=60s", timeout=90)
            step("uninstall")
    finally:
        server.stop()
        process.terminate()
        process.wait()
        log.close()
    return steps


def differing(ours, helms):
    """The first difference of each step that both took, in words."""
    helms = {name: rest for name, *rest in helms}
    said = []
    for name, error, objects, made in ours:
        if name not in helms:
            said.append(f"{name}: Helm did not get there")
            continue
        helm_error, helm_objects, helm_made = helms[name]
        if bool(error) != bool(helm_error):
            said.append(f"{name}: opdev {error[:300]!r}, Helm {helm_error[:300]!r}")
        if name == "upgrade" and helm_error and "rollback" in helms:
            # The operator rolls back by itself.
            _, helm_objects, more = helms["rollback"]
            helm_made = sorted(helm_made + more)
        if name == "install" and helm_error and "taken back" in helms:
            # The operator uninstalls by itself what it could not install, and tries again.
            _, helm_objects, more = helms["taken back"]
            made, helm_made = sorted(set(made)), sorted(set(helm_made + more))
        for one in sorted(set(objects) | set(helm_objects)):
            if objects.get(one) != helm_objects.get(one):
                said.append(f"{name}: {one}: {difference(objects.get(one), helm_objects.get(one))}")
        if made != helm_made:
            said.append(f"{name}: made {made}, Helm {helm_made}")
    if len(ours) < len([name for name in helms if name not in ("rollback", "taken back")]):
        said.append(f"opdev ended at {ours[-1][0]}")
    return said


def difference(ours, helms, path=""):
    if ours is None or helms is None:
        return f"{path} {'missing' if ours is None else json.dumps(ours)[:120]}, Helm {'missing' if helms is None else json.dumps(helms)[:120]}"
    if isinstance(ours, dict) and isinstance(helms, dict):
        for name in sorted(set(ours) | set(helms)):
            if ours.get(name) != helms.get(name):
                return difference(ours.get(name), helms.get(name), f"{path}.{name}")
    if isinstance(ours, list) and isinstance(helms, list) and len(ours) == len(helms):
        for at, (one, other) in enumerate(zip(ours, helms)):
            if one != other:
                return difference(one, other, f"{path}[{at}]")
    return f"{path} {json.dumps(ours)[:120]}, Helm {json.dumps(helms)[:120]}"


def main():
    tools = with_programs(arguments().parse_args())
    folder = pathlib.Path(tools.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    only, rows = set(filter(None, tools.only.split(","))), []
    places = list(shelves(tools.repositories))
    for place, path, charts in places:
        for chart, tags in charts.items():
            for _, old, new in pairs(tags, 1) if not only or chart in only else []:
                ends = both_ends(tools, places, place, path, chart, old, new)
                if not ends:
                    continue
                project(folder / "project", chart, ends[0], ends[0])
                with open(folder / "project/watches.yaml", "a") as watches:
                    # With less, `lookup` sees nothing where the operator renders the next release, and in Helm it sees all.
                    watches.write("  dryRunOption: server\n")
                began = time.time()
                ours = by_opdev(tools, folder / "project", ends[1], chart)
                helms = by_helm(tools, folder, *ends)
                if helms[0][0] == DRAWN_ANEW:
                    print(f"left out {old} → {new}: {DRAWN_ANEW}", flush=True)
                    continue
                said = differing(ours, helms)
                steps = " ".join(name + ("!" if error else "") for name, error, *_ in helms)
                print(f"{'differs' if said else 'same':<8} {old} → {new}  {steps}  {time.time() - began:.0f} s", flush=True)
                for line in said[:12]:
                    print("   ", line[:420], flush=True)
                rows.append({"old": old, "new": new, "steps": steps, "differences": said})
                (folder / "lifecycle.json").write_text(json.dumps(rows, indent=1))
    print(f"{sum(not row['differences'] for row in rows)} of {len(rows)} the same")
    sys.exit(any(row["differences"] for row in rows))


if __name__ == "__main__":
    main()
