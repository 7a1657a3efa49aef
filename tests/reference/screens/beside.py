#!/usr/bin/env python3
"""Screens on one large cluster, one after the other: how long until something shows, memory, processor time.

    beside.py --serve target/release/opdev --pods 10000 k9s=PATH now=target/release/opdev before=PATH

Each NAME=PATH is a program; one whose file is called k9s is started as `k9s -A -c pods`, every other one as
`opdev run -A` in this repository. The cluster is `opdev serve` with so many pods of 8 KB and a third as many ConfigMaps,
which belong to nobody. Numbers are of the whole process tree, Linux only; compare only what one run prints.
"""

import argparse
import base64
import fcntl
import http.client
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import ssl
import struct
import subprocess
import tempfile
import termios
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[3]
TICKS = os.sysconf("SC_CLK_TCK")
NAMESPACES = 10


class Cluster:
    """`opdev serve`, and requests to it."""

    def __init__(self, program, folder):
        self.kubeconfig = os.path.join(folder, "kubeconfig")
        self.child = subprocess.Popen([program, "serve", "--kubeconfig", self.kubeconfig], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.child.stdout.readline()
        threading.Thread(target=self.child.stdout.read, daemon=True).start()
        text = pathlib.Path(self.kubeconfig).read_text()
        field = lambda name: re.search(rf'"?{name}"?: *"?([^",\n]+)', text)
        self.server = urllib.parse.urlparse(field("server").group(1))
        self.token = field("token")
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(field("certificate-authority-data").group(1)).decode())
        if field("client-certificate-data"):
            pem = os.path.join(folder, "client.pem")
            with open(pem, "wb") as out:
                for part in ("client-certificate-data", "client-key-data"):
                    out.write(base64.b64decode(field(part).group(1)))
            self.context.load_cert_chain(pem)
        self.local = threading.local()
        self.updates = 0

    def send(self, method, path, body, media="application/json"):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPSConnection(
                self.server.hostname, self.server.port, context=self.context)
        headers = {"Content-Type": media}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token.group(1)}"
        self.local.connection.request(method, path, json.dumps(body), headers)
        answer = self.local.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:300]}")

    def fill(self, pods):
        for n in range(NAMESPACES):
            self.send("POST", "/api/v1/namespaces", {"metadata": {"name": f"team-{n}"}})
        numbers = iter(range(pods + pods // 3))
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    n = next(numbers, None)
                if n is None:
                    return
                if n < pods:
                    self.send("POST", f"/api/v1/namespaces/team-{n % NAMESPACES}/pods", pod(n))
                else:
                    self.send("POST", f"/api/v1/namespaces/team-{n % NAMESPACES}/configmaps", config_map(n))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def update(self, pods):
        """Changes the status of the next pod; no two changes are the same."""
        self.updates += 1
        n = self.updates % pods
        address = ".".join(str(part) for part in (10, *self.updates.to_bytes(3, "big")))
        condition = {"type": "Ready", "status": "True", "message": f"change {self.updates}"}
        self.send("PATCH", f"/api/v1/namespaces/team-{n % NAMESPACES}/pods/app-{n}/status",
                  {"status": {"phase": "Running", "podIP": address, "conditions": [condition]}},
                  "application/merge-patch+json")

    def stop(self):
        self.child.terminate()
        self.child.wait()


def pod(n):
    env = [{"name": f"SETTING_{at}_OF_THE_SERVICE", "value": f"http://backend-{at}.team.svc.cluster.local:8080/{n * 31 + at:x}"}
           for at in range(30)]
    container = {"name": "server", "image": f"registry.example.com/team/app:1.{n % 7}.0", "env": env,
                 "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
                 "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}}}
    return {"metadata": {"name": f"app-{n}", "labels": {"app": f"app-{n % 200}"}},
            "spec": {"nodeName": f"node-{n % 100}", "containers": [container]}}


def config_map(n):
    lines = "".join(f"setting.{at}.of.the.application = {n * 131 + at:024x}\n" for at in range(128))
    return {"metadata": {"name": f"config-{n}"}, "data": {"application.properties": lines}}


class Screen:
    """A program in a terminal of 120 by 36."""

    def __init__(self, command, folder, environment):
        self.seen = ""
        self.begun = time.monotonic()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([self.terminal], [], [], max(0.0, min(0.05, end - time.monotonic())))
            if ready:
                try:
                    self.seen += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:
                    return

    def wait(self, pattern, seconds=120.0):
        """Seconds since the start until the text shows."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if re.search(pattern, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen)):
                return time.monotonic() - self.begun
            self.read(0.02)
        raise SystemExit(f"{pattern} never showed; the screen ended with {self.seen[-2000:]!r}")

    def type(self, keys):
        self.seen = ""
        os.write(self.terminal, keys.encode())

    def settle(self):
        """Waits for two quiet seconds; a program that is never quiet has had thirty."""
        quiet, before = 0, processor(self.pid)
        end = time.monotonic() + 30
        while quiet < 4 and time.monotonic() < end:
            self.read(0.5)
            now = processor(self.pid)
            quiet = quiet + 1 if now - before <= 0.03 else 0
            before = now

    def share(self, seconds):
        before = processor(self.pid)
        self.read(seconds)
        return (processor(self.pid) - before) / seconds * 100

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def processor(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def measure(name, program, cluster, pods):
    home = tempfile.mkdtemp(prefix="home-")
    project = os.path.join(home, "project")
    shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns("target", ".git", ".opdev", "tests", "docs", "src", "benches"))
    environment = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLORTERM": "truecolor",
                   "KUBECONFIG": cluster.kubeconfig, "LANG": "C.UTF-8"}
    is_k9s = os.path.basename(program) == "k9s"
    command = [program, "-A", "-c", "pods"] if is_k9s else [program, "run", "-A", "--kubeconfig", cluster.kubeconfig]
    say = lambda what, value: print(f"{name:<8} {what:<34} {value}", flush=True)
    screen = Screen(command, project, environment)
    try:
        first = screen.wait(r"app-\d+" if is_k9s else r"Memcached|custom resources")
        say("first rows" if is_k9s else "first screen", f"{first:6.2f} s")
        screen.settle()
        say("settled", f"{memory(screen.pid):6.0f} MB {processor(screen.pid):6.2f} s of processor")
        say("at rest", f"{screen.share(10):6.2f} % of a core")
        updates = {"go": True, "count": 0}

        def change():
            begun = time.monotonic()
            while updates["go"]:
                cluster.update(pods)
                updates["count"] += 1
                time.sleep(max(0.0, begun + updates["count"] / 157 - time.monotonic()))

        thread = threading.Thread(target=change)
        thread.start()
        begun = time.monotonic()
        share = screen.share(20)
        rate = updates["count"] / (time.monotonic() - begun)
        updates["go"] = False
        thread.join()
        say(f"with {rate:.0f} changes a second", f"{share:6.2f} % of a core, {memory(screen.pid):.0f} MB")
        if not is_k9s:
            screen.begun = time.monotonic()
            screen.type(":pods\r")
            say("a table of all pods", f"{screen.wait(r'app-[0-9]+'):6.2f} s")
            screen.settle()
            say("… shown", f"{memory(screen.pid):6.0f} MB")
            screen.type("\x1b")
            screen.settle()
            say("… and left", f"{memory(screen.pid):6.0f} MB")
    finally:
        screen.stop()
        shutil.rmtree(home, ignore_errors=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--serve", required=True, help="the opdev whose `serve` is the cluster")
    arguments.add_argument("--pods", type=int, default=10000)
    arguments.add_argument("programs", nargs="+", metavar="NAME=PATH")
    wanted = arguments.parse_args()
    folder = tempfile.mkdtemp(prefix="cluster-")
    cluster = Cluster(os.path.abspath(wanted.serve), folder)
    try:
        begun = time.monotonic()
        cluster.fill(wanted.pods)
        print(f"{wanted.pods} pods and {wanted.pods // 3} ConfigMaps in {time.monotonic() - begun:.0f} s; "
              f"the server has {memory(cluster.child.pid):.0f} MB", flush=True)
        for named in wanted.programs:
            name, path = named.split("=", 1)
            measure(name, os.path.abspath(path), cluster, wanted.pods)
        print(f"the server has {memory(cluster.child.pid):.0f} MB", flush=True)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
