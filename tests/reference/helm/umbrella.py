#!/usr/bin/env python3
"""Umbrella charts at random, rendered by the real Helm and by opdev: globals at several levels, aliases, import-values,
conditions, tags, and nulls in every values file.

usage: umbrella.py OPDEV HELM3 HELM4 [--count N] [--seed N] [--keep DIR]

Each chart prints all its values as JSON, so a difference in any of them is seen. Where Helm itself answers differently
from run to run (it goes through charts and values in no fixed order) the case is counted and not compared.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

KEYS = ["a", "b", "c"]


def scalar(dice):
    return dice.choice(["1", "2", "text", "true", "null", "null"])


def tree(dice, depth):
    """A mapping as lines of flow YAML."""
    entries = []
    for key in KEYS:
        roll = dice.random()
        if roll < 0.35 and depth > 0:
            entries.append(f"{key}: {tree(dice, depth - 1)}")
        elif roll < 0.7:
            entries.append(f"{key}: {scalar(dice)}")
    return "{" + ", ".join(entries) + "}"


def values(dice, subcharts):
    lines = [f"{key}: {tree(dice, 2)}" for key in KEYS if dice.random() < 0.6]
    if dice.random() < 0.7:
        lines.append(f"global: {tree(dice, 3)}")
    if dice.random() < 0.5:
        lines.append(f"exports: {{data: {tree(dice, 2)}}}")
    for name in subcharts:
        if dice.random() < 0.5:
            inner = [f"{key}: {tree(dice, 2)}" for key in KEYS if dice.random() < 0.5]
            if dice.random() < 0.4:
                inner.append(f"global: {tree(dice, 3)}")
            if dice.random() < 0.2:
                inner.append(f"on: {dice.choice(['true', 'false', 'null'])}")
            lines.append(f"{name}: {{{', '.join(inner)}}}")
    return "\n".join(lines) + "\n"


def chart(dice, folder, name, depth):
    os.makedirs(f"{folder}/templates")
    below = [f"s{n}" for n in range(dice.randint(1, 2))] if depth > 0 else []
    listed = dice.random() < 0.75
    names, dependencies = [], []
    for sub in below:
        chart(dice, f"{folder}/charts/{sub}", sub, depth - 1)
        aliases = dice.choice([[""], [""], ["x" + sub], ["x" + sub, "y" + sub]])
        for alias in aliases:
            names.append(alias or sub)
            one = [f"name: {sub}", 'version: "*"']
            if alias:
                one.append(f"alias: {alias}")
            if dice.random() < 0.4:
                imported = dice.choice(["[data]", "[{child: a, parent: b}]", "[{child: b, parent: c.d}, data]"])
                one.append(f"import-values: {imported}")
            if dice.random() < 0.3:
                one.append(f"condition: {alias or sub}.enabled")
            if dice.random() < 0.2:
                one.append("tags: [front]")
            dependencies.append("- {" + ", ".join(one) + "}")
    with open(f"{folder}/Chart.yaml", "w") as file:
        file.write(f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n")
        if below and listed:
            file.write("dependencies:\n" + "\n".join(dependencies) + "\n")
    with open(f"{folder}/values.yaml", "w") as file:
        file.write(values(dice, names if listed else below))
    with open(f"{folder}/templates/all.yaml", "w") as file:
        file.write("values: {{ toJson .Values | quote }}\ntypes: {{ range $k, $v := .Values }}{{ $k }}={{ typeOf $v }};{{ end }}\n")
    return names if listed else below


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout if done.returncode == 0 else f"failed: {done.stderr.strip()[:300]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("opdev")
    parser.add_argument("helm3")
    parser.add_argument("helm4")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="where charts go that differ")
    args = parser.parse_args()
    same = differs = unsteady = 0
    for seed in range(args.seed, args.seed + args.count):
        dice = random.Random(seed)
        folder = tempfile.mkdtemp()
        root = f"{folder}/root"
        names = chart(dice, root, "root", dice.randint(1, 3))
        with open(f"{root}/user.yaml", "w") as file:
            file.write(values(dice, names))
        for compat, helm in (("3", args.helm3), ("4", args.helm4)):
            real = [run([helm, "template", "rel", root, "-f", f"{root}/user.yaml"]) for _ in range(3)]
            if len(set(real)) > 1:
                unsteady += 1
                continue
            got = run([args.opdev, "render", "rel", root, "-f", f"{root}/user.yaml", "--helm-compat", compat])
            if got == real[0] or (got.startswith("failed") and real[0].startswith("failed")):
                same += 1
                continue
            differs += 1
            print(f"seed {seed}, Helm {compat}")
            if args.keep:
                shutil.copytree(root, f"{args.keep}/{seed}-{compat}", dirs_exist_ok=True)
        shutil.rmtree(folder)
    print(f"{same} the same, {differs} differ, {unsteady} that Helm answers differently from run to run")
    sys.exit(differs > 0)


if __name__ == "__main__":
    main()
