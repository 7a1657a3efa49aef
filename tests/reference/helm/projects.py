#!/usr/bin/env python3
"""Makes a project of each chart in a folder, runs `opdev run --embedded --plain` on it with a custom resource that sets
nothing, and says what became of it: installed, or the refusal in opdev's words.

    OPDEV_CHARTS=folder tests/reference/helm/projects.py target/debug/opdev [NAME ...]

Ends with 1 where a chart was not installed."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 300  # seconds for one chart


def project(folder, chart):
    """An Operator SDK Helm project of one chart, with one sample."""
    shutil.copytree(chart, folder / "helm-charts" / chart.name, symlinks=True)
    (folder / "watches.yaml").write_text(
        "- group: charts.example.com\n  version: v1alpha1\n  kind: Sample\n"
        f"  chart: helm-charts/{chart.name}\n"
    )
    (folder / "samples").mkdir()
    (folder / "samples" / "sample.yaml").write_text(
        "apiVersion: charts.example.com/v1alpha1\nkind: Sample\n"
        "metadata:\n  name: sample\n  namespace: default\nspec: {}\n"
    )
    (folder / "opdev.yaml").write_text("applyOnStart: [samples/sample.yaml]\n")


def events(path):
    """Events as they are written; nothing while there is no new one."""
    while not path.exists():
        yield None
    with path.open(encoding="utf-8") as lines:
        rest = ""
        while True:
            rest += lines.readline()
            if rest.endswith("\n"):
                yield json.loads(rest)
                rest = ""
            else:
                yield None


def verdict(process, folder):
    """The outcome of the sample's first finished pass, and what is to say about it."""
    begun = time.monotonic()
    for event in events(folder / ".opdev" / "events.jsonl"):
        if event is None:
            if process.poll() is not None:
                return "ended", (folder / "printed").read_text(encoding="utf-8").strip()[-600:]
            if time.monotonic() - begun > LIMIT:
                return "late", f"nothing within {LIMIT} s"
            time.sleep(0.02)
            continue
        name = event["event"]
        if name == "reloadFailed":
            return "refused", "; ".join(found["message"] for found in event["diagnostics"])
        if name == "reconciled" and event["object"].get("kind") == "Sample":
            outcome = event["outcome"]
            if outcome == "failed":
                return "failed", ": ".join(event["failure"]["chain"])
            if outcome in ("installed", "upgraded", "repaired", "unchanged"):
                return outcome, f"{len(event.get('objects', []))} objects in {event['tookMs']:.0f} ms"
    return "late", ""


def main():
    charts = os.environ.get("OPDEV_CHARTS")
    if len(sys.argv) < 2 or not charts:
        sys.exit(__doc__)
    opdev = pathlib.Path(sys.argv[1]).resolve()
    wanted = sys.argv[2:]
    bad = total = 0
    for chart in sorted(pathlib.Path(charts).resolve().iterdir()):
        if not (chart / "Chart.yaml").exists() or (wanted and chart.name not in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            project(folder, chart)
            with (folder / "printed").open("w", encoding="utf-8") as printed:
                process = subprocess.Popen(
                    [opdev, "run", "--embedded", "--plain"],
                    cwd=folder, stdout=printed, stderr=subprocess.STDOUT,
                )
            outcome, words = verdict(process, folder)
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
        total += 1
        bad += outcome != "installed"
        print(f"{chart.name}: {outcome}: {words}", flush=True)
    print(f"{total - bad} of {total} installed")
    sys.exit(1 if bad or not total else 0)


if __name__ == "__main__":
    main()
