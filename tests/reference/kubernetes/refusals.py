#!/usr/bin/env python3
"""Prints what the real server refuses of objects, and what it warns of: refusals.py KUBECONFIG OBJECTS.

OBJECTS has a line for each object: {"path": ..., "object": ...}. The lines printed are those of
src/controlplane/handlers/tests/refusals.jsonl; objects that the server takes without a word are left out.
"""

import base64
import json
import ssl
import sys
import tempfile
import urllib.error
import urllib.request

import yaml


def server(kubeconfig):
    """The address of a kubeconfig's server, and what its client certificate opens."""
    config = yaml.safe_load(open(kubeconfig))
    named = lambda kind, name: next(each[kind] for each in config[kind + "s"] if each["name"] == name)
    context = named("context", config["current-context"])
    cluster, user = named("cluster", context["cluster"]), named("user", context["user"])
    trusted = ssl.create_default_context()
    trusted.check_hostname, trusted.verify_mode = False, ssl.CERT_NONE
    with tempfile.NamedTemporaryFile() as pair:
        for field in ["client-certificate-data", "client-key-data"]:
            pair.write(base64.b64decode(user[field]) + b"\n")
        pair.flush()
        trusted.load_cert_chain(pair.name)
    return cluster["server"], trusted


def ask(address, trusted, path, body):
    """The status code, the warnings and the answer of a creation."""
    asked = urllib.request.Request(
        address + path, method="POST", data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    try:
        answer = urllib.request.urlopen(asked, context=trusted)
    except urllib.error.HTTPError as refused:
        answer = refused
    warnings = answer.headers.get_all("Warning") or []
    return answer.status, warnings, json.load(answer)


def main():
    kubeconfig, objects = sys.argv[1:]
    address, trusted = server(kubeconfig)
    # Without controllers nobody makes it, and pods want it.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    ask(address, trusted, "/api/v1/namespaces/default/serviceaccounts", account)
    for line in open(objects):
        case = json.loads(line)
        code, warnings, answer = ask(address, trusted, case["path"], case["object"])
        if code not in (201, 422):
            print(f"{code}: {answer.get('message')}: {line}", file=sys.stderr)
            continue
        if code == 422 or warnings:
            causes = answer.get("details", {}).get("causes") or [] if code == 422 else []
            said = {"causes": causes, "code": code, "warnings": warnings or None}
            print(json.dumps({**case, **said}, sort_keys=True, separators=(",", ":")))


main()
