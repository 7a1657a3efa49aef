#!/usr/bin/env python3
"""The relay between an operator's program and a real cluster, beside the same cluster without it.

Starts `opdev serve` as the cluster and `opdev run` on its kubeconfig in a project whose program does nothing, and then calls
with both kubeconfigs: opdev's own for the program, and the cluster's.

    relay.py latency [CALLS]           how much longer a read and a write take, in turn, over connections that stay open
    relay.py soak [SECONDS [WATCHES]]  watches that must see every change in its order, and silent ones that must not end

OPDEV_PROGRAM names the program, target/release/opdev otherwise. Needs Python and nothing else; says what it finds, and fails
where a watch lost something.
"""

import base64
import http.client
import json
import os
import pathlib
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve()
PROGRAM = os.environ.get("OPDEV_PROGRAM", str(HERE.parents[3] / "target/release/opdev"))
MAPS = "/api/v1/namespaces/default/configmaps"
# Kinds that nobody writes: their watches say nothing, and ask for no bookmarks.
SILENT = "/apis/networking.k8s.io/v1/ingresses"


class Connection(http.client.HTTPSConnection):
    """Sends the head and the body of a request in one write, as Go's client does; Python's own sends them one after the other."""

    def request(self, method, path, body, headers):
        written, send = [], self.send
        self.connect() if self.sock is None else None
        self.send = written.append
        try:
            super().request(method, path, body, headers)
        finally:
            del self.send
        send(b"".join(written))


class Way:
    """Calls to an API server by what a kubeconfig says."""

    def __init__(self, path):
        text = pathlib.Path(path).read_text()

        def field(name):
            found = re.search(rf'"?{name}"?:\s*"?([^"\n,}}]+)"?', text)
            return found.group(1).strip() if found else None

        self.host = re.sub(r"^https://", "", field("server"))
        authority = base64.b64decode(field("certificate-authority-data")).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        self.headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if field("token"):
            self.headers["Authorization"] = "Bearer " + field("token")
        else:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
                for name in ("client-certificate-data", "client-key-data"):
                    pair.write(base64.b64decode(field(name)).decode() + "\n")
                pair.flush()
                self.tls.load_cert_chain(pair.name)

    def connect(self):
        return Connection(self.host, context=self.tls)

    def call(self, connection, method, path, body=None):
        connection.request(method, path, json.dumps(body).encode() if body is not None else None, self.headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text)


class World:
    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.folder.name)
        self.processes = []
        cluster, project = root / "cluster", root / "project"
        (project / "config/types").mkdir(parents=True)
        cluster.mkdir()
        (project / "opdev.yaml").write_text("operator: { command: [sleep, '1000000'] }\n")
        env = dict(os.environ, HOME=str(root), XDG_STATE_HOME=str(root / "state"))
        env.pop("KUBECONFIG", None)
        direct = cluster / "kubeconfig"
        self.start(["serve", "--kubeconfig", str(direct)], cluster, env, direct)
        subprocess.run([PROGRAM, "trust"], cwd=project, env=env, check=True, stdout=subprocess.DEVNULL)
        relayed = project / ".opdev/process.kubeconfig"
        self.start(["run", "--plain", "--kubeconfig", str(direct)], project, env, relayed)
        self.direct, self.relayed = Way(direct), Way(relayed)
        return self

    def start(self, arguments, folder, env, until):
        log = open(folder / "out", "w")
        process = subprocess.Popen([PROGRAM, *arguments], cwd=folder, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        while not until.exists() or b"server" not in until.read_bytes():
            if process.poll() is not None:
                raise RuntimeError((folder / "out").read_text())
            time.sleep(0.05)

    @property
    def opdev(self):
        return self.processes[-1].pid

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()
        self.folder.cleanup()


def memory(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024


def processor(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def latency(calls):
    with World() as world:
        ways = {"direct": world.direct, "relayed": world.relayed}
        lines = {name: way.connect() for name, way in ways.items()}
        world.direct.call(world.direct.connect(), "POST", MAPS, config_map("one", at="0"))
        for what in ("get", "put"):
            took = {name: [] for name in ways}
            for at in range(calls + 100):
                for name, way in ways.items():
                    body = config_map("one", at=f"{name}{at}") if what == "put" else None
                    begun = time.perf_counter()
                    way.call(lines[name], what.upper(), f"{MAPS}/one", body)
                    # The first ones warm up.
                    if at >= 100:
                        took[name].append(time.perf_counter() - begun)
            cut = lambda name, share: sorted(took[name])[int(len(took[name]) * share)] * 1e6
            p50, p99 = ({name: cut(name, share) for name in ways} for share in (0.5, 0.99))
            print(
                f"{what}: p50 {p50['direct']:.0f} µs direct, {p50['relayed']:.0f} µs relayed: the relay adds "
                f"{p50['relayed'] - p50['direct']:.0f} µs; p99 {p99['direct']:.0f} and {p99['relayed']:.0f} µs"
            )


class Watch(threading.Thread):
    """Reads a watch and keeps the numbers that it saw, from where it stood when it was cut by its own timeout."""

    def __init__(self, way, path, since):
        super().__init__(daemon=True)
        self.way, self.path, self.since = way, path, since
        self.seen, self.ends, self.trouble = [], 0, None
        self.open = threading.Event()

    def run(self):
        try:
            connection = self.way.connect()
            connection.request("GET", f"{self.path}?watch=true&resourceVersion={self.since}&timeoutSeconds=86400", None, self.way.headers)
            answer = connection.getresponse()
            self.open.set()
            for line in answer:
                event = json.loads(line)
                if event["type"] == "MODIFIED" and event["object"]["metadata"]["name"] == "soak":
                    self.seen.append(int(event["object"]["data"]["at"]))
                elif event["type"] == "ERROR":
                    raise RuntimeError(str(event))
            self.ends += 1
        except Exception as error:
            self.trouble = error


def soak(seconds, count):
    with World() as world:
        writer = world.direct.connect()
        made = world.direct.call(writer, "POST", MAPS, config_map("soak", at="-1"))
        since = made["metadata"]["resourceVersion"]
        # A fifth of them hears nothing at all.
        watches = [Watch(world.relayed, SILENT if at % 5 == 4 else MAPS, since) for at in range(count)]
        for watch in watches:
            watch.start()
        for watch in watches:
            watch.open.wait(60)
        weighed, busy, begun, at = memory(world.opdev), processor(world.opdev), time.monotonic(), 0
        while time.monotonic() - begun < seconds:
            world.direct.call(writer, "PUT", f"{MAPS}/soak", config_map("soak", at=str(at)))
            at += 1
            time.sleep(0.5)
        loud = [watch for watch in watches if watch.path == MAPS]
        silent = [watch for watch in watches if watch.path == SILENT]
        until = time.monotonic() + 60
        while time.monotonic() < until and any(len(watch.seen) < at for watch in loud):
            time.sleep(0.1)
        took = time.monotonic() - begun
        wrong = [watch for watch in loud if watch.seen != list(range(at))]
        ended = [watch for watch in watches if watch.ends or watch.trouble]
        share = (processor(world.opdev) - busy) / took * 100
        print(
            f"{took:.0f} s, {len(loud)} watches that saw {at} changes each, {len(silent)} silent ones: {len(wrong)} lost something, "
            f"{len(ended)} ended ({[str(watch.trouble) for watch in ended][:3]}); memory {weighed:.0f} to {memory(world.opdev):.0f} MB, "
            f"{share:.1f} % of a core"
        )
        return 1 if wrong or ended else 0


def main():
    what, *numbers = sys.argv[1:] or ["latency"]
    numbers = [int(number) for number in numbers]
    if what == "latency":
        return latency(*(numbers or [2000]))
    if what == "soak":
        return soak(*(numbers + [3600, 100][len(numbers):]))
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
