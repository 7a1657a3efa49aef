#!/usr/bin/env python3
"""The Operator SDK's helm-operator and `opdev operate` beside each other on `opdev serve`.

usage: beside.py names   --opdev OPDEV --helm-operator BINARY --out FILE
       beside.py measure --opdev OPDEV --helm-operator BINARY [--releases N]

`names` writes the names and labels of the metrics that the real one serves, one series a line: what `tests/it/operate.rs`
asks of opdev. `measure` starts each of them where N releases are installed, and prints the time until `/readyz` answers
200 and until every release was reconciled once, and the resident memory after that.
"""
import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

GROUP = "beside.test"
LONGEST = 240.0
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: site\nversion: 0.1.0\n",
    "values.yaml": "text: hello\n",
    "templates/configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  text: {{ .Values.text }}\n",
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"sites.{GROUP}"},
    "spec": {"group": GROUP, "scope": "Namespaced",
             "names": {"kind": "Site", "listKind": "SiteList", "plural": "sites", "singular": "site"},
             "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]},
}


class Api:
    """Just enough of a client."""

    def __init__(self, kubeconfig):
        text = pathlib.Path(kubeconfig).read_text()
        field = lambda name: re.search(name + r':\s*"?([^"\s,}]+)', text).group(1)
        self.server = field("server").rstrip("/")
        self.tls = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
        self.token = field("token")

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.server + path, method=method)
        request.add_header("Authorization", "Bearer " + self.token)
        request.add_header("Content-Type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, context=self.tls, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (404, 409):
                return None
            raise


def until(what, said, pause=0.01):
    """What a condition gives once it gives something."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        try:
            got = what()
        except (OSError, urllib.error.URLError):
            got = None
        if got:
            return got
        time.sleep(pause)
    sys.exit(f"waited for {said}")


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return answer.read().decode()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class World:
    """`opdev serve`, a project and the objects."""

    def __init__(self, args, work):
        self.args, self.work = args, work
        self.project = work / "project"
        for name, text in CHART.items():
            file = self.project / "charts/site" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (self.project / "watches.yaml").write_text(
            f"- group: {GROUP}\n  version: v1\n  kind: Site\n  chart: charts/site\n  reconcilePeriod: 1h\n")
        self.env = {**os.environ, "HOME": str(work), "KUBECONFIG": str(work / "kubeconfig")}
        serve = [args.opdev, "serve", "--kubeconfig", str(work / "kubeconfig"), "--data-dir", str(work / "data")]
        self.serving = subprocess.Popen(serve, cwd=work, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        until(lambda: (work / "kubeconfig").exists() and (work / "kubeconfig").stat().st_size, "opdev serve")
        self.api = Api(work / "kubeconfig")
        until(lambda: self.api.call("GET", "/api"), "the API server")
        self.api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        until(lambda: self.api.call("GET", f"/apis/{GROUP}/v1/sites"), "the kind")

    def sites(self):
        return self.api.call("GET", f"/apis/{GROUP}/v1/sites")["items"]

    def create(self, count):
        for at in range(count):
            site = {"apiVersion": f"{GROUP}/v1", "kind": "Site", "metadata": {"name": f"s{at:03}"}, "spec": {"text": f"t{at}"}}
            self.api.call("POST", f"/apis/{GROUP}/v1/namespaces/default/sites", site)

    def deployed(self, count):
        has = lambda site: any(one["type"] == "Deployed" and one["status"] == "True"
                               for one in site.get("status", {}).get("conditions", []))
        return sum(map(has, self.sites())) >= count

    def start(self, which, *more):
        ports = {"metrics": free_port(), "probes": free_port()}
        program = [self.args.opdev, "operate"] if which == "opdev" else [self.args.helm_operator, "run"]
        flags = [f"--metrics-bind-address=127.0.0.1:{ports['metrics']}", f"--health-probe-bind-address=127.0.0.1:{ports['probes']}"]
        log = open(self.work / f"{which}.log", "wb")
        return subprocess.Popen(program + flags + list(more), cwd=self.project, env=self.env, stdout=log, stderr=log), ports

    def stop(self):
        self.serving.send_signal(signal.SIGTERM)
        self.serving.wait()


def end(process):
    process.send_signal(signal.SIGTERM)
    return process.wait()


def series(text):
    """The names with their labels' names; Go's own families are left out."""
    shapes = set()
    for line in text.splitlines():
        if not line or line.startswith(("#", "go_")):
            continue
        name, _, rest = line.rsplit(" ", 1)[0].partition("{")
        labels = sorted(re.findall(r'([a-zA-Z_]\w*)="(?:[^"\\]|\\.)*"', rest))
        shapes.add(f"{name}{{{','.join(labels)}}}" if labels else name)
    return sorted(shapes)


def names(world, out):
    world.create(2)
    elect = ["--leader-elect", "--leader-election-id=beside", "--leader-election-namespace=default"]
    operator, ports = world.start("helm-operator", *elect)
    until(lambda: world.deployed(2), "the releases")
    text = until(lambda: get(ports["metrics"], "/metrics"), "the metrics")
    end(operator)
    out.write_text("".join(line + "\n" for line in series(text)))
    print(f"{len(series(text))} series in {out}")


def resident(process, name="VmRSS"):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(name + r":\s+(\d+)", status).group(1)) / 1024


def measure(world, count):
    world.create(count)
    first, _ = world.start("opdev")
    until(lambda: world.deployed(count), "the releases", 0.2)
    end(first)
    for which in ("opdev", "helm-operator", "opdev", "helm-operator"):
        began = time.monotonic()
        operator, ports = world.start(which)
        until(lambda: get(ports["probes"], "/readyz"), "ready", 0.002)
        ready = time.monotonic() - began

        def reconciled():
            sums = re.findall(r"controller_runtime_reconcile_total\{[^}]*\} (\S+)", get(ports["metrics"], "/metrics"))
            return sum(map(float, sums)) >= count

        until(reconciled, "the reconciles", 0.05)
        done = time.monotonic() - began
        print(f"{which:14} ready {ready * 1000:6.0f} ms   {count} reconciled {done * 1000:7.0f} ms   "
              f"RSS {resident(operator):6.1f} MB, {resident(operator, 'RssAnon'):5.1f} MB without files   exit {end(operator)}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["names", "measure"])
    parser.add_argument("--opdev", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--helm-operator", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--releases", type=int, default=100)
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="beside-"))
    world = World(args, work)
    try:
        if args.what == "names":
            names(world, args.out)
        else:
            measure(world, args.releases)
    finally:
        world.stop()
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
