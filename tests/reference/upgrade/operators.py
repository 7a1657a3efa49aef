#!/usr/bin/env python3
"""Rehearses upgrades of public Go operators with `opdev upgrade`, from one tag to another.

Usage: operators.py OPDEV FOLDER MIRRORS OWNER/NAME=FROM=TO...    (needs git and Go)
       --only VARIANTS    some variants only
       --once             without the second run
       --timeout SECONDS  how long a rehearsal may take, builds included; default: 1,800
       --with WORDS       more words for `opdev upgrade`, such as "--manifests deploy"

MIRRORS is a folder with the repositories, each as OWNER+NAME/repo, OWNER+NAME, OWNER/NAME or NAME, bare or not. Each is cloned into
FOLDER, TO is checked out, and `opdev upgrade --from FROM` runs there. It runs twice: the first run builds both programs, the second
one takes what Go has cached, and its time counts. Both have to tell the same. FOLDER gets the reports as
OWNER+NAME@FROM..TO.json, the table of all pairs goes to the terminal. Nothing is judged here: that needs somebody who reads
release notes and code, and README.md has the verdicts.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

LEVELS = ("error", "warning", "hint")


def git(*words, cwd=None):
    return subprocess.run(["git", "-c", "advice.detachedHead=false", *words], cwd=cwd, capture_output=True, text=True)


def mirror(mirrors, name):
    owner, short = name.split("/")
    places = (f"{owner}+{short}/repo", f"{owner}+{short}", f"{owner}/{short}", f"{owner}/{short}.git", short)
    return next((mirrors / place for place in places if (mirrors / place).is_dir()), None)


def checked_out(folder, mirrors, name, new):
    """A clone whose working tree is the newer version, and nothing else; or why there is none."""
    there = folder / "clones" / name.replace("/", "+")
    if not there.is_dir():
        source = mirror(mirrors, name)
        if source is None:
            return None, f"no mirror of {name}"
        done = git("clone", "-q", "--no-checkout", str(source), str(there))
        if done.returncode:
            return None, done.stderr.strip()
    for words in (["checkout", "-q", "--force", "--detach", new], ["clean", "-qfdx"]):
        done = git(*words, cwd=there)
        if done.returncode:
            return None, done.stderr.strip()
    return there, None


def rehearse(tools, project, old):
    """The report of a run and its seconds; or its last words."""
    words = [tools.opdev, "upgrade", "--from", old, "--trust", "--fail-on", "none", "-o", "json", *shlex.split(tools.words)]
    words += ["--only", tools.only] if tools.only else []
    # The operators of others are told of no cluster but opdev's.
    env = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    began = time.time()
    try:
        done = subprocess.run(words, cwd=project, env=env, capture_output=True, text=True, timeout=tools.timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"did not end within {tools.timeout} s", "seconds": tools.timeout}
    seconds = time.time() - began
    if done.returncode:
        return {"failed": done.stderr.strip()[-2000:], "seconds": seconds}
    return {**json.loads(done.stdout), "seconds": seconds}


def told(report):
    """Each finding in one line, without what differs from run to run."""
    rows = []
    for one in report.get("findings", []):
        fields = f" [{', '.join(one['fields'])}]" if one["fields"] else ""
        objects = ", ".join([one["object"], *one["others"]])
        rows.append(f"{one['level']} {one['class']} {objects}{fields} in {', '.join(one['variants'])}")
    return rows


def main():
    parser = argparse.ArgumentParser()
    for name in ("opdev", "folder", "mirrors"):
        parser.add_argument(name)
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--only", default="")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--timeout", type=int, default=1800)
    parser.add_argument("--with", dest="words", default="")
    tools = parser.parse_args()
    found = shutil.which(tools.opdev) or sys.exit(f"{tools.opdev}: there is no such program")
    tools.opdev = os.path.abspath(found)
    folder, mirrors = pathlib.Path(tools.folder).resolve(), pathlib.Path(tools.mirrors).resolve()
    (folder / "clones").mkdir(parents=True, exist_ok=True)
    table, failed = [], False
    for pair in tools.pairs:
        name, old, new = pair.split("=")
        title = f"{name} {old} → {new}"
        print(title, flush=True)
        project, why = checked_out(folder, mirrors, name, new)
        first = rehearse(tools, project, old) if project else {"failed": why, "seconds": 0}
        again = first if tools.once or "failed" in first else rehearse(tools, project, old)
        steady = "failed" not in again and told(first) == told(again)
        kept = folder / f"{name.replace('/', '+')}@{old}..{new}.json"
        kept.write_text(json.dumps({"pair": [name, old, new], "first": first, "again": again, "steady": steady}, indent=1))
        if "failed" in again:
            failed = True
            print("  failed:", again["failed"].replace("\n", "\n    "), flush=True)
            table.append((title, "failed", "", "", "", f"{first['seconds']:.0f}", "", ""))
            continue
        for line in told(again):
            print("  " + line, flush=True)
        if not steady:
            failed = True
            print("  the first run told something else:", *[line for line in told(first) if line not in told(again)], sep="\n    ")
        counts = [sum(one["level"] == level for one in again["findings"]) for level in LEVELS]
        builds = again["buildMs"] / 1000
        table.append((title, again["objects"], *counts, *(f"{one:.0f}" for one in (first["seconds"], again["seconds"], builds))))
    print("| Pair | Objects | Errors | Warnings | Hints | First run, s | Second run, s | Builds in it, s |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for row in table:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.exit(failed)


main()
