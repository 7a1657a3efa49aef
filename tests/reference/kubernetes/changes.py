#!/usr/bin/env python3
"""Prints what a real server answers to changes of objects: changes.py KUBECTL KUBECONFIG CASES.

Each line of the cases has the object, the path of its collection, and a merge patch. The lines are printed with the
code of the answer and its causes: the field, and what is wrong with it without the value, of which the real server
prints whole Go structs. Each object is made, and stays.
"""

import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

kubectl, kubeconfig, cases = sys.argv[1:]
view = [kubectl, "--kubeconfig", kubeconfig, "config", "view", "--raw", "-o", "json"]
config = json.loads(subprocess.check_output(view))
server = config["clusters"][0]["cluster"]["server"]
token = next(user["user"]["token"] for user in config["users"] if "token" in user["user"])
# Only a server of this machine is asked.
trust = ssl._create_unverified_context()


def ask(method, path, kind, body):
    headers = {"authorization": f"Bearer {token}", "content-type": kind}
    request = urllib.request.Request(server + path, json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, context=trust) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def cause(one):
    words = one["message"].split("\n")[0].rsplit(": ", 1)[-1]
    return [one["field"], words]


for line in open(cases):
    case = json.loads(line)
    code, made = ask("POST", case["path"], "application/json", case["object"])
    if code not in (201, 409):
        sys.exit(f"{case['object']['kind']}: {made['message']}")
    one = f"{case['path']}/{case['object']['metadata']['name']}?dryRun=All"
    case["code"], answer = ask("PATCH", one, "application/merge-patch+json", case["change"])
    causes = answer.get("details", {}).get("causes", []) if case["code"] >= 300 else []
    case["causes"] = sorted(cause(one) for one in causes)
    print(json.dumps(case, separators=(",", ":"), sort_keys=True))
