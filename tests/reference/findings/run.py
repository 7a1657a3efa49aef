#!/usr/bin/env python3
"""Runs the operator of `operator/` with `opdev run`, shows each of its cases, and compares what opdev tells with what is expected.

Usage: run.py OPDEV [CASE...]     (needs Go and kubectl; without names, all cases)

Each case has a namespace of its own. A fault has to be told by its rule; something healthy must not be told as an error or a
warning for a minute and a half. Where only faults are named, it ends as soon as all of them are told. Prints a table, and ends
with 1 where a row is wrong. KEEP=FILE writes all events of opdev to a file.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SHOWS = "findings.example.com/v1"

# What has to be told, or None, and what is done by hand: seconds after the start (before it where negative), and the arguments
# of kubectl.
TOUCH = ["annotate", "cases.findings.example.com", "a", "touched=yes", "--overwrite"]
DELETE = ["delete", "cases.findings.example.com", "a", "--wait=false"]
CASES = {
    "status-each-time": ("status-each-time", []),
    "healthy-heartbeat": (None, []),
    "healthy-steps": (None, []),
    "unstable-output": ("unstable-output", []),
    "healthy-order": (None, []),
    "hot-loop": ("hot-loop", []),
    "hot-loop-growing": ("hot-loop", []),
    "requeue-storm": ("requeue-storm", []),
    "healthy-poll": (None, []),
    "fight": ("fight", []),
    "object-growth": ("object-growth", []),
    "event-flood": ("event-flood", []),
    "healthy-events": (None, []),
    "write-without-change": ("write-without-change", []),
    "panic": ("panic", []),
    "process-growth": ("process-growth", []),
    "healthy-goroutines": (None, []),
    "kind-missing": ("kind-missing", []),
    "healthy-optional": (None, []),
    "cache-too-wide": ("cache-too-wide", []),
    "slow": ("blocked-worker", []),
    "missing-owner": ("missing-owner", []),
    "healthy-ownerless": (None, [(30, DELETE)]),
    "healthy-kept": (None, [(30, DELETE)]),
    "missing-watch": ("missing-watch", [(20, ["delete", "service", "a"])]),
    "missing-watch-owner": ("missing-watch", []),
    "event-dropped": ("event-dropped", [(8, ["label", "cases.findings.example.com", "a", "tier=gold"])]),
    "cross-namespace-owner": ("cross-namespace-owner", []),
    "foreign-object": ("foreign-object", [(-1, ["create", "configmap", "settings", "--from-literal=owner=somebody"])]),
    "healthy-adopt": (None, [(-1, ["create", "configmap", "mine", "--from-literal=owner=somebody"])]),
    "name-collision": ("name-collision", [(8 + n, ["annotate", "cases.findings.example.com", "ab"[n % 2], f"touched={n}", "--overwrite"]) for n in range(4)]),
    "left-behind": ("left-behind", [(8, ["patch", "cases.findings.example.com", "a", "--type=merge", "-p", '{"spec":{"child":"y"}}']), (10, TOUCH)]),
    "healthy-renamed": (None, [(8, ["patch", "cases.findings.example.com", "a", "--type=merge", "-p", '{"spec":{"child":"y"}}']), (10, TOUCH)]),
    "change-not-applied": ("change-not-applied", [(8, ["patch", "cases.findings.example.com", "a", "--type=merge", "-p", '{"spec":{"child":"y"}}'])]),
    "healthy-applied": (None, [(8, ["patch", "cases.findings.example.com", "a", "--type=merge", "-p", '{"spec":{"child":"y"}}'])]),
    "healthy-unused": (None, [(8, ["patch", "cases.findings.example.com", "a", "--type=merge", "-p", '{"spec":{"child":"y"}}'])]),
    "finalizer-order": ("finalizer-order", [(8, DELETE)]),
    "stuck-deletion": ("stuck-deletion", [(8, DELETE)]),
    "healthy-slow-deletion": (None, [(8, DELETE)]),
    "created-while-deleting": ("created-while-deleting", [(8, DELETE)]),
    "healthy-cleanup-job": (None, [(8, DELETE)]),
    "refused-write": ("refused-write", []),
    "pruned-field": ("pruned-field", []),
    "healthy-nothing": (None, []),
    "lost-status": ("lost-status", []),
    "healthy-both": (None, []),
    "no-observed-generation": ("no-observed-generation", [(8, ["patch", "cases.findings.example.com", "a", "--type=merge", "-p", '{"spec":{"child":"y"}}'])]),
    "same-error": ("same-error", []),
    "stale-read": ("stale-read", []),
    "lost-update": ("lost-update", [(-1, ["create", "configmap", "mine", "--from-literal=a=b", "--from-literal=n=0"])] + [
        (8 + 1.3 * n, ["patch", "configmap", "mine", "--type=merge", "-p", '{"data":{"a":"hand%d"}}' % n]) for n in range(8)]),
    "error-swallowed": ("error-swallowed", []),
    "deprecated-api": ("deprecated-api", []),
    "ready-too-early": ("ready-too-early", []),
    "healthy-ready": (None, []),
    "call-budget": ("call-budget", []),
}
# The same object once more.
AGAIN = ["apply"]
CASES |= {
    "healthy-shared": (None, [(30, DELETE)]),
    "healthy-quantity": (None, []),
    "healthy-cleaner": (None, [(8, ["label", "cases.findings.example.com", "a", "tier=gold"])]),
    "healthy-again": (None, [(20, DELETE), (22, AGAIN)]),
    "healthy-busy": (None, [(n, ["delete", "configmap", "a", "--ignore-not-found"]) for n in (12, 24)]),
    "overlapping-selector": ("overlapping-selector", [(8, TOUCH)]),
    "healthy-selector": (None, [(8, TOUCH)]),
    "foreign-metadata": ("foreign-metadata", [(8, ["annotate", "configmap", "a", "team=a"])]),
    "healthy-metadata": (None, [(8, ["annotate", "configmap", "a", "team=a"])]),
}
MODE = ["patch", "cases.findings.example.com", "a", "--type=merge", "-p", '{"spec":{"env":{"MODE":"new"}}}']
MINE = ["create", "configmap", "mine", "--from-literal=mode=old"]
CHANGED = ["patch", "configmap", "mine", "--type=merge", "-p", '{"data":{"mode":"new"}}']
CASES |= {
    "result-ignored": ("result-ignored", []),
    "healthy-result": (None, []),
    "own-object-gone": ("own-object-gone", [(8, DELETE)]),
    "healthy-gone": (None, [(8, DELETE)]),
    "failure-not-told": ("failure-not-told", []),
    "healthy-failure": (None, []),
    "config-not-rolled": ("config-not-rolled", [(25, MODE)]),
    "healthy-rolled": (None, [(25, MODE)]),
    "healthy-reloader": (None, [(25, MODE)]),
    "healthy-restart": (None, [(25, MODE)]),
    "referenced-unwatched": ("referenced-unwatched", [(-1, MINE), (15, CHANGED)]),
    "referenced-live": ("referenced-unwatched", [
        (-1, ["create", "secret", "generic", "mine", "--from-literal=mode=old"]),
        (15, ["patch", "secret", "mine", "--type=merge", "-p", '{"stringData":{"mode":"new"}}'])]),
    "referenced-listed": ("referenced-unwatched", [
        (-1, ["create", "secret", "generic", "mine", "--from-literal=mode=old"]), (15, ["delete", "secret", "mine"])]),
    "referenced-status": ("referenced-unwatched", [(-1, MINE), (15, CHANGED)]),
    "healthy-referenced": (None, [(-1, MINE), (15, CHANGED)]),
    "healthy-referenced-poll": (None, [(-1, MINE), (15, CHANGED)]),
    "ready-phase": ("ready-too-early", []),
    "healthy-phase": (None, []),
    "name-collision-once": ("name-collision", []),
    "healthy-sum": (None, []),
    "duplicate": ("duplicate", []),
    "healthy-twice": (None, []),
    "stuck-deletion-plain": ("stuck-deletion", [(8, DELETE)]),
}
NEXT = ["patch", "cases.findings.example.com", "a", "--type=merge", "-p", '{"spec":{"child":"release-2"}}']
BY_HAND = ["patch", "configmap", "a", "--type=merge", "-p", '{"data":{"child":"by-hand"}}']
CASES |= {
    "change-half-applied": ("change-not-applied", [(8, NEXT)]),
    "healthy-half-applied": (None, [(8, NEXT)]),
    "healthy-half-later": (None, [(8, NEXT)]),
    "drift-left": ("drift-left", [(8, NEXT), (16, BY_HAND)]),
    "healthy-drift": (None, [(8, NEXT), (16, BY_HAND)]),
    "healthy-create-once": (None, [(16, BY_HAND)]),
}
PAIRS = {"name-collision", "name-collision-once", "healthy-sum", "slow", "healthy-shared", "overlapping-selector", "healthy-selector"}
CHILD = {
    "referenced-live": "mine", "referenced-status": "mine", "healthy-referenced": "mine", "healthy-referenced-poll": "mine",
    "healthy-adopt": "mine", "lost-update": "mine", "referenced-unwatched": "mine", "left-behind": "x", "healthy-renamed": "x", "change-not-applied": "x",
    "healthy-applied": "x", "healthy-unused": "x", "change-half-applied": "release-1", "healthy-half-applied": "release-1",
    "healthy-half-later": "release-1", "drift-left": "release-1", "healthy-drift": "release-1", "healthy-create-once": "release-1",
}
ENV = {"unstable-output", "healthy-order"}
# Seconds that the slowest rule takes, on a busy machine as well.
LAST = 90
# A process is young for a minute, and an idle connection lives for longer.
LONG = {"process-growth": 240, "healthy-goroutines": 240}


class Opdev:
    def __init__(self, program, folder):
        self.folder = folder / "operator"
        shutil.copytree(HERE / "operator", self.folder)
        self.env = dict(os.environ, XDG_STATE_HOME=str(folder / "state"), HOME=os.environ.get("HOME", "/"))
        self.env.pop("KUBECONFIG", None)
        subprocess.run([program, "trust", "--project", str(self.folder)], env=self.env, check=True, capture_output=True)
        words = [program, "run", "--embedded", "--fresh", "--json=compact"]
        self.child = subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=open(folder / "stderr", "w"), text=True)
        self.events, self.started = [], threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            event = json.loads(line)
            self.events.append(event)
            if event["event"] == "log" and "Starting workers" in event["message"]:
                self.started.set()

    def kubectl(self, *arguments, text=None):
        config = self.folder / ".opdev/kubeconfig"
        out = subprocess.run(["kubectl", "--kubeconfig", str(config), *arguments], input=text, capture_output=True, text=True)
        return out.returncode == 0, out.stdout + out.stderr

    def findings(self):
        """The newest telling of each finding."""
        told = {}
        for event in list(self.events):
            if event["event"].startswith("finding"):
                finding = event.get("finding", event)
                told[finding["id"]] = finding
        return list(told.values())


def manifest(name, space):
    spec = {"shows": name}
    if name in CHILD:
        spec["child"] = CHILD[name]
    if name == "healthy-quantity":
        spec["cpu"] = "1000m"
    if name in ENV:
        spec["env"] = {letter: letter.lower() for letter in "ABCDEF"}
    return json.dumps({"apiVersion": SHOWS, "kind": "Case", "metadata": {"name": "a", "namespace": space}, "spec": spec})


def show(opdev, names):
    spaces = {name: name for name in names}
    for space in spaces.values():
        opdev.kubectl("create", "namespace", space)
    begin = time.time()
    plan = []
    for name in names:
        for after, words in CASES[name][1]:
            if after < 0:
                opdev.kubectl("-n", spaces[name], *words)
            else:
                plan.append((after, name, words))
    fine, said = opdev.kubectl("apply", "-f", "-", text="\n".join(manifest(name, spaces[name]) for name in names))
    if not fine:
        sys.exit(f"kubectl apply: {said}")
    for name in PAIRS.intersection(names):
        opdev.kubectl("apply", "-f", "-", text=manifest(name, name).replace('"name": "a"', '"name": "b"'))
    for after, name, words in sorted(plan, key=lambda step: step[0]):
        time.sleep(max(0, begin + after - time.time()))
        if words == AGAIN:
            fine, said = opdev.kubectl("apply", "-f", "-", text=manifest(name, spaces[name]))
        else:
            fine, said = opdev.kubectl("-n", spaces[name], *words)
        if not fine:
            print(f"{name}: kubectl {' '.join(words)}: {said.strip()}")
    faults = all(CASES[name][0] for name in names)
    last = max(LONG.get(name, LAST) for name in names)
    while time.time() < begin + last and not (faults and all(is_told(name, opdev.findings()) for name in names)):
        time.sleep(0.5)


def told_of(name, findings):
    """What is told of a case, by rule."""
    told = {}
    for finding in findings:
        places = [place for place in (finding.get("object"), finding.get("about")) if place]
        # A kind that is missing is in no namespace.
        missing = finding["rule"] == name == "kind-missing"
        if missing or any(place.get("namespace", place.get("name")) == name for place in places):
            told.setdefault(finding["rule"], finding)
    return told


def is_told(name, findings):
    told, expected = told_of(name, findings), CASES[name][0]
    return expected in told or any(expected in (finding.get("explains") or []) for finding in told.values())


def judge(names, findings):
    wrong = 0
    for name in names:
        told, expected = told_of(name, findings), CASES[name][0]
        accused = {rule: finding["severity"] for rule, finding in told.items() if finding["severity"] != "hint"}
        if expected:
            good = is_told(name, findings)
            beside = {rule: severity for rule, severity in accused.items() if rule != expected}
        else:
            good, beside = not accused, {}
        wrong += not good
        rest = ", ".join(f"{rule} ({severity})" for rule, severity in (beside if expected else accused).items())
        first = told.get(expected)
        line = f"  {first['severity']}: {first['title']}" if first else ""
        if first and first.get("place"):
            line += f" ({first['place']['file']}:{first['place']['line']})"
        print(f"{'ok  ' if good else 'MISS' if expected else 'FALSE'} {name:24}{line}{'  + ' + rest if rest else ''}")
    return wrong


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    names = sys.argv[2:] or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        opdev = Opdev(program, pathlib.Path(folder))
        try:
            if not opdev.started.wait(300):
                sys.exit((pathlib.Path(folder) / "stderr").read_text())
            time.sleep(3)
            show(opdev, names)
            findings = opdev.findings()
            if os.environ.get("KEEP"):
                pathlib.Path(os.environ["KEEP"]).write_text(json.dumps(opdev.events))
        finally:
            opdev.child.terminate()
            opdev.child.wait(20)
    wrong = judge(names, findings)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
