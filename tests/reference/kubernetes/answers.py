#!/usr/bin/env python3
"""Prints what the real server answers to the creation of each object of a file: answers.py KUBECTL KUBECONFIG CASES.

Uids, versions and times are left out.
"""

import json
import subprocess
import sys

kubectl, kubeconfig, cases = sys.argv[1:]
NOW = "2026-01-02T03:04:05Z"

for line in open(cases):
    case = json.loads(line)
    command = [kubectl, "--kubeconfig", kubeconfig, "create", "-f", "-", "--raw"]
    command.append(case["path"] + "?dryRun=All&fieldManager=tester")
    asked = subprocess.run(command, input=json.dumps(case["object"]), capture_output=True, text=True)
    if asked.returncode:
        sys.exit(f"{case['object']['kind']}: {asked.stderr}")
    answer = json.loads(asked.stdout)
    for field in ["uid", "resourceVersion", "creationTimestamp"]:
        answer["metadata"].pop(field, None)
    for entry in answer["metadata"].get("managedFields", []):
        entry.pop("time")
    if "lastPhaseTransitionTime" in answer.get("status", {}):
        answer["status"]["lastPhaseTransitionTime"] = NOW
    print(json.dumps(answer, separators=(",", ":"), sort_keys=True))
