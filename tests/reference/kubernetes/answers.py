#!/usr/bin/env python3
"""Prints what the real server answers to the creation of each object of a file: answers.py KUBECTL KUBECONFIG CASES.

Uids, versions and times are left out. The reference has other addresses for Services than opdev: they are changed to
and fro.
"""

import json
import subprocess
import sys

kubectl, kubeconfig, cases = sys.argv[1:]
THERE, HERE = "10.0.0.77", "10.96.77.7"
NOW = "2026-01-02T03:04:05Z"

for line in open(cases):
    case = json.loads(line.replace(HERE, THERE))
    command = [kubectl, "--kubeconfig", kubeconfig, "create", "-f", "-", "--raw"]
    command.append(case["path"] + "?dryRun=All&fieldManager=tester")
    asked = subprocess.run(command, input=json.dumps(case["object"]), capture_output=True, text=True)
    if asked.returncode:
        sys.exit(f"{case['object']['kind']}: {asked.stderr}")
    answer = json.loads(asked.stdout.replace(THERE, HERE))
    for field in ["uid", "resourceVersion", "creationTimestamp"]:
        answer["metadata"].pop(field, None)
    for entry in answer["metadata"].get("managedFields", []):
        entry.pop("time")
    if "lastPhaseTransitionTime" in answer.get("status", {}):
        answer["status"]["lastPhaseTransitionTime"] = NOW
    print(json.dumps(answer, separators=(",", ":"), sort_keys=True))
