#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The workflows of examples/ci: YAML of the shape that GitHub takes, plumb commands that plumb's parser takes, and an
artifact for every report that they write. PLUMB_PROGRAM names the program."""
import fnmatch
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/ci"
UNKNOWN = "--an-option-that-plumb-does-not-have"
# plumb's parser reads all other words before it complains about one that it does not know.
PARSE_ONLY = f"""#!/bin/sh
said=$("$PLUMB_PROGRAM" "$@" {UNKNOWN} 2>&1 >/dev/null)
printf '%s\\n' "$*" >>"$CALLS"
[ "$said" = "plumb: The following argument was not expected: {UNKNOWN}" ] && exit 0
printf 'plumb %s\\n  %s\\n' "$*" "$said" >&2
exit 1
"""


def read(text):
    """The jobs of a workflow, by name. Raises ValueError, or YAMLError."""
    found = yaml.safe_load(text)
    if not isinstance(found, dict) or True not in found or "jobs" not in found:  # YAML 1.1 reads `on` as true
        raise ValueError("no workflow: on and jobs are missing")
    for name, job in found["jobs"].items():
        if "runs-on" not in job or not job.get("steps"):
            raise ValueError(f"job {name}: runs-on or steps are missing")
        for step in job["steps"]:
            if ("run" in step) == ("uses" in step):
                raise ValueError(f"job {name}: a step runs something or uses something: {step}")
            if "uses" in step and not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]):
                raise ValueError(f"job {name}: no action with a version: {step['uses']}")
    return found["jobs"]


def scripts_of(job):
    """What the steps run, with 1 for each expression of GitHub."""
    return [re.sub(r"\$\{\{.*?\}\}", "1", step["run"]) for step in job["steps"] if "run" in step]


def written_by(script):
    """Files that the commands of a script write."""
    words = shlex.split(script)
    return [after for word, after in zip(words, words[1:]) if word in ("--json", "--junit", "--html", "-o")]


def uploaded_by(job):
    paths = [step["with"]["path"] for step in job["steps"] if step.get("uses", "").startswith("actions/upload-artifact@")]
    return [re.sub(r"\$\{\{.*?\}\}", "1", line) for path in paths for line in path.split("\n")]


def parse_commands(script):
    """(exit code, what was wrong, the plumb commands)"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program, text in (("plumb", PARSE_ONLY), ("pip", "#!/bin/sh\n")):
            (folder / program).write_text(text)
            (folder / program).chmod(0o755)
        environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(folder / "calls")}
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True,
                              text=True)
        calls = folder / "calls"
        return done.returncode, done.stderr, calls.read_text().splitlines() if calls.exists() else []


class Workflows(unittest.TestCase):
    def jobs(self):
        for file in sorted(FOLDER.glob("*.yml")):
            for name, job in read(file.read_text()).items():
                yield f"{file.name}: {name}", job

    def test_each_command_is_one_that_plumb_takes(self):
        commands = []
        for where, job in self.jobs():
            for script in scripts_of(job):
                code, wrong, calls = parse_commands(script)
                self.assertEqual(code, 0, f"{where}: {wrong}")
                commands += calls
        self.assertEqual({call.split()[0] for call in commands}, {"run", "merge", "report", "agreement"})

    def test_each_report_is_an_artifact(self):
        kinds = set()
        for where, job in self.jobs():
            uploaded = uploaded_by(job)
            for script in scripts_of(job):
                for file in written_by(script):
                    self.assertTrue(any(fnmatch.fnmatch(file, path) for path in uploaded), f"{where}: {file} in {uploaded}")
                    kinds.add(pathlib.Path(file).suffix)
        self.assertEqual(kinds, {".json", ".xml", ".html"})

    def test_a_wrong_command_is_found(self):
        for script in ("plumb run --teir smoke", "plumb run --jobs many", "plumb agree", "plumb report -o x.html"):
            self.assertEqual(parse_commands(script)[0], 1, script)

    def test_a_wrong_workflow_is_found(self):
        job = "on: push\njobs: {a: {runs-on: x, steps: [%s]}}"
        self.assertEqual(list(read(job % "{run: make}")), ["a"])
        for text in ("jobs: {}", job % "", job % "{run: make, uses: a/b@v1}", job % "{uses: a/b}", "on: [push"):
            with self.assertRaises((ValueError, yaml.YAMLError), msg=text):
                read(text)


if __name__ == "__main__":
    unittest.main()
