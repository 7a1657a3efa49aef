#!/usr/bin/env python3
"""Projects go back and forth between opdev, operator-sdk and kubebuilder.

usage: roundtrip.py --opdev OPDEV --clis DIR --kubectl KUBECTL [--helm-operator BINARY] [--work DIR]
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import yaml

failed = []


def step(what, good, why=""):
    print(f"{'ok  ' if good else 'FAIL'} {what}{'' if good else ': ' + why.strip()[-600:]}", flush=True)
    if not good:
        failed.append(what)
    return good


class Shell:
    def __init__(self, folder, args):
        self.folder, self.args = folder, args

    def run(self, what, *command, check=True, **more):
        # The plugins of both look for Go's tools only where a project is in Go.
        done = subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, text=True, timeout=900, **more)
        if check:
            step(what, done.returncode == 0, done.stdout + done.stderr)
        return done

    def opdev(self, what, *words):
        return self.run(what, self.args.opdev, *words)

    def sdk(self, what, *words):
        return self.run(what, self.args.clis / "operator-sdk", *words)

    def kubebuilder(self, what, *words):
        return self.run(what, self.args.clis / "kubebuilder", *words)

    def kustomize(self, what):
        done = self.run(what, self.args.kubectl, "kustomize", "config/default")
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    def project(self):
        return (self.folder / "PROJECT").read_text()


def kinds(documents):
    return sorted(f"{one['kind']} {one['metadata']['name']}" for one in documents)


def fresh(args, name):
    folder = args.work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return Shell(folder, args)


def chart(args):
    """A small chart that anybody can make: the starter of `opdev init`."""
    made = fresh(args, "chart")
    made.opdev("a chart to begin with", "init", "--group", "app", "--version", "v1", "--kind", "Web")
    return made.folder / "helm-charts" / "web"


def ours_goes_on_with_theirs(args, web):
    made = fresh(args, "ours")
    made.opdev("opdev init --helm-chart", "init", "--domain", "my.domain", "--project-name", "made", "--group", "app", "--version", "v1", "--helm-chart", web)
    before = made.kustomize("kubectl kustomize builds opdev's project")
    made.sdk(
        "operator-sdk create api in opdev's project", "create", "api", "--plugins", "helm.sdk.operatorframework.io/v1",
        "--group", "app", "--version", "v1", "--kind", "Other",
    )
    watches = yaml.safe_load((made.folder / "watches.yaml").read_text())
    step("watches.yaml has both kinds", [one["kind"] for one in watches] == ["Web", "Other"], str(watches))
    after = made.kustomize("kubectl kustomize builds it afterwards")
    step("nothing that opdev wrote is gone", set(kinds(before)) <= set(kinds(after)), str(kinds(before)))
    project = yaml.safe_load(made.project())
    step("PROJECT has both kinds", [one["kind"] for one in project["resources"]] == ["Web", "Other"], made.project())
    made.opdev("opdev goes on after operator-sdk", "create", "api", "--group", "app", "--version", "v1", "--kind", "Third")
    names = [one["kind"] for one in yaml.safe_load(made.project())["resources"]]
    step("PROJECT has all three", names == ["Web", "Other", "Third"], made.project())
    made.sdk("operator-sdk reads what opdev wrote", "create", "api", "--group", "app", "--version", "v1", "--kind", "Fourth")
    made.kustomize("kubectl kustomize builds it in the end")


def theirs_goes_on_with_ours(args, web):
    made = fresh(args, "theirs")
    made.sdk("operator-sdk init", "init", "--plugins", "helm", "--domain", "my.domain", "--project-name", "made")
    made.sdk(
        "operator-sdk create api --helm-chart", "create", "api", "--group", "app", "--version", "v1", "--kind", "Web",
        "--helm-chart", web,
    )
    before = made.kustomize("kubectl kustomize builds operator-sdk's project")
    made.opdev("opdev create api in it", "create", "api", "--group", "app", "--version", "v1", "--kind", "Other")
    after = made.kustomize("kubectl kustomize builds it afterwards")
    step("nothing that operator-sdk wrote is gone", set(kinds(before)) <= set(kinds(after)), str(kinds(after)))
    step("the new CRD is there", any("others.app.my.domain" in one for one in kinds(after)), str(kinds(after)))
    made.sdk("operator-sdk goes on", "create", "api", "--group", "app", "--version", "v1", "--kind", "Third")
    names = [one["kind"] for one in yaml.safe_load(made.project())["resources"]]
    step("PROJECT has all three", names == ["Web", "Other", "Third"], made.project())


def nothing_changes_nothing(args, web):
    """The same `create api` once more: what is there already is kept, byte for byte."""
    made = fresh(args, "nothing")
    made.opdev("opdev init", "init", "--domain", "my.domain", "--project-name", "made", "--helm-chart", web)
    files = lambda: {path: path.read_bytes() for path in sorted(made.folder.rglob("*")) if path.is_file() and ".git" not in path.parts}
    before = files()
    words = ["--group", "charts", "--version", "v1alpha1", "--kind", "Web", "--helm-chart", web, "--force"]
    made.opdev("the same create api --force", "create", "api", *words)
    after = files()
    different = [str(path.relative_to(made.folder)) for path in set(before) | set(after) if before.get(path) != after.get(path)]
    step("every file is what it was", not different, ", ".join(different))
    # The order and the comments of the other tool stay, too.
    theirs = fresh(args, "nothing-theirs")
    theirs.sdk("operator-sdk init", "init", "--plugins", "helm", "--domain", "my.domain", "--project-name", "made")
    theirs.sdk("operator-sdk create api", "create", "api", "--group", "app", "--version", "v1", "--kind", "Web", "--helm-chart", web)
    text = theirs.project()
    theirs.opdev("opdev create api --dry-run", "create", "api", "--group", "app", "--version", "v1", "--kind", "Other", "--dry-run")
    step("a dry run changes nothing", theirs.project() == text)
    theirs.opdev("opdev create api", "create", "api", "--group", "app", "--version", "v1", "--kind", "Other")
    added = [line for line in theirs.project().splitlines() if line not in text.splitlines()]
    kept = [line for line in text.splitlines() if line not in theirs.project().splitlines()]
    step("what operator-sdk wrote into PROJECT stays line for line", not kept and added, f"{kept} {added}")


GO = ["--domain", "my.domain", "--repo", "example.com/made", "--project-name", "made"]
API = ["--resource", "--controller", "--make=false"]


def kind(name):
    return ["--group", "app", "--version", "v1", "--kind", name]


def builds(made, whose):
    """What the markers ask for is written, the manifests build, and Go takes the program and its tests."""
    made.run(f"{whose}: make manifests generate", "make", "manifests", "generate", f"OPDEV={made.args.opdev}")
    documents = made.kustomize(f"{whose}: kubectl kustomize config/default")
    made.run(f"{whose}: go vet", "go", "vet", "./...")
    made.run(f"{whose}: go vet of the end-to-end tests", "go", "vet", "-tags", "e2e", "./test/e2e/")
    done = made.run(f"{whose}: gofmt", "gofmt", "-l", ".")
    step(f"{whose}: gofmt has nothing to say", not done.stdout, done.stdout)
    return documents


def kept(made, before, whose):
    gone = [line for line in before.splitlines() if line not in made.project().splitlines()]
    step(f"{whose}: PROJECT keeps every line", not gone, str(gone))


def listed(made, names, whose):
    found = [one["kind"] for one in yaml.safe_load(made.project())["resources"]]
    step(f"{whose}: PROJECT lists {', '.join(names)}", found == names, made.project())


def our_go_goes_on_with_kubebuilder(args):
    whose = "opdev's Go project with kubebuilder"
    made = fresh(args, "go-ours")
    made.opdev(f"{whose}: opdev init --go", "init", "--go", *GO, *kind("Site"))
    before = made.project()
    made.kubebuilder(f"{whose}: an edit that changes nothing", "edit", "--multigroup=false")
    step(f"{whose}: PROJECT is what it was", made.project() == before, made.project())
    made.kubebuilder(f"{whose}: kubebuilder create api", "create", "api", *kind("Third"), *API)
    done = made.kubebuilder(
        f"{whose}: kubebuilder create webhook", "create", "webhook", *kind("Site"), "--defaulting",
        "--programmatic-validation", "--make=false",
    )
    step(f"{whose}: without a warning", "WARN" not in done.stdout + done.stderr, done.stdout + done.stderr)
    made.opdev(f"{whose}: opdev create api", "create", "api", *kind("Fourth"))
    kept(made, before, whose)
    listed(made, ["Site", "Third", "Fourth"], whose)
    found = kinds(builds(made, whose))
    step(f"{whose}: the webhooks are there", any("MutatingWebhook" in one for one in found), str(found))
    step(f"{whose}: and their certificate", any(one.startswith("Certificate ") for one in found), str(found))


def our_go_goes_on_with_the_sdk(args):
    whose = "opdev's Go project with operator-sdk"
    made = fresh(args, "go-ours-sdk")
    made.opdev(f"{whose}: opdev init --go", "init", "--go", *GO, *kind("Site"))
    before = made.project()
    made.sdk(f"{whose}: an edit that changes nothing", "edit", "--multigroup=false")
    step(f"{whose}: PROJECT is what it was", made.project() == before, made.project())
    made.sdk(f"{whose}: operator-sdk create api", "create", "api", *kind("Third"), *API)
    made.opdev(f"{whose}: opdev create api", "create", "api", *kind("Fourth"))
    kept(made, before, whose)
    listed(made, ["Site", "Third", "Fourth"], whose)
    builds(made, whose)


def many_groups(args):
    whose = "several groups"
    made = fresh(args, "go-groups")
    made.opdev(f"{whose}: opdev init --go --multigroup", "init", "--go", "--multigroup", *GO, *kind("Site"))
    other = ["--group", "ops", "--version", "v1beta1", "--kind"]
    made.kubebuilder(f"{whose}: kubebuilder create api", "create", "api", *other, "Third", *API)
    made.opdev(f"{whose}: opdev create api", "create", "api", *other, "Fourth", "--namespaced=false")
    listed(made, ["Site", "Third", "Fourth"], whose)
    builds(made, whose)


def a_chart_and_go_in_one_command(args, web):
    whose = "a Go project that began with a chart"
    made = fresh(args, "go-chart")
    made.opdev(f"{whose}: opdev init --go --helm-chart", "init", "--go", *GO, "--group", "app", "--version", "v1", "--helm-chart", web)
    before = made.project()
    made.kubebuilder(f"{whose}: an edit that changes nothing", "edit", "--multigroup=false")
    step(f"{whose}: PROJECT is what it was", made.project() == before, made.project())
    made.kubebuilder(f"{whose}: kubebuilder create api", "create", "api", *kind("Third"), *API)
    made.opdev(f"{whose}: opdev create api", "create", "api", *kind("Fourth"))
    listed(made, ["Web", "Third", "Fourth"], whose)
    builds(made, whose)


def scripts_beside_charts(args, web):
    whose = "scripts beside charts"
    made = fresh(args, "hybrid")
    made.opdev(f"{whose}: opdev init", "init", "--plugins", "hybrid", "--domain", "my.domain", "--project-name", "made", "--group", "app", "--version", "v1", "--helm-chart", web)
    made.opdev(f"{whose}: opdev create api --reconciler ts", "create", "api", *kind("Backup"), "--reconciler", "ts")
    made.sdk(f"{whose}: operator-sdk create api", "create", "api", "--plugins", "helm.sdk.operatorframework.io/v1", *kind("Other"))
    listed(made, ["Web", "Backup", "Other"], whose)
    made.kustomize(f"{whose}: kubectl kustomize config/default")


def their_go_goes_on_with_ours(args, cli):
    whose = f"the Go project of {cli}"
    made = fresh(args, f"go-{cli}")
    theirs = made.kubebuilder if cli == "kubebuilder" else made.sdk
    done = theirs(f"{whose}: init", "init", *GO, "--skip-go-version-check")
    if done.returncode != 0:
        return
    theirs(f"{whose}: create api", "create", "api", *kind("Site"), *API)
    before = made.project()
    made.opdev(f"{whose}: opdev create api", "create", "api", *kind("Backup"))
    made.opdev(f"{whose}: opdev create api with a script", "create", "api", *kind("Page"), "--reconciler", "ts")
    kept(made, before, whose)
    theirs(f"{whose}: goes on", "create", "api", *kind("Third"), *API)
    listed(made, ["Site", "Backup", "Page", "Third"], whose)
    for generator in ("crd", "rbac", "deepcopy"):
        made.opdev(f"{whose}: opdev {generator}", generator)
    made.kustomize(f"{whose}: kubectl kustomize config/default")
    made.run(f"{whose}: go vet", "go", "vet", "./...")


def the_real_operator_reaches_the_same(args, web):
    """The Operator SDK's operator on opdev's project, and opdev on a copy, on one API server."""
    if args.helm_operator is None:
        return
    made = fresh(args, "real")
    made.opdev("opdev init", "init", "--domain", "my.domain", "--project-name", "made", "--helm-chart", web)
    copy = args.work / "real-copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(made.folder, copy)
    kubeconfig = args.work / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    started = []

    def start(name, command, **more):
        log = open(args.work / f"{name}.log", "w")
        started.append(subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, **more))

    def kubectl(*words, **more):
        return subprocess.run([args.kubectl, "--kubeconfig", kubeconfig, *words], capture_output=True, text=True, timeout=120, **more)

    try:
        start("serve", [args.opdev, "serve", "--kubeconfig", kubeconfig])
        while not kubeconfig.exists():
            time.sleep(0.1)
        for namespace in ("sdk", "opdev"):
            kubectl("create", "namespace", namespace)
        done = kubectl("apply", "-f", made.folder / "config/crd/bases")
        step("the CRD applies", done.returncode == 0, done.stderr)
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "WATCH_NAMESPACE": "sdk"}
        quiet = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"]
        start("helm-operator", [args.helm_operator, "run", "--watches-file", "watches.yaml", *quiet], cwd=made.folder, env=environment)
        start("opdev", [args.opdev, "run", "--plain", "--kubeconfig", kubeconfig, "-n", "opdev", "--on-exit", "leave", "--project", copy], cwd=copy)
        sample = next(path for path in (made.folder / "config/samples").glob("*.yaml") if path.name != "kustomization.yaml")
        seen = {}
        for namespace in ("sdk", "opdev"):
            kubectl("apply", "-n", namespace, "-f", sample)
        for namespace in ("sdk", "opdev"):
            done = kubectl("wait", "-n", namespace, "--for=condition=Deployed", "-f", sample, "--timeout=90s")
            step(f"the sample is deployed by {namespace}", done.returncode == 0, done.stderr)
            found = kubectl("get", "-n", namespace, "deployments,services,serviceaccounts,configmaps", "-o", "json")
            objects = {}
            for item in json.loads(found.stdout)["items"]:
                if item["metadata"]["name"] in ("default", "kube-root-ca.crt", "kubernetes"):
                    continue
                spec = item.get("spec", {})
                for own in ("clusterIP", "clusterIPs"):
                    spec.pop(own, None)
                owners = [owner["kind"] for owner in item["metadata"].get("ownerReferences", [])]
                objects[f"{item['kind']} {item['metadata']['name']}"] = [spec, item["metadata"].get("labels"), owners]
            seen[namespace] = json.dumps(objects, sort_keys=True).replace(f'"{namespace}"', '"NAMESPACE"')
        step("both reach the same objects", seen["sdk"] == seen["opdev"], f"{seen['sdk']}\n{seen['opdev']}")
        step("there are objects", "Deployment" in seen["sdk"], seen["sdk"])
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(20)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opdev", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--clis", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--kubectl", required=True, type=lambda text: shutil.which(text))
    parser.add_argument("--helm-operator", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--work", default=pathlib.Path("/tmp/roundtrip"), type=pathlib.Path)
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    web = chart(args)
    ours_goes_on_with_theirs(args, web)
    theirs_goes_on_with_ours(args, web)
    nothing_changes_nothing(args, web)
    our_go_goes_on_with_kubebuilder(args)
    our_go_goes_on_with_the_sdk(args)
    many_groups(args)
    a_chart_and_go_in_one_command(args, web)
    scripts_beside_charts(args, web)
    for cli in ("kubebuilder", "operator-sdk"):
        their_go_goes_on_with_ours(args, cli)
    the_real_operator_reaches_the_same(args, web)
    print(f"\n{len(failed)} steps failed; projects and logs in {args.work}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
