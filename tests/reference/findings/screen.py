#!/usr/bin/env python3
"""Plants nine typical bugs in the healthy operator of `greeting/`, runs each with `opdev run` in a real terminal, and tells after how
many seconds the screen names it. No key is pressed.

Usage: screen.py OPDEV [BUG...]     (needs Go, kubectl and tmux; without names, all nine and the healthy operator)

SIZES=80x24 runs one size only; FRAMES=FOLDER keeps the screens. Seconds count from the first effect: the custom resource is there,
or what was done by hand has been done. Ends with 1 where a bug is not named within ten seconds after its rule's waiting time, or
where the healthy operator is accused.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CODE = "internal/controller/greeting_controller.go"
SOCKET = f"opdev-screen-{os.getpid()}"

STATUS = "greeting.Status.ObservedGeneration = greeting.Generation\n"
OWNER = """child.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(greeting, child, r.Scheme)"""
CLEAN = """if err := r.Delete(ctx, role); client.IgnoreNotFound(err) != nil {
		return err
	}
	controllerutil.RemoveFinalizer(greeting, finalizer)
	return r.Update(ctx, greeting)"""
TEXT = """	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(greeting, child, r.Scheme)
	})
	return err
"""
CREATE = """	child.Data = map[string]string{"text": greeting.Spec.Text}
	if err := controllerutil.SetControllerReference(greeting, child, r.Scheme); err != nil {
		return err
	}
	if err := r.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	return r.Get(ctx, client.ObjectKeyFromObject(child), child)
"""
FINALIZER = """		if err := r.Update(ctx, greeting); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.role"""
AGAIN = """		if err := r.Update(ctx, greeting); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Get(ctx, req.NamespacedName, greeting); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.role"""
PATCH = "return r.Status().Patch(ctx, greeting, client.MergeFrom(before))"
DELETE = ["delete", "greeting", "hello", "--wait=false"]
LAST = "return ctrl.Result{}, r.status(ctx, greeting)"

# What is replaced in the code, what is done by hand once the sample is at rest, words that the screen has to have, and the waiting
# time of the rule in seconds.
BUGS = {
    "healthy": ([], None, None, 0),
    "create, then read from the cache": ([(TEXT, CREATE)], None, r"stale read", 0),
    "update after a finalizer update": ([(FINALIZER, AGAIN), (PATCH, "return r.Status().Update(ctx, greeting)")], None, r"stale read|conflict", 0),
    "status written each time": (
        [(STATUS, STATUS + "\tnow := metav1.NowMicro()\n\tgreeting.Status.LastChecked = &now\n")], None, r"status written each time", 0),
    "map order": (
        [("\tsort.Slice(env, func(i, j int) bool { return env[i].Name < env[j].Name })\n", ""), ('\t"sort"\n', "")],
        None, r"unstable output", 0),
    "no owner reference": ([(OWNER, OWNER.split("\n")[0] + "\n\t\treturn nil")], DELETE, r"no owner ref", 10),
    "no watch on a child": ([("\t\tOwns(&corev1.Service{}).\n", "")], None, r"no watch", 10),
    "finalizer before the cleanup": (
        [(CLEAN, "controllerutil.RemoveFinalizer(greeting, finalizer)\n\tif err := r.Update(ctx, greeting); err != nil {\n\t\treturn err\n"
          "\t}\n\treturn client.IgnoreNotFound(r.Delete(ctx, role))")], DELETE, r"finalizer taken off too early", 0),
    "Requeue: true for ever": ([(LAST, "return ctrl.Result{Requeue: true}, r.status(ctx, greeting)")], None, r"requeue storm", 10),
    "nil map": ([(LAST, "r.seen[req.NamespacedName]++\n\t" + LAST)], None, r"assignment to entry in nil map", 0),
}


def tmux(*words):
    return subprocess.run(["tmux", "-L", SOCKET, *words], capture_output=True, text=True).stdout


def screen():
    return tmux("capture-pane", "-p", "-t", "a")


class Session:
    """opdev in a terminal, and a second one that follows its events."""

    def __init__(self, program, folder, changes, size):
        self.program, self.project = program, folder / "greeting"
        shutil.copytree(HERE / "greeting", self.project)
        code = (self.project / CODE).read_text()
        for old, new in changes:
            if old not in code:
                sys.exit(f"{CODE} has changed: it lacks {old!r}")
            code = code.replace(old, new)
        (self.project / CODE).write_text(code)
        self.env = dict(os.environ, XDG_STATE_HOME=str(folder / "state"), TERM="xterm-256color")
        self.env.pop("KUBECONFIG", None)
        subprocess.run([program, "trust", "--project", str(self.project)], env=self.env, check=True, capture_output=True)
        width, height = size.split("x")
        words = f"env -u KUBECONFIG XDG_STATE_HOME={folder}/state {program} run --embedded --fresh 2>{folder}/stderr"
        tmux("new-session", "-d", "-s", "a", "-x", width, "-y", height, "-c", str(self.project), words)
        self.started, self.last, self.tail = threading.Event(), time.time(), None
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        while not self.started.is_set():
            self.tail = subprocess.Popen(
                [self.program, "tail", "--json=compact"], cwd=self.project, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for line in self.tail.stdout:
                event = json.loads(line)
                if event["event"] == "reconciled":
                    self.last = time.time()
                if event["event"] == "log" and "Starting workers" in event["message"]:
                    self.started.set()
            time.sleep(0.3)

    def kubectl(self, *words):
        config = self.project / ".opdev/kubeconfig"
        out = subprocess.run(["kubectl", "--kubeconfig", str(config), *words], capture_output=True, text=True)
        if out.returncode:
            sys.exit(f"kubectl {' '.join(words)}: {out.stderr}")

    def rest(self, quiet=3, most=20):
        begin = time.time()
        while time.time() < begin + most and time.time() < max(self.last, begin) + quiet:
            time.sleep(0.1)

    def end(self):
        tmux("kill-server")
        if self.tail:
            self.tail.kill()


def watch(words, begin, most):
    """The seconds until a count stands in the header and until the words stand anywhere, and the screen that had them."""
    header = None
    while time.time() < begin + most:
        frame = screen()
        first = frame.split("\n", 1)[0]
        if header is None and re.search(r"[✗⚠] ?\d", first):
            header = time.time() - begin
        if words and re.search(words, re.sub(r"[\s│]+", " ", frame), re.IGNORECASE):
            return header, time.time() - begin, frame
        time.sleep(0.1)
    return header, None, screen()


def show(program, name, size):
    changes, action, words, wait = BUGS[name]
    with tempfile.TemporaryDirectory() as folder:
        session = Session(program, pathlib.Path(folder), changes, size)
        try:
            if not session.started.wait(300):
                sys.exit(screen())
            session.kubectl("apply", "-f", str(session.project / "config/samples/demo_v1_greeting.yaml"))
            begin = time.time()
            if action:
                session.rest()
                session.kubectl(*action)
                begin = time.time()
            return watch(words, begin, wait + 15 if words else 45)
        finally:
            session.end()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, names = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:] or list(BUGS)
    frames, wrong = os.environ.get("FRAMES"), 0
    told = lambda seconds: "never" if seconds is None else f"{seconds:.1f} s"
    for size in os.environ.get("SIZES", "80x24 120x36").split():
        for name in names:
            header, seconds, frame = show(program, name, size)
            wait = BUGS[name][3]
            good = header is None if name == "healthy" else seconds is not None and seconds <= wait + 10
            wrong += not good
            rest = f" (waits {wait} s)" if wait else ""
            print(f"{'ok  ' if good else 'MISS'} {size:6} {name:34} header {told(header):7} words {told(seconds):7}{rest}", flush=True)
            if frames:
                pathlib.Path(frames).mkdir(parents=True, exist_ok=True)
                (pathlib.Path(frames) / f"{size}-{name.replace(' ', '-').replace(':', '').replace(',', '')}.txt").write_text(frame)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
