#!/usr/bin/env python3
"""Holds `opdev upgrade` of public charts against `helm upgrade` of the same two versions on opdev's API server.

Usage: charts.py OPDEV HELM KUBECTL FOLDER REPOSITORY[:PATH]...    (needs git)
       --only NAME,NAME   some charts only
       --steps N          the newest N steps of each chart instead of one
       --pairs A=B,C=D    these tags instead
       --compat 4         opdev as this Helm; HELM has to be one

REPOSITORY is a clone whose tags are CHART-VERSION or CHART/VERSION. PATH is where a chart lies, charts/{chart} if it is not given; in a
path without {chart} there is one chart, and the tags are its versions (`.` is the whole repository). Pairs of each chart: the last step
to a new major version, and the newest two versions (in most charts a patch). The charts that a chart needs are taken from the same
repositories; a chart that needs another one is left out. A pair is a project with one kind whose chart is the older version, tagged;
the newer version lies in the working tree.
Beside it, Helm installs the older version and upgrades to the newer one. Compared are the objects that are refused, and the workloads
whose pods' template differs afterwards. FOLDER gets a row for each pair in pairs.json; differences and the sums go to the terminal.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

RELEASE = "sample"
WORKLOADS = {"Deployment": "deployments.apps", "StatefulSet": "statefulsets.apps", "DaemonSet": "daemonsets.apps"}
REFUSAL = re.compile(r'cannot patch "([^"]+)" with kind (\w+)')


def run(*words, cwd=None, env=None, timeout=180):
    try:
        return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"did not end within {timeout} s")


def versions(repository, path):
    """The tags of each chart, the oldest first."""
    found = {}
    for tag in run("git", "tag", cwd=repository).stdout.split():
        match = re.match(r"(?:(.+?)[-/])?v?(\d+)\.(\d+)\.(\d+)$", tag)
        if match and bool(match[1]) == ("{chart}" in path):
            found.setdefault(match[1] or repository.parent.name.split("+")[-1], []).append((tuple(int(part) for part in match.groups()[1:]), tag))
    return {chart: sorted(tags) for chart, tags in sorted(found.items())}


def pairs(tags, count):
    """The last step to a new major version, and the newest steps."""
    steps = list(zip(tags, tags[1:]))
    major = [step for step in steps if step[0][0][0] != step[1][0][0]]
    chosen = [("major", *major[-1])] if major else []
    chosen += [("newest", *step) for step in steps[-count:] if step not in major[-1:]]
    return [(sort, old[1], new[1]) for sort, old, new in chosen]


def unpack(repository, tag, path, folder):
    """The chart of a tag; False where it is not there."""
    tree = tag if path == "." else f"{tag}:{path}"
    archive = subprocess.run(["git", "archive", tree], cwd=repository, capture_output=True)
    if archive.returncode or run("git", "cat-file", "-e", f"{tag}:{path}/Chart.yaml".replace(":./", ":"), cwd=repository).returncode:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return True


def shelves(repositories):
    """Where charts are: each repository, the path of its charts, and their tags."""
    for named in repositories:
        place, _, path = named.partition(":")
        place, path = pathlib.Path(place).resolve(), path or "charts/{chart}"
        yield place, path, versions(place, path)


def fits(version, wanted):
    """Whether a version is of a range with one bound, such as 1.2.3, 1.2.x, ~1.2 or ^1.2; False for any other."""
    match = re.match(r"([~^]?)v?(\d+)(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?$", wanted.strip())
    if not match:
        return wanted.strip() == "*"
    parts = [part for part in match.groups()[1:] if part and part.isdigit()]
    least = tuple(int(part) for part in parts)
    same = {"^": 1, "~": min(2, len(least))}.get(match[1], len(least))
    return version[:same] == least[:same] and version >= least


def complete(tools, places, folder):
    """Puts the charts beside a chart that it needs; False where one of them is nowhere."""
    listed = run(tools.helm, "dependency", "list", str(folder)).stdout.splitlines()[1:]
    for name, wanted, *_ in (line.split("\t") for line in listed if line.count("\t") >= 3):
        name, beside = name.strip(), folder / "charts" / name.strip()
        if beside.exists() or list((folder / "charts").glob(f"{name}-*.tgz")):
            continue
        found = [(version, tag, place, path) for place, path, charts in places for version, tag in charts.get(name, [])
                 if fits(version, wanted)]
        if not found:
            return False
        _, tag, place, path = max(found, key=lambda one: one[0])
        if not unpack(place, tag, path.format(chart=name), beside) or not complete(tools, places, beside):
            return False
    return True


def both_ends(tools, places, place, path, chart, old, new):
    """The folders of both versions of a chart; None where one of them cannot be had whole."""
    folder = pathlib.Path(tools.folder).resolve()
    ends = folder / "old" / chart, folder / "new" / chart
    whole = (unpack(place, tag, path.format(chart=chart), end) and complete(tools, places, end) for tag, end in zip((old, new), ends))
    return ends if all(whole) else None


def project(folder, chart, old, new):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "config/samples").mkdir(parents=True)
    (folder / "watches.yaml").write_text(
        f"- group: charts.example.com\n  version: v1\n  kind: Sample\n  chart: helm-charts/{chart}\n"
    )
    (folder / "config/samples/sample.yaml").write_text(
        f"apiVersion: charts.example.com/v1\nkind: Sample\nmetadata:\n  name: {RELEASE}\nspec: {{}}\n"
    )
    shutil.copytree(old, folder / "helm-charts" / chart)
    who = ["-c", "user.name=charts", "-c", "user.email=charts@example.com"]
    for words in (["init", "-q"], ["add", "-A", "-f"], [*who, "commit", "-qm", "old"], ["tag", "old"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    shutil.rmtree(folder / "helm-charts" / chart)
    shutil.copytree(new, folder / "helm-charts" / chart)


def by_opdev(tools, folder):
    began = time.time()
    words = ["--only", "plain", "-o", "json", "--fail-on", "none", "--helm-compat", tools.compat]
    done = run(tools.opdev, "upgrade", "--from", "old", *words, cwd=folder)
    took = time.time() - began
    if done.returncode:
        return {"failed": done.stderr.strip(), "seconds": took}
    report = json.loads(done.stdout)
    refused, rolled, told = set(), set(), []
    for finding in report["findings"]:
        objects = [finding["object"], *finding["others"]]
        names = {"/".join([name.split()[0], name.split("/")[-1]]) for name in objects if name}
        told.append([finding["level"], finding["class"], finding["title"]])
        if finding["class"] == "write-refused":
            refused |= names
        if finding["class"] == "pods-roll":
            rolled |= names
    return {"refused": sorted(refused), "rolled": sorted(rolled), "told": told, "notes": report["notes"], "seconds": took}


def templates(kubectl, env):
    found = {}
    for kind, resource in WORKLOADS.items():
        items = json.loads(run(kubectl, "get", resource, "-n", "default", "-o", "json", env=env).stdout)["items"]
        for item in items:
            found[f"{kind}/{item['metadata']['name']}"] = (item["metadata"]["uid"], item["spec"]["template"])
    return found


def by_helm(tools, folder, old, new):
    """Installs and upgrades with Helm on a fresh API server."""
    config = folder / "kubeconfig"
    config.unlink(missing_ok=True)
    server = subprocess.Popen(
        [tools.opdev, "serve", "--data-dir", str(folder / "data"), "--kubeconfig", str(config)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
    )
    env = dict(os.environ, KUBECONFIG=str(config))
    try:
        deadline = time.time() + 30
        while not config.exists() or run(tools.kubectl, "get", "--raw", "/readyz", env=env).returncode:
            if time.time() > deadline:
                return {"failed": "opdev serve does not come up"}
            time.sleep(0.05)
        done = run(tools.helm, "install", RELEASE, str(old), "-n", "default", env=env)
        if done.returncode:
            return {"failed": done.stderr.strip()}
        before = templates(tools.kubectl, env)
        done = run(tools.helm, "upgrade", RELEASE, str(new), "-n", "default", env=env)
        after = templates(tools.kubectl, env)
    finally:
        server.terminate()
        server.wait()
    said = done.stderr.strip() if done.returncode else ""
    refused = {f"{kind}/{name}" for name, kind in REFUSAL.findall(said)}
    rolled = {name for name, (uid, pods) in after.items() if name in before and before[name] != (uid, pods)}
    return {"refused": sorted(refused), "rolled": sorted(rolled), "error": said}


def judged(ours, helms):
    if "failed" in ours or "failed" in helms:
        # What neither can install is the same answer, too.
        return "both fail" if "failed" in ours and "failed" in helms else "one fails"
    if helms["error"] and not helms["refused"]:
        # A template that fails, or a new object that is refused.
        return "same" if any(sort in ("reconcile-fails", "write-refused") for _, sort, _ in ours["told"]) else "differs"
    # Helm 3 stops nothing at the first refusal: it tries the other objects, too.
    return "same" if ours["refused"] == helms["refused"] and ours["rolled"] == helms["rolled"] else "differs"


def arguments():
    """The arguments of a comparison of charts."""
    parser = argparse.ArgumentParser()
    for name in ("opdev", "helm", "kubectl", "folder"):
        parser.add_argument(name)
    parser.add_argument("repositories", nargs="+")
    parser.add_argument("--only", default="")
    parser.add_argument("--compat", default="3")
    return parser


def with_programs(tools):
    """The arguments with the whole paths of the programs."""
    for name in ("opdev", "helm", "kubectl"):
        found = shutil.which(getattr(tools, name)) or sys.exit(f"{getattr(tools, name)}: there is no such program")
        setattr(tools, name, os.path.abspath(found))
    return tools


def main():
    parser = arguments()
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--pairs", default="")
    tools = with_programs(parser.parse_args())
    folder = pathlib.Path(tools.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    only = set(filter(None, tools.only.split(",")))
    rows = []
    places = list(shelves(tools.repositories))
    for place, path, charts in places:
        for chart, tags in charts.items():
            if only and chart not in only:
                continue
            steps = [("named", *pair.split("=")) for pair in tools.pairs.split(",") if pair]
            named = {tag for _, tag in tags}
            for sort, old, new in [step for step in steps if set(step[1:]) <= named] if steps else pairs(tags, tools.steps):
                ends = both_ends(tools, places, place, path, chart, old, new)
                if not ends:
                    continue
                project(folder / "project", chart, *ends)
                ours = by_opdev(tools, folder / "project")
                shutil.rmtree(folder / "data", ignore_errors=True)
                helms = by_helm(tools, folder, *ends)
                row = {"chart": chart, "sort": sort, "old": old, "new": new, "opdev": ours, "helm": helms}
                row["verdict"] = judged(ours, helms)
                rows.append(row)
                print(f"{row['verdict']:<10} {sort:<7} {old} → {new}  {ours['seconds']:.1f} s", flush=True)
                if row["verdict"] in ("differs", "one fails"):
                    print("  opdev:", json.dumps(ours)[:1500], "\n  helm: ", json.dumps(helms)[:1500], flush=True)
    (folder / "pairs.json").write_text(json.dumps(rows, indent=1))
    for verdict in ("same", "both fail", "differs", "one fails"):
        print(verdict, sum(row["verdict"] == verdict for row in rows))
    sys.exit(any(row["verdict"] in ("differs", "one fails") for row in rows))


if __name__ == "__main__":
    main()
