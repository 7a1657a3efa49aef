#!/usr/bin/env python3
"""The real API server with etcd behind the command line of `opdev serve`: `serve.py serve --kubeconfig FILE`.

For benches that start servers by that command, such as `benches/weight.rs`. The program that README.md builds is
taken from REFERENCE, or from target/reference. No controllers and no node: objects stay as they are written.
Ends, with all that it has started, when its parent ends it or its standard input does.
"""

import argparse
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

PR_SET_PDEATHSIG = 1


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("command", choices=["serve"])
    arguments.add_argument("--kubeconfig", required=True)
    wanted = arguments.parse_args()
    root = pathlib.Path(__file__).resolve().parents[3]
    program = os.environ.get("REFERENCE", str(root / "target" / "reference"))
    folder = tempfile.mkdtemp(prefix="reference-")
    child = subprocess.Popen(
        [program, "up", "--dir", folder, "--controllers=false", "--pods=false", "--fsync=false"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
    try:
        for line in child.stdout:
            if line.startswith("ready after"):
                break
        else:
            sys.exit(f"the API server did not start; its log was in {folder}")
        shutil.copy(os.path.join(folder, "kubeconfig"), wanted.kubeconfig)
        print(line.strip(), flush=True)
        sys.stdin.read()
    finally:
        child.terminate()
        child.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
