#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the commands of the pages run? Each line `plumb …` or `$ plumb …` of a code block of README.md and docs/.

commands.py --program PLUMB --plugin LIB.so [--list] [PAGE...]

Every command has to end with exit code 0. A comment in front of the block says what is different:

    <!-- commands
    not run (plumb bench): minutes
    exit 1 (plumb run --case decode_step): the fault is found
    -->

The text in parentheses is how the command begins; without it the line is about the whole block. A
reason is required. A line that fits no command is an error, so that marks do not outlive their
commands. Each block has a folder of its own, with kernels.so, base.so and change.so (the plug-in) and
the examples. Exit code 1: a command, or a mark, is wrong.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MARK = re.compile(r"^(?:(not run)|exit (\d+))(?: \(([^)]+)\))?: *(.*)$")
WRITES_INTO_THE_STORE = re.compile(r"^plumb golden (regen|approve)\b(?!.*--goldens)")
SECONDS = 300


@dataclasses.dataclass
class Mark:
    line: int
    exit_code: int | None  # None: not run
    beginning: str
    used: bool = False


@dataclasses.dataclass
class Command:
    line: int
    text: str


@dataclasses.dataclass
class Block:
    marks: list[Mark]
    commands: list[Command] = dataclasses.field(default_factory=list)


class BadMark(Exception):
    pass


def parse_mark(where, number, text):
    found = MARK.match(text.strip())
    if not found:
        raise BadMark(f"{where}:{number}: neither \"not run …: why\" nor \"exit N …: why\": {text.strip()}")
    if not found[4]:
        raise BadMark(f"{where}:{number}: a mark needs a reason")
    return Mark(number, None if found[1] else int(found[2]), " ".join((found[3] or "").split()))


def blocks_of(text, where):
    """The code blocks of a page, each with the marks before it."""
    blocks, marks, block = [], [], None
    fenced = commenting = joined = False
    for number, line in enumerate(text.split("\n"), 1):
        if commenting:
            commenting = line.strip() != "-->"
            if commenting:
                marks.append(parse_mark(where, number, line))
            continue
        if line.strip() == "<!-- commands":
            commenting, block = True, None
            continue
        fence = line.lstrip().startswith("```")
        if fence:
            fenced, block = not fenced, None
        inside = (fenced and not fence) or line.startswith("    ")
        if inside and block is None:
            block, marks = Block(marks), []
            blocks.append(block)
        if inside:
            joined = add_line(block, number, line.strip(), joined)
        elif line.strip():
            block, joined = None, False
            if not fence and marks:
                raise BadMark(f"{where}:{marks[0].line}: no code block follows")
    if marks:
        raise BadMark(f"{where}:{marks[0].line}: no code block follows")
    return blocks


def add_line(block, number, line, joined):
    """Adds a line to the block. Returns whether the next line belongs to the same command."""
    line = line.removeprefix("$ ")
    if joined:
        block.commands[-1].text += " " + line.removesuffix("\\").strip()
    elif line.startswith("plumb "):
        block.commands.append(Command(number, line.removesuffix("\\").strip()))
    else:
        return False
    return line.endswith("\\")


def mark_of(block, command):
    """The last matching mark applies."""
    chosen = None
    for mark in block.marks:
        if " ".join(command.text.split()).startswith(mark.beginning):
            mark.used, chosen = True, mark
    return chosen


def run(command, folder, environment, seconds):
    """(exit code, last lines)"""
    try:
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, errors="replace")
    except subprocess.TimeoutExpired:
        return None, f"not done after {seconds} s"
    return done.returncode, "\n".join(done.stdout.rstrip().split("\n")[-3:])


def make_folder(folder, given):
    for name in ("kernels.so", "base.so", "change.so"):
        (folder / name).symlink_to(given.plugin.resolve())
    (folder / "examples").symlink_to(given.root / "examples")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "plumb").symlink_to(given.program.resolve())
    return os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}


def check_block(block, where, given, counts):
    """Lines about what is wrong in a block."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = make_folder(folder, given)
        for command in block.commands:
            mark = mark_of(block, command)
            skipped = mark is not None and mark.exit_code is None
            counts["not run" if skipped else "run"] += 1
            if given.list:
                print(f"{where}:{command.line}: {'not run: ' if skipped else ''}{command.text}")
            if skipped or given.list:
                continue
            if WRITES_INTO_THE_STORE.match(command.text):
                wrong.append(f"{where}:{command.line}: {command.text}\n    would write into the store: it needs a mark")
                continue
            began = time.monotonic()
            code, tail = run(command.text, folder, environment, given.seconds)
            if given.verbose:
                print(f"{time.monotonic() - began:6.1f} s  {where}:{command.line}: {command.text}", flush=True)
            wanted = mark.exit_code if mark else 0
            if code != wanted:
                wrong.append(f"{where}:{command.line}: {command.text}\n    exit code {code}, expected {wanted}\n{tail}")
    wrong += [f"{where}:{mark.line}: the mark fits no command of its block" for mark in block.marks if not mark.used]
    return wrong


def check(given):
    wrong, counts = [], {"run": 0, "not run": 0}
    pages = given.pages or [given.root / "README.md", *sorted((given.root / "docs").rglob("*.md"))]
    for page in pages:
        where = os.path.relpath(page, given.root)
        try:
            for block in blocks_of(page.read_text(encoding="utf-8"), where):
                wrong += check_block(block, where, given, counts)
        except BadMark as error:
            wrong.append(str(error))
    if not any(counts.values()):
        wrong.append("no page has a command")
    return wrong, counts


def main():
    arguments = argparse.ArgumentParser(description="Run the commands of README.md and docs/.")
    arguments.add_argument("--program", type=pathlib.Path, required=True)
    arguments.add_argument("--plugin", type=pathlib.Path, required=True)
    arguments.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments.add_argument("--list", action="store_true", help="run nothing")
    arguments.add_argument("--verbose", action="store_true", help="the seconds of each command")
    arguments.add_argument("--seconds", type=float, default=SECONDS, help="that a command may take")
    arguments.add_argument("pages", nargs="*", type=pathlib.Path)
    wrong, counts = check(arguments.parse_args())
    print("\n".join(wrong + [f"{counts['run']} commands run, {counts['not run']} not run, {len(wrong)} wrong"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
