#!/usr/bin/env python3
"""Compares `opdev deepcopy` with the real controller-gen on public projects.

usage: compare.py CONTROLLER_GEN OPDEV WORKDIR [FILTER]   (modules of projects.txt)
       compare.py CONTROLLER_GEN OPDEV WORKDIR --folder DIR PATTERNS

Both programs write into copies of their own; every zz_generated.deepcopy.go is compared byte for byte. Exits 1 where a
file differs, or where fewer than 20 projects could be compared.
"""
import json
import os
import shutil
import subprocess
import sys
import time

FILE = "zz_generated.deepcopy.go"
ENV = dict(os.environ, GOFLAGS="-mod=mod", GOWORK="off")


def run(command, folder, env=ENV):
    began = time.time()
    done = subprocess.run(command, cwd=folder, env=env, text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr, time.time() - began


def copy(source, target):
    shutil.rmtree(target, ignore_errors=True)
    skip = shutil.ignore_patterns(".git", "docs", "node_modules")
    shutil.copytree(source, target, ignore=skip, symlinks=True)
    for folder, folders, files in os.walk(target):
        os.chmod(folder, 0o755)
        for name in files:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                continue
            os.chmod(path, 0o644)
            if name == FILE:
                os.remove(path)


def generated(folder):
    found = {}
    for base, _, files in os.walk(folder):
        if FILE in files:
            path = os.path.join(base, FILE)
            with open(path) as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def compare(name, source, patterns, real_program, opdev, work):
    """None where controller-gen itself fails, else the number of files and of differences."""
    real, ours = os.path.join(work, "real"), os.path.join(work, "opdev")
    copy(source, real)
    header = os.path.join(real, "header.txt")
    with open(header, "w") as file:
        file.write("/*\nCopyright YEAR Somebody.\n*/\n")
    paths = [f"paths={pattern}" for pattern in patterns]
    code, said, took = run([real_program, "object:headerFile=header.txt,year=2026", *paths], real)
    if code != 0:
        print(f"{name}: controller-gen fails: {said.strip().splitlines()[:2]}")
        return None
    wanted = generated(real)
    copy(source, ours)
    shutil.copy(header, ours)
    makefile = "generate:\n\tcontroller-gen object:headerFile=header.txt,year=2026 " + " ".join(paths) + "\n"
    for other in ("GNUmakefile", "makefile"):
        if os.path.exists(os.path.join(ours, other)):
            os.remove(os.path.join(ours, other))
    # make reads this name first.
    with open(os.path.join(ours, "GNUmakefile"), "w") as file:
        file.write(makefile)
    code, said, mine = run([opdev, "deepcopy", "--project", ours], ours)
    made = generated(ours)
    wrong = 0
    for path in sorted(set(wanted) | set(made)):
        if wanted.get(path) != made.get(path):
            wrong += 1
            state = "differs" if path in wanted and path in made else "is missing" if path in wanted else "is too much"
            print(f"  {path} {state}")
            keep = os.path.join(work, "differences", name.replace("/", "_"))
            os.makedirs(keep, exist_ok=True)
            for side, texts in (("real", wanted), ("opdev", made)):
                with open(os.path.join(keep, path.replace("/", "_") + "." + side), "w") as file:
                    file.write(texts.get(path, ""))
    if code != 0:
        print("  " + "\n  ".join(said.strip().splitlines()[:12]))
    lines = sum(text.count("\n") for text in wanted.values())
    print(f"{name}: {len(wanted)} files, {lines} lines, {wrong} differ; controller-gen {took:.1f} s, opdev {mine:.2f} s", flush=True)
    return len(wanted), wrong


def main():
    real_program, opdev, work = (os.path.abspath(path) for path in sys.argv[1:4])
    os.makedirs(work, exist_ok=True)
    if sys.argv[4:5] == ["--folder"]:
        done = compare(sys.argv[5], sys.argv[5], sys.argv[6].split(";"), real_program, opdev, work)
        sys.exit(0 if done and done[1] == 0 else 1)
    wanted = sys.argv[4] if len(sys.argv) > 4 else ""
    projects = files = wrong = 0
    here = os.path.dirname(os.path.abspath(__file__))
    for line in open(os.path.join(here, "projects.txt")):
        parts = line.split()
        if not parts or parts[0].startswith("#") or wanted not in parts[0]:
            continue
        module, version, patterns = parts[0], parts[1], parts[2].split(";")
        code, said, _ = run(["go", "mod", "download", "-json", f"{module}@{version}"], work, dict(os.environ, GOFLAGS=""))
        if code != 0:
            print(f"{module}: cannot be downloaded: {said.strip().splitlines()[-1:]}", flush=True)
            continue
        done = compare(f"{module}@{version}", json.loads(said)["Dir"], patterns, real_program, opdev, work)
        if done:
            projects, files, wrong = projects + 1, files + done[0], wrong + done[1]
    print(f"== {projects} projects, {files} files, {wrong} differ")
    sys.exit(0 if wrong == 0 and (projects >= 20 or wanted) else 1)


if __name__ == "__main__":
    main()
