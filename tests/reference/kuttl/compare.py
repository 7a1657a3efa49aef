#!/usr/bin/env python3
"""Runs kuttl's own test data through `opdev ci` and says where the two differ.

Usage: compare.py OPDEV [VERSION]     (needs Go for `go mod download`; VERSION is v0.26.0 without it)

Two suites of kuttl's module are taken. `internal/harness/test_data` is what kuttl's integration test runs against envtest: all of
it passes there. `test/junit` is made to fail in known places: kuttl's golden report says which of its tests fail, and in which step.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[3]


def module(version):
    with tempfile.TemporaryDirectory() as scratch:
        (pathlib.Path(scratch) / "go.mod").write_text("module compare\n")
        asked = ["go", "mod", "download", "-json", f"github.com/kudobuilder/kuttl@{version}"]
        answer = subprocess.run(asked, cwd=scratch, check=True, capture_output=True, text=True).stdout
    return pathlib.Path(json.loads(answer)["Dir"])


def copy(source, target):
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755)


def ci(program, project, suite, report):
    words = [program, "ci", suite, "--run-commands", "--timeout", "15s", "--junit", str(report)]
    ended = subprocess.run(words, cwd=project, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


def failures(report):
    """Whether each test failed, by the first step that did; None where all passed."""
    out = {}
    for suite in xml.parse(report).getroot().iter("testsuite"):
        failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None or case.find("error") is not None]
        out[suite.get("name").split("/", 1)[1]] = failed[0] if failed else None
    return out


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    kuttl = module(sys.argv[2] if len(sys.argv) == 3 else "v0.26.0")
    wrong, right = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        project = pathlib.Path(scratch) / "project"
        for part in ("charts", "config"):
            shutil.copytree(ROOT / part, project / part)
        report = project / "report.xml"
        copy(kuttl / "internal/harness/test_crds", project / "crds")
        for test in sorted((kuttl / "internal/harness/test_data").iterdir()):
            folder = project / f"data-{test.name}"
            folder.mkdir()
            copy(test, folder / "tests" / test.name)
            # As the integration test runs them.
            suite = f"kind: TestSuite\napiVersion: kuttl.dev/v1beta1\ntestDirs: [data-{test.name}/tests]\nstartControlPlane: true\ncrdDir: crds\n"
            (folder / "kuttl-test.yaml").write_text(suite)
            code, said = ci(program, project, folder.name, report)
            if code == 0:
                right += 1
            else:
                wrong.append(f"{test.name}: exit code {code}\n{said}")
        copy(kuttl / "test/junit", project / "junit")
        golden = xml.parse(kuttl / "test/junit/kuttl-report-test.xml.golden").getroot()
        wanted = {}
        for suite in golden.iter("testsuite"):
            for case in suite.iter("testcase"):
                failure = case.find("failure")
                step = re.search(r"failed in step (\d+)-(.*)", failure.get("message")) if failure is not None else None
                wanted[f"{suite.get('name')}/{case.get('name')}"] = f"{int(step[1]):02}-{step[2]}" if step else None
        found = {}
        for suite in ("junit/suite1", "junit/suite2"):
            ci(program, project, suite, report)
            found.update(failures(report))
        for test, step in wanted.items():
            if found.get(test, "it did not run") == step:
                right += 1
            else:
                wrong.append(f"{test}: kuttl fails in {step}, opdev in {found.get(test, 'nothing: it did not run')}")
    for one in wrong:
        print(one)
    print(f"{right} passed, {len(wrong)} failed")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
