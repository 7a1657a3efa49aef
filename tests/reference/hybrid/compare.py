#!/usr/bin/env python3
"""An operator of the helm-operator-plugins library and `opdev run` with `engine: hybrid` beside each other on one API server.

usage: compare.py --opdev OPDEV --library BINARY [--work DIR] [--out FILE] [SCENARIO...]

Each scenario is a kind with a chart, options in opdev.yaml, and where it has code a Go function in BINARY and a script for
opdev. Compared are conditions, finalizers, the records of all revisions (status, description, values, manifest), objects with
their owners, and events. Ends with 1 where something differs for which `scenarios.py` knows no reason.
"""
import argparse
import base64
import copy
import gzip
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from scenarios import SCENARIOS  # noqa: E402

# The runner of the Operator SDK's operator is the model: its client, its rest, its table.
spec = importlib.util.spec_from_file_location("model", HERE.parent / "helm-operator" / "compare.py")
model = importlib.util.module_from_spec(spec)
sys.path.insert(0, str(HERE.parent / "helm-operator"))
spec.loader.exec_module(model)
GROUP = model.GROUP
# What is never at rest, such as a failing release, must not take a minute at each step.
model.QUIET, model.LONGEST = 6.0, 25.0
CHART_LABEL = "helm.sdk.operatorframework.io/chart"


class Scenario(model.Scenario):
    def __init__(self, number, name):
        self.name, self.spec = name, SCENARIOS[name]
        self.kind = "S%02d%s" % (number, "".join(part.title() for part in name.split("-")))
        self.plural = self.kind.lower() + "s"
        self.object = self.spec.get("name", "site")

    def write(self, project):
        super().write(project)
        chart = project / "charts" / self.kind.lower()
        if "values" in self.spec:
            (chart / "values.yaml").write_text(self.spec["values"])
        if "script" in self.spec:
            folder = project / "config" / "reconcilers"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{self.kind.lower()}.ts").write_text(self.spec["script"])

    def watch(self):
        lines = super().watch() + f"  reconcilePeriod: {model.PERIOD:g}s\n"
        for key, value in self.spec.get("watch", {}).items():
            lines += f"  {key}: {json.dumps(value)}\n"
        return lines


class Side(model.Side):
    def records(self):
        kind = {"configmap": "configmaps", "memory": None}.get(self.it.spec.get("options", {}).get("storage"), "secrets")
        if kind is None:
            return []
        owner = self.it.spec.get("options", {}).get("chunkedSecrets", {}).get("owner", "helm")
        found = self.api.call("GET", f"{self.core}/{kind}?labelSelector=owner%3D{owner},name%3D{self.name}")["items"]
        return sorted(found, key=lambda record: int(record["metadata"]["labels"]["version"]))

    def parts(self):
        """The further Secrets of records that are chunked, by name."""
        found = self.api.call("GET", f"{self.core}/secrets?labelSelector=type%3Dchunk")["items"]
        mine = lambda part: part["metadata"]["labels"]["key"].rpartition(".v")[0] == f"sh.helm.release.v1.{self.name}"
        return {part["metadata"]["name"]: part for part in found if mine(part)}

    def seen(self):
        plain = lambda text: text.replace(self.namespace, "NAMESPACE") if isinstance(text, str) else text
        fields = {}
        found = self.api.call("GET", self.path)
        fields["custom resource"] = "there" if found else "gone"
        uid = found["metadata"]["uid"] if found else "none"
        if found:
            fields["finalizers"] = ", ".join(found["metadata"].get("finalizers", [])) or "none"
            status = found.get("status") or {}
            conditions = status.get("conditions", [])
            fields["order"] = ", ".join(condition["type"] for condition in conditions)
            for condition in conditions:
                words = [condition["status"], condition.get("reason", ""), condition.get("message", "")]
                fields[condition["type"]] = plain(" ".join(word for word in words if word))
            fields["manifest"] = plain(documents((status.get("deployedRelease") or {}).get("manifest", ""), uid))
        records, revisions = [], []
        parts, stored = self.parts(), self.records()
        named = [name for record in stored for name in further(record)]
        fields["chunks"] = "those that the records name" if sorted(named) == sorted(parts) else f"{len(parts)}, named are {len(named)}"
        for record in stored:
            release = read(record, parts)
            if release is None:
                fields["chunks"] = "some are missing"
                continue
            labels = record["metadata"]["labels"]
            revisions.append(f"{labels['version']} {labels['status']}")
            owners = [owner["kind"] for owner in record["metadata"].get("ownerReferences", [])]
            about = [release["info"]["description"], release.get("config") or {}, documents(release["manifest"], uid), owners]
            if record.get("type", "").startswith("operatorframework.io"):
                about += [record["type"], record.get("immutable"), sorted(labels)]
                mine = [parts[name] for name in further(record)]
                about.append(sorted({json.dumps([part["type"], part["immutable"], sorted(part["metadata"]["labels"])]) for part in mine}))
                owners = {owner["uid"] for part in mine for owner in part["metadata"]["ownerReferences"]}
                about.append(owners <= {record["metadata"]["uid"]})
            records.append(plain(json.dumps([revisions[-1], about], sort_keys=True)))
        fields["revisions"], fields["records"] = ", ".join(revisions) or "none", "\n".join(records)
        objects = {}
        for plural in ("configmaps", "services"):
            for item in self.api.call("GET", f"{self.core}/{plural}")["items"]:
                name = item["metadata"]["name"]
                if name.startswith(self.name + "-"):
                    body = item.get("data") or {key: item.get("spec", {}).get(key) for key in ("type",)}
                    metadata = item["metadata"]
                    owned = [owner["kind"] for owner in metadata.get("ownerReferences", [])]
                    labels = {key: value for key, value in metadata.get("labels", {}).items() if key != CHART_LABEL}
                    objects[f"{plural}/{name}"] = [body, owned, labels, metadata.get("annotations", {})]
        for item in self.api.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")["items"]:
            if item["metadata"]["name"] == f"{self.namespace}-{self.name}":
                objects["clusterroles/" + plain(item["metadata"]["name"])] = item["metadata"].get("annotations", {})
        fields["objects"] = plain(json.dumps(objects, sort_keys=True))
        events = self.api.call("GET", f"{self.core}/events?fieldSelector=involvedObject.name%3D{self.name}")["items"]
        fields["events"] = "\n".join(sorted({f"{event['type']} {event['reason']} {event['message']}" for event in events}))
        return fields

    def secrets(self):
        return self.records()


def further(record):
    """The names of the Secrets that hold the rest of a record."""
    return json.loads(base64.b64decode(record["data"]["extraChunks"])) if "extraChunks" in record["data"] else []


def read(record, parts):
    names = further(record)
    if "extraChunks" in record["data"]:
        # A record that is just being written.
        if not all(name in parts for name in names):
            return None
        all_of_it = [record, *(parts[name] for name in names)]
        return json.loads(gzip.decompress(b"".join(base64.b64decode(one["data"]["chunk"]) for one in all_of_it)))
    data = record["data"]["release"]
    if record.get("kind") != "ConfigMap" and record.get("type"):
        data = base64.b64decode(data)
    return json.loads(gzip.decompress(base64.b64decode(data)))


def documents(manifest, uid):
    """A manifest by its meaning: opdev keeps the comments that name the templates."""
    found = [document for document in yaml.safe_load_all(manifest) if document]
    return json.dumps(found, sort_keys=True, default=str).replace(uid, "UID")


def project(folder, scenarios):
    model.project(folder, scenarios)
    charts = {"engine": "hybrid"}
    for scenario in scenarios:
        if "options" in scenario.spec:
            charts[f"{scenario.kind}.{GROUP}"] = scenario.spec["options"]
    (folder / "opdev.yaml").write_text(yaml.safe_dump({"charts": charts}))
    return folder


def run(args, scenarios, work):
    kubeconfig = work / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    started = []

    def start(name, command, **more):
        log = open(work / f"{name}.log", "w")
        started.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **more))

    try:
        start("serve", [args.opdev, "serve", "--kubeconfig", kubeconfig])
        model.until("the API server", kubeconfig.exists)
        api = model.Api(kubeconfig)
        for namespace in ("library", "opdev"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            api.call("POST", "/api/v1/namespaces", body)
        for scenario in scenarios:
            api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", scenario.crd())
        projects = {name: project(work / name, scenarios) for name in ("library", "opdev")}
        served = lambda: all(api.call("GET", f"/apis/{GROUP}/v1/{one.plural}") for one in scenarios)
        model.until("the kinds", served)
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "WATCH_NAMESPACE": "library"}
        start("library", [args.library], cwd=projects["library"], env=environment)
        command = [args.opdev, "run", "--plain", "--kubeconfig", kubeconfig, "-n", "opdev", "--on-exit", "leave"]
        start("opdev", [*command, "--project", projects["opdev"]], cwd=projects["opdev"])
        sides = {one.name: [Side(api, one, name, projects[name]) for name in ("library", "opdev")] for one in scenarios}
        both = [side for pair in sides.values() for side in pair]
        for side in both:
            side.begin()
        model.wait_for_rest(both)
        for at in range(max(len(one.spec["steps"]) for one in scenarios)):
            for side in both:
                if at < len(side.it.spec["steps"]):
                    side.do(side.it.spec["steps"][at])
            model.wait_for_rest(both)
        ends = model.wait_for_rest(both)
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


def compare(scenario, ends):
    rows = []
    (library, library_rests), (opdev, opdev_rests) = ends
    known = scenario.spec.get("known", {})
    for field in sorted(set(library) | set(opdev)):
        a, b = library.get(field, "absent"), opdev.get(field, "absent")
        if a != b:
            rows.append((field, a, b, known.get(field)))
    if library_rests != opdev_rests:
        word = lambda rests: "at rest" if rests else "never at rest"
        rows.append(("rest", word(library_rests), word(opdev_rests), known.get("rest")))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opdev", required=True, type=pathlib.Path)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--work", default=pathlib.Path("/tmp/compare-hybrid"), type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="also write the table here, unshortened")
    parser.add_argument("scenario", nargs="*")
    args = parser.parse_args()
    args.opdev, args.library = args.opdev.resolve(), args.library.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    names = args.scenario or list(SCENARIOS)
    scenarios = [Scenario(at, name) for at, name in enumerate(SCENARIOS) if name in names]
    ends = run(args, scenarios, args.work)
    unexplained, equal, whole = 0, 0, []
    print("| Scenario | Field | helm-operator-plugins | opdev | Why |\n|---|---|---|---|---|")
    for scenario in scenarios:
        rows = compare(scenario, copy.deepcopy(ends[scenario.name]))
        equal += not rows
        if not rows:
            print(f"| {scenario.name} | equal | | | |")
        for field, a, b, why in rows:
            unexplained += why is None
            print(f"| {scenario.name} | {field} | {model.short(a)} | {model.short(b)} | {why or '**not known**'} |")
            whole.append(f"## {scenario.name}: {field}\n{a}\n---\n{b}\n{why or 'NOT KNOWN'}\n")
    print(f"\n{len(scenarios)} scenarios, {equal} equal in all, {unexplained} differences without a reason; logs in {args.work}")
    if args.out:
        args.out.write_text("\n".join(whole))
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
