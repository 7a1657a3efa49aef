#!/usr/bin/env python3
"""Renders every case of a folder of charts with a real Helm and with opdev, and compares them byte for byte.

usage: corpus.py OPDEV HELM COMPAT FOLDER [--chart NAME] [--show N]

COMPAT is the version that opdev follows: 3, 4, 3.19 or 4.1. FOLDER has charts/NAME and cases/NAME/CASE.yaml; each chart also
has a case without values. A line that differs between two runs of Helm itself, such as a password, is not compared, but for
how many lines there are. Where Helm refuses a case, opdev has to refuse it, too. Exit code 0 only where all are equal.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys

KUBERNETES = "v1.33.4"


def printed(command):
    run = subprocess.run(command, capture_output=True, env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"}, timeout=300)
    return (run.stdout.split(b"\n"), "") if run.returncode == 0 else (None, run.stderr.decode(errors="replace").strip())


def compare(args, chart, values):
    common = ["rel", str(chart), "-n", "ns", "--kube-version", KUBERNETES, *(["-f", str(values)] if values else [])]
    (first, refused), (second, _) = printed([args.helm, "template", *common]), printed([args.helm, "template", *common])
    own, why = printed([args.opdev, "render", *common, "--helm-compat", args.compat])
    if first is None or second is None or own is None:
        same = first is None and own is None
        return same, "" if same else f"Helm: {refused[:300] or 'renders it'}; opdev: {why[:300] or 'renders it'}"
    if len(first) != len(second):
        return None, "Helm prints another number of lines each time"
    if len(first) != len(own):
        return False, f"{len(own)} lines, Helm prints {len(first)}"
    for number, (one, other, line) in enumerate(zip(first, second, own), 1):
        if one == other != line:
            return False, f"line {number}: {line[:120]!r}, Helm prints {one[:120]!r}"
    return True, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("opdev", "helm", "compat"):
        parser.add_argument(name)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--chart")
    parser.add_argument("--show", type=int, default=20, help="differences that are printed")
    args = parser.parse_args()
    cases = []
    for chart in sorted((args.folder / "charts").iterdir()):
        if args.chart in (None, chart.name):
            values = sorted((args.folder / "cases" / chart.name.removesuffix(".tgz")).glob("*.yaml"))
            cases += [(chart, one) for one in [None, *values]]
    equal = differ = chance = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (chart, values), (same, why) in zip(cases, pool.map(lambda case: compare(args, *case), cases)):
            equal, differ, chance = equal + (same is True), differ + (same is False), chance + (same is None)
            if same is not True and differ + chance <= args.show:
                print(f"{chart.name} {values.stem if values else 'default'}: {why}", flush=True)
    print(f"equal {equal} of {len(cases)}" + (f", {chance} cannot be compared" if chance else ""))
    sys.exit(differ > 0)


main()
