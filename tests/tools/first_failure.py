#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long is the way from `pip install` to a named error? first_failure.py WHEEL [--seconds 60] [--python PYTHON]

README.md, "Install", has a broken kernel in numpy (broken.py), a command, and what plumb says of it. This program installs
the wheel in a clean environment, writes the kernel into an empty folder and runs the command. Exit code 1: the kernel does
not fail, a line that the page shows is missing, or it took longer.
"""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

# What plumb has to call the error of that kernel.
NAMED = "rms_norm.out.last_row (does not write the last row of out)"
PAGE = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def kernel_and_lines(page):
    """broken.py, the command that runs it, and the lines that it has to print, as the page has them."""
    blocks = [re.sub("^    ", "", block, flags=re.M).strip("\n") for block in re.findall(r"(?:^(?:    .*)?\n)+", page, re.M)]
    kernel = [block for block in blocks if block.startswith("# broken.py")]
    session = [block for block in blocks if block.startswith("$ plumb run --plugin broken.py")]
    if len(kernel) != 1 or len(session) != 1:
        raise ValueError(f"{len(kernel)} kernels and {len(session)} commands, not one of each")
    command, *lines = session[0].split("\n")
    return kernel[0], command.removeprefix("$ ").split(), [line.strip() for line in lines if line.strip() not in ("", "...")]


def missing(lines, said):
    """The page cuts the ends of long lines with an ellipsis."""
    return [line for line in lines if line.removesuffix("…").strip() not in said]


def wrong_with(code, said, lines, seconds, most):
    """Lines: what is not as the page says."""
    wrong = [f"not printed: {line}" for line in missing([f"looks like: {NAMED}", *lines], said)]
    if code != 1:
        wrong.append(f"exit code {code}: a broken kernel ends with 1")
    if not seconds <= most:
        wrong.append(f"longer than {most} s")
    return wrong


def processor_seconds():
    """Of the children so far: on a machine that does other things too, this says what the way costs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("wheel", type=pathlib.Path)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--python", default=sys.executable)
    given = arguments.parse_args()
    kernel, command, lines = kernel_and_lines(PAGE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([given.python, "-m", "venv", folder / "venv"], check=True)
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PLUMB_PROGRAM", "PLUMB_PYTHON")}
        environment["PATH"] = f"{folder / 'venv/bin'}:{environment['PATH']}"
        began, worked = time.monotonic(), processor_seconds()
        subprocess.run(["pip", "install", "-q", given.wheel.resolve()], check=True, env=environment)
        installed = time.monotonic()
        (folder / "broken.py").write_text(kernel)
        done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
        seconds = time.monotonic() - began
    print(done.stdout, done.stderr, sep="")
    worked = processor_seconds() - worked
    wrong = wrong_with(done.returncode, done.stdout, lines, seconds, given.seconds)
    print("\n".join([*wrong, f"{seconds:.1f} s from pip install to the error, {installed - began:.1f} s of them pip's; "
                             f"{worked:.1f} s of processor time"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
