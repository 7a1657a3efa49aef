#!/usr/bin/env python3
"""A Go operator under opdev, beside the same by hand, in one run.

    beside.py loop [RUNS]       from a save to the first reconcile of the new program, and from a broken save to the error:
                                opdev, and `go build`, stop and start by hand, in turn; the PodSet operator of ../podset
    beside.py rest [SECONDS]    what opdev takes of a core while an operator of 5 controllers with 1,000 objects does nothing

OPDEV_PROGRAM names the program, target/release/opdev otherwise. Needs Go and Python. Read the ratios: times are those of one
machine.
"""

import importlib.util
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("relay", HERE.parent / "relay/relay.py")
relay = importlib.util.module_from_spec(spec)
spec.loader.exec_module(relay)
PROGRAM = relay.PROGRAM
CONTROLLER = "controllers/podset_controller.go"
SAID = 'fmt.Sprintf("CR has specified %v replicas", instance.Spec.Replicas)'


class Running:
    """A program whose output is read as it grows."""

    def __init__(self, words, folder, env, out):
        self.out = pathlib.Path(out)
        self.file = open(out, "w")
        self.process = subprocess.Popen(words, cwd=folder, env=env, stdout=self.file, stderr=self.file, stdin=subprocess.DEVNULL)

    def until(self, text, patience=900):
        end = time.monotonic() + patience
        while text not in self.out.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no {text}:\n{self.out.read_text()[-2000:]}")
            time.sleep(0.005)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()


class Scratch:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        # The caches of Go are the user's: a cold one is measured by nobody.
        self.env = dict(os.environ, XDG_STATE_HOME=str(self.root / "state"))
        self.env.pop("KUBECONFIG", None)
        self.programs = []

    def __enter__(self):
        return self

    def run(self, words, folder, **more):
        return subprocess.run(words, cwd=folder, env=dict(self.env, **more), capture_output=True, text=True)

    def start(self, words, folder, name, **more):
        program = Running(words, folder, dict(self.env, **more), self.root / name)
        self.programs.append(program)
        return program

    def under_opdev(self, project):
        self.run([PROGRAM, "trust"], project)
        return self.start([PROGRAM, "run", "--embedded", "--fresh", "--plain"], project, "opdev.out")

    def __exit__(self, *_):
        for program in reversed(self.programs):
            program.stop()
        self.folder.cleanup()


def save(project, change):
    """As editors do: a new file beside it, then a rename."""
    path = project / CONTROLLER
    text = change((HERE.parent / "podset" / CONTROLLER).read_text())
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.rename(path)


def podset(way, name):
    path = "/apis/app.example.com/v1alpha1/namespaces/default/podsets"
    body = {"apiVersion": "app.example.com/v1alpha1", "kind": "PodSet", "metadata": {"name": name}, "spec": {"replicas": 1}}
    way.call(way.connect(), "POST", path, body)


class ByHand:
    """What a developer does in two terminals."""

    def __init__(self, scratch):
        self.scratch, self.project = scratch, scratch.root / "hand"
        shutil.copytree(HERE.parent / "podset", self.project)
        kubeconfig = scratch.root / "kubeconfig"
        scratch.start([PROGRAM, "serve", "--kubeconfig", str(kubeconfig)], scratch.root, "serve.out").until("kubeconfig")
        while not kubeconfig.exists():
            time.sleep(0.05)
        self.config = str(kubeconfig)
        for words in (["deepcopy"], ["install", "--kubeconfig", self.config]):
            done = scratch.run([PROGRAM, *words], self.project)
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
        podset(relay.Way(kubeconfig), "one")
        self.program = None

    def build(self):
        return self.scratch.run(["go", "build", "-o", "bin/manager", "."], self.project)

    def saved(self, change, text):
        save(self.project, change)
        begun = time.perf_counter()
        built = self.build()
        if built.returncode:
            raise RuntimeError(built.stderr)
        if self.program:
            self.program.stop()
        words = ["bin/manager", "--metrics-bind-address=0", "--health-probe-bind-address=0"]
        self.program = self.scratch.start(words, self.project, "manager.out", KUBECONFIG=self.config)
        self.program.until(text)
        return time.perf_counter() - begun

    def broken(self, change):
        save(self.project, change)
        begun = time.perf_counter()
        built = self.build()
        assert "undefined: nothing" in built.stderr, built.stderr
        return time.perf_counter() - begun


class WithOpdev:
    def __init__(self, scratch):
        self.project = scratch.root / "opdev"
        shutil.copytree(HERE.parent / "podset", self.project)
        self.program = scratch.under_opdev(self.project)
        self.program.until("starting manager")
        podset(relay.Way(self.project / ".opdev/kubeconfig"), "one")

    def saved(self, change, text):
        save(self.project, change)
        begun = time.perf_counter()
        self.program.until(text)
        return time.perf_counter() - begun

    def broken(self, change):
        # Each broken build says the same: what was said before does not count.
        self.program.out.write_text("")
        return self.saved(change, "undefined: nothing")


def loop(runs):
    with Scratch() as scratch:
        ways = {"by hand": ByHand(scratch), "opdev": WithOpdev(scratch)}
        took = {(what, name): [] for what in ("saved", "broken") for name in ways}
        for run in range(runs + 1):
            for name, way in ways.items():
                said = f"run {run} of {name}"
                seconds = {
                    "saved": way.saved(lambda text: text.replace(SAID, f'"{said}"').replace('\t"fmt"\n', ""), said),
                    "broken": way.broken(lambda text: text.replace(SAID, "nothing").replace('\t"fmt"\n', "")),
                }
                # The first one compiles what it needs.
                for what in seconds if run else ():
                    took[what, name].append(seconds[what])
        for what, words in (("saved", "save to the first reconcile"), ("broken", "broken save to the error")):
            hand, ours = (statistics.median(took[what, name]) for name in ways)
            print(f"{words}: by hand {hand:.2f} s, opdev {ours:.2f} s: {ours / hand:.2f} times, {ours - hand:+.2f} s")


KINDS = ["Red", "Green", "Blue", "White", "Black"]
TYPES = """// +kubebuilder:object:generate=true
// +groupName=rest.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var SchemeBuilder = &scheme.Builder{GroupVersion: schema.GroupVersion{Group: "rest.example.com", Version: "v1"}}

type Spec struct {
	Text string `json:"text,omitempty"`
}
"""
TYPE = """
// +kubebuilder:object:root=true
type KIND struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec `json:"spec,omitempty"`
}

// +kubebuilder:object:root=true
type KINDList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KIND `json:"items"`
}

func init() { SchemeBuilder.Register(&KIND{}, &KINDList{}) }
"""
MAIN = """package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "opdev.local/rest/api/v1"
)

type maker struct {
	client.Client
	kind client.Object
}

func (m *maker) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	owner := m.kind.DeepCopyObject().(client.Object)
	if err := m.Get(ctx, req.NamespacedName, owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	made := &corev1.ConfigMap{}
	made.Namespace, made.Name = req.Namespace, req.Name
	_, err := controllerutil.CreateOrUpdate(ctx, m.Client, made, func() error {
		made.Data = map[string]string{"of": req.Name}
		return controllerutil.SetControllerReference(owner, made, m.Scheme())
	})
	return ctrl.Result{}, err
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(v1.SchemeBuilder.AddToScheme(scheme))
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	must(err)
	for _, kind := range []client.Object{KINDS} {
		must(ctrl.NewControllerManagedBy(manager).For(kind).Owns(&corev1.ConfigMap{}).Complete(&maker{manager.GetClient(), kind}))
	}
	must(manager.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
"""


def rest(seconds):
    with Scratch() as scratch:
        project = scratch.root / "rest"
        (project / "api/v1").mkdir(parents=True)
        (project / "api/v1/types.go").write_text(TYPES + "".join(TYPE.replace("KIND", kind) for kind in KINDS))
        (project / "main.go").write_text(MAIN.replace("KINDS", ", ".join(f"&v1.{kind}{{}}" for kind in KINDS)))
        (project / "go.mod").write_text((HERE / "fleet/go.mod").read_text().replace("opdev.local/fleet", "opdev.local/rest"))
        shutil.copy(HERE / "fleet/go.sum", project)
        opdev = scratch.under_opdev(project)
        opdev.until("Starting workers")
        way = relay.Way(project / ".opdev/kubeconfig")
        line = way.connect()
        for kind in KINDS:
            for at in range(100):
                path = f"/apis/rest.example.com/v1/namespaces/default/{kind.lower()}s"
                name = f"{kind.lower()}-{at}"
                way.call(line, "POST", path, {"apiVersion": "rest.example.com/v1", "kind": kind, "metadata": {"name": name}})
        owned = lambda: sum("ownerReferences" in item["metadata"] for item in way.call(line, "GET", relay.MAPS)["items"])
        while owned() < 500:
            time.sleep(0.5)
        # What was made is told and shown first.
        before = None
        while before != (before := opdev.out.stat().st_size):
            time.sleep(3)
        busy, begun = relay.processor(opdev.process.pid), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - begun
        share = (relay.processor(opdev.process.pid) - busy) / took * 100
        print(
            f"5 controllers, 1,000 objects, at rest for {took:.0f} s: opdev takes {share:.2f} % of a core and "
            f"{relay.memory(opdev.process.pid):.0f} MB"
        )


def main():
    what, *numbers = sys.argv[1:] or [""]
    numbers = [int(number) for number in numbers]
    if what == "loop":
        return loop(*(numbers or [5]))
    if what == "rest":
        return rest(*(numbers or [60]))
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
