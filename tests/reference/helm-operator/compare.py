#!/usr/bin/env python3
"""The Operator SDK's helm-operator and `opdev run` beside each other on one API server (`opdev serve`).

usage: compare.py --opdev OPDEV --helm-operator BINARY [--work DIR] [--out FILE] [SCENARIO...]

Each scenario is a kind with a chart of its own; both operators serve all kinds, each in its namespace. What comes of it
(the custom resource's conditions and finalizers, the deployed revision and its manifest, the objects) is compared field by
field. Ends with 1 where something differs for which `scenarios.py` knows no reason.
"""
import argparse
import base64
import copy
import gzip
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

from scenarios import SCENARIOS

GROUP = "compare.test"
PERIOD = 3.0
# Quiet for so many seconds is at rest; after so many, it will never be.
QUIET, LONGEST = 8.0, 60.0


class Api:
    """Just enough of a client."""

    def __init__(self, kubeconfig):
        text = pathlib.Path(kubeconfig).read_text()
        field = lambda name: re.search(name + r':\s*"?([^"\s,}]+)', text).group(1)
        self.server = field("server").rstrip("/")
        self.tls = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
        self.token = field("token")

    def call(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(self.server + path, method=method)
        request.add_header("Authorization", "Bearer " + self.token)
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            request.add_header("Content-Type", kind)
        try:
            with urllib.request.urlopen(request, data, context=self.tls, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (404, 409):
                return None
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()[:300]}") from error

    def merge(self, path, patch):
        return self.call("PATCH", path + "?fieldManager=somebody", patch, "application/merge-patch+json")


class Scenario:
    def __init__(self, number, name):
        self.name, self.spec = name, SCENARIOS[name]
        self.kind = "S%02d%s" % (number, "".join(part.title() for part in name.split("-")))
        self.plural = self.kind.lower() + "s"
        self.object = self.spec.get("name", "site")

    def crd(self):
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": self.kind, "listKind": self.kind + "List", "plural": self.plural, "singular": self.kind.lower()},
                "versions": [{
                    "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
                }],
            },
        }

    def write(self, project):
        """The chart; each object's name begins with the kind, for all kinds share a namespace."""
        chart = project / "charts" / self.kind.lower()
        (chart / "templates").mkdir(parents=True, exist_ok=True)
        (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {self.kind.lower()}\nversion: 0.1.0\n")
        for name, text in self.spec["templates"].items():
            if text is not None:
                self.write_template(project, name, text)
        if "schema" in self.spec:
            (chart / "values.schema.json").write_text(self.spec["schema"])
        if "crds" in self.spec:
            (chart / "crds").mkdir(exist_ok=True)
            (chart / "crds" / "crd.yaml").write_text(self.spec["crds"])

    def write_template(self, project, name, text):
        file = name if "." in name else name + ".yaml"
        whole = project / "charts" / self.kind.lower() / "templates" / file
        # As editors do: never half a file.
        new = whole.with_name("." + file + ".new")
        new.write_text(text)
        new.rename(whole)

    def watch(self):
        lines = [f"- group: {GROUP}", "  version: v1", f"  kind: {self.kind}", f"  chart: charts/{self.kind.lower()}"]
        if "overrides" in self.spec:
            lines.append("  overrideValues: " + self.spec["overrides"])
        return "\n".join(lines) + "\n"


class Side:
    """One operator's namespace, as one scenario sees it."""

    def __init__(self, api, scenario, namespace, project):
        self.api, self.it, self.namespace, self.project = api, scenario, namespace, project
        self.name = scenario.object if len(scenario.object) > 53 else scenario.kind.lower()
        self.core = f"/api/v1/namespaces/{namespace}"
        self.base = f"/apis/{GROUP}/v1/namespaces/{namespace}/{scenario.plural}"
        self.path = f"{self.base}/{self.name}"

    def begin(self):
        for name, body in self.it.spec.get("before", {}).items():
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{self.name}-{name}"}, **body}
            self.api.call("POST", f"{self.core}/configmaps", body)
        metadata = {"name": self.name, "annotations": self.it.spec.get("annotations", {})}
        body = {"apiVersion": GROUP + "/v1", "kind": self.it.kind, "metadata": metadata, "spec": self.it.spec.get("spec", {})}
        self.api.call("POST", self.base, body)

    def do(self, step):
        match step:
            case ("patch", patch):
                self.api.merge(self.path, patch)
            case ("drift", name, patch):
                self.api.merge(f"{self.core}/configmaps/{self.name}-{name}", patch)
            case ("remove", name):
                self.api.call("DELETE", f"{self.core}/configmaps/{self.name}-{name}")
            case ("delete",):
                self.api.call("DELETE", self.path)
            case ("save", name, text):
                self.it.write_template(self.project, name, text)
            case ("pending",):
                self.leave_pending()
            case ("hold",):
                pass

    def secrets(self):
        found = self.api.call("GET", f"{self.core}/secrets?labelSelector=owner%3Dhelm,name%3D{self.name}")
        return found["items"]

    def leave_pending(self):
        """An upgrade that was broken off by somebody else: a pending revision without an owner."""
        newest = max(self.secrets(), key=lambda secret: int(secret["metadata"]["labels"]["version"]), default=None)
        if newest is None:
            return
        record = read_record(newest)
        record["version"] += 1
        record["info"]["status"] = "pending-upgrade"
        labels = {**newest["metadata"]["labels"], "version": str(record["version"]), "status": "pending-upgrade"}
        data = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
        self.api.call("POST", f"{self.core}/secrets", {
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": data},
            "metadata": {"name": f"sh.helm.release.v1.{self.name}.v{record['version']}", "labels": labels},
        })

    def seen(self):
        """What there is, without what must differ."""
        plain = lambda text: text.replace(self.namespace, "NAMESPACE") if isinstance(text, str) else text
        fields = {}
        found = self.api.call("GET", self.path)
        fields["custom resource"] = "there" if found else "gone"
        if found:
            fields["finalizers"] = ", ".join(found["metadata"].get("finalizers", [])) or "none"
            status = found.get("status") or {}
            for condition in status.get("conditions", []):
                words = [condition["status"], condition.get("reason", ""), condition.get("message", "")]
                fields[condition["type"]] = plain(" ".join(word for word in words if word))
            fields["manifest"] = plain((status.get("deployedRelease") or {}).get("manifest", "none"))
        deployed = [secret for secret in self.secrets() if secret["metadata"]["labels"]["status"] == "deployed"]
        revisions = [int(secret["metadata"]["labels"]["version"]) for secret in deployed]
        fields["revision"] = ", ".join(map(str, sorted(revisions))) or "none"
        objects = {}
        for plural in ("configmaps", "services"):
            for item in self.api.call("GET", f"{self.core}/{plural}")["items"]:
                name = item["metadata"]["name"]
                if name == self.name or name.startswith(self.name + "-"):
                    body = item.get("data") or {key: item["spec"].get(key) for key in ("type",)} if "spec" in item or item.get("data") else {}
                    owned = [owner["kind"] for owner in item["metadata"].get("ownerReferences", [])]
                    objects[f"{plural}/{name}"] = [body, owned]
        roles = self.api.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")["items"]
        for item in roles:
            if item["metadata"]["name"] == f"{self.namespace}-{self.name}":
                objects["clusterroles/" + plain(item["metadata"]["name"])] = "there"
        fields["objects"] = plain(json.dumps(objects, sort_keys=True))
        return fields


def read_record(secret):
    return json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))


def wait_for_rest(sides):
    """What each side comes to, and whether it ever came to rest."""
    began = time.monotonic()
    last = {id(side): (side.seen(), began) for side in sides}
    while True:
        time.sleep(0.7)
        now = time.monotonic()
        for side in sides:
            seen = side.seen()
            if seen != last[id(side)][0]:
                last[id(side)] = (seen, now)
        quiet = {side: now - last[id(side)][1] >= QUIET for side in sides}
        if all(quiet.values()) or now - began > LONGEST:
            return {side: (last[id(side)][0], quiet[side]) for side in sides}


def short(text, most=88):
    line = " ".join(str(text).split()).replace("|", "\\|")
    return line if len(line) <= most else line[: most - 1] + "…"


def compare(scenario, ends):
    """Rows of what differs: field, both values, reason."""
    (sdk, sdk_rests), (opdev, opdev_rests) = ends
    rows = []
    for field in sorted(set(sdk) | set(opdev)):
        a, b = sdk.get(field, "absent"), opdev.get(field, "absent")
        if a != b:
            if field == "manifest" and "none" not in (a, b):
                differing = [(x, y) for x, y in zip(a.splitlines(), b.splitlines()) if x != y]
                (a, b) = differing[0] if differing else (a, b)
            rows.append((field, a, b, scenario.spec.get("known", {}).get(field)))
    if sdk_rests != opdev_rests:
        word = lambda rests: "at rest" if rests else "never at rest"
        known = scenario.spec.get("known", {})
        rows.append(("rest", word(sdk_rests), word(opdev_rests), known.get("rest") or known.get("revision")))
    return rows


def project(folder, scenarios):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "config/crd/bases").mkdir(parents=True)
    (folder / "watches.yaml").write_text("".join(scenario.watch() for scenario in scenarios))
    for scenario in scenarios:
        scenario.write(folder)
        (folder / "config/crd/bases" / f"{scenario.plural}.yaml").write_text(json.dumps(scenario.crd()))
    return folder


def until(what, ready, seconds=60):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            sys.exit(f"{what} never came")
        time.sleep(0.2)


def run(args, scenarios, work):
    kubeconfig = work / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    started = []

    def start(name, command, **more):
        log = open(work / f"{name}.log", "w")
        started.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **more))

    try:
        start("serve", [args.opdev, "serve", "--kubeconfig", kubeconfig])
        until("the API server", kubeconfig.exists)
        api = Api(kubeconfig)
        for namespace in ("sdk", "opdev"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            api.call("POST", "/api/v1/namespaces", body)
        for scenario in scenarios:
            api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", scenario.crd())
        projects = {name: project(work / name, scenarios) for name in ("sdk", "opdev")}
        until("the kinds", lambda: all(api.call("GET", f"/apis/{GROUP}/v1/{one.plural}") for one in scenarios))
        period = f"{PERIOD:g}s"
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "WATCH_NAMESPACE": "sdk"}
        quiet = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"]
        command = [args.helm_operator, "run", "--watches-file", "watches.yaml", "--reconcile-period", period, *quiet]
        start("helm-operator", command, cwd=projects["sdk"], env=environment)
        command = [args.opdev, "run", "--plain", "--kubeconfig", kubeconfig, "-n", "opdev", "--reconcile-period", period]
        start("opdev", [*command, "--on-exit", "leave", "--project", projects["opdev"]], cwd=projects["opdev"])

        sides = {one.name: [Side(api, one, name, projects[name]) for name in ("sdk", "opdev")] for one in scenarios}
        both = [side for pair in sides.values() for side in pair]
        for side in both:
            side.begin()
        wait_for_rest(both)
        for at in range(max(len(one.spec["steps"]) for one in scenarios)):
            for side in both:
                steps = side.it.spec["steps"]
                if at < len(steps):
                    side.do(steps[at])
            ends = wait_for_rest(both)
        ends = wait_for_rest(both)
        for process in started:
            if process.poll() is not None:
                sys.exit(f"{process.args[0]} ended with {process.returncode}; see {work}")
        return {name: [ends[side] for side in pair] for name, pair in sides.items()}
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opdev", required=True, type=pathlib.Path)
    parser.add_argument("--helm-operator", required=True, type=pathlib.Path)
    parser.add_argument("--work", default=pathlib.Path("/tmp/compare-helm-operator"), type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="also write the table here")
    parser.add_argument("scenario", nargs="*")
    args = parser.parse_args()
    args.opdev, args.helm_operator = args.opdev.resolve(), args.helm_operator.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    names = args.scenario or list(SCENARIOS)
    scenarios = [Scenario(at, name) for at, name in enumerate(SCENARIOS) if name in names]
    ends = run(args, scenarios, args.work)
    lines = ["| Scenario | Field | helm-operator | opdev | Why |", "|---|---|---|---|---|"]
    unexplained = 0
    for scenario in scenarios:
        rows = compare(scenario, copy.deepcopy(ends[scenario.name]))
        if not rows:
            lines.append(f"| {scenario.name} | equal | | | |")
        for field, a, b, why in rows:
            unexplained += why is None
            lines.append(f"| {scenario.name} | {field} | {short(a)} | {short(b)} | {why or '**not known**'} |")
    text = "\n".join(lines) + "\n"
    print(text)
    print(f"{len(scenarios)} scenarios, {unexplained} differences without a reason; logs in {args.work}")
    if args.out:
        args.out.write_text(text)
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
