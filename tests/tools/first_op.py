#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Applies docs/first_op.md to a copy of the source tree, runs its commands, and counts what its op costs.

    first_op.py count          new files, lines, words in CMake; fails if one is above its limit, or if
                               a block of the page does not fit the source tree
    first_op.py apply FOLDER   copies the source tree into a new folder, with the op
    first_op.py run FOLDER     the same, then runs the page's commands there

Blocks of the page with file=PATH behind their language belong to that file. A block of the language
diff changes the file: its lines with ' ' and '-' have to stand there once, one after the other, and are
replaced by its lines with ' ' and '+'. A block of '+' alone goes to the end. Any other block is a new
file. All blocks of sh are one script, which stops at the first error. Each line of the block of text
behind a block of sh has to be in the output of that block.

A line of the op is a line that is not blank, of a new file or with '+' in a diff. Files in build/ are not
part of the op.
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/first_op.md"
LIMITS = {"new files": 4, "lines": 200, "words in CMake": 1}
MARK = "== end of block"


class PageError(Exception):
    pass


class Block:
    def __init__(self, language, path, text, line):
        self.language, self.path, self.text = language, path, text
        self.place = f"{PAGE}:{line}"

    def lines(self, signs):
        """The lines of a diff that begin with one of these signs, without the sign."""
        return [line[1:] for line in self.text.splitlines() if line[:1] in signs]

    def in_op(self):
        return self.path is not None and not self.path.startswith("build/")


def blocks_of(page):
    fence = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.M | re.S)
    blocks = [Block(found[1], found[2], found[3], page.count("\n", 0, found.start()) + 1)
              for found in fence.finditer(page)]
    if page.count("```") != 2 * len(blocks):
        raise PageError(f"{PAGE}: a block lacks its language or its end")
    for block in blocks:
        if block.path is None and block.language not in ("sh", "text"):
            raise PageError(f"{block.place}: the block lacks file=")
        if block.language == "diff" and len(block.lines(" +-")) != len(block.text.splitlines()):
            raise PageError(f"{block.place}: a line of a diff starts with ' ', '+' or '-'")
    return blocks


def changed(text, block):
    old, new = (f"{chr(10).join(block.lines(signs))}\n" for signs in (" -", " +"))
    if not block.lines(" -"):
        return text + new
    if text.count(old) != 1:
        raise PageError(f"{block.place}: found {text.count(old)} times in {block.path}, not once")
    return text.replace(old, new)


def files_with_op(blocks):
    """The text of each file that the page creates or changes, by path."""
    files = {}
    for block in blocks:
        if block.path is None:
            continue
        there = block.path in files or (ROOT / block.path).is_file()
        if there != (block.language == "diff"):
            raise PageError(f"{block.place}: {block.path} {'exists' if there else 'does not exist'}")
        if block.language != "diff":
            files[block.path] = block.text
        else:
            text = files.get(block.path) or (ROOT / block.path).read_text(encoding="utf-8")
            files[block.path] = changed(text, block)
    return files


def words_changed(block):
    """Number of words that a diff adds or removes."""
    old, new = (" ".join(block.lines(sign)).split() for sign in "-+")
    return sum(abs(old.count(word) - new.count(word)) for word in set(old + new))


def cost_of(blocks):
    op = [block for block in blocks if block.in_op()]
    written = [line for block in op
               for line in (block.lines("+") if block.language == "diff" else block.text.splitlines())]
    cmake = [block for block in op if block.path.endswith("CMakeLists.txt")]
    return {"new files": sum(block.language != "diff" for block in op),
            "lines": sum(bool(line.strip()) for line in written),
            "words in CMake": sum(words_changed(block) for block in cmake)}


def count(blocks):
    files_with_op(blocks)
    cost = cost_of(blocks)
    for what, most in LIMITS.items():
        print(f"{cost[what]} {what}, at most {most}")
    if any(cost[what] > most for what, most in LIMITS.items()):
        raise PageError(f"{PAGE}: the op costs too much")


def copy_tree(folder):
    if folder.exists():
        raise PageError(f"{folder}: exists; name a new folder")
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def apply(blocks, folder):
    files = files_with_op(blocks)
    copy_tree(folder)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def run(blocks, folder):
    apply(blocks, folder)
    sources = [block.path for block in blocks if block.path and block.language in ("c", "cpp")]
    if shutil.which("clang-format-19"):
        subprocess.run(["clang-format-19", "--dry-run", "--Werror", *sources], cwd=folder, check=True)
    commands = [block for block in blocks if block.language == "sh"]
    script = "set -e\n" + "".join(f"{block.text}echo '{MARK}'\n" for block in commands)
    # The compiler cache treats the folder as a separate checkout.
    environment = {**os.environ, "CCACHE_BASEDIR": str(folder.resolve())}
    shell = subprocess.Popen(["sh", "-c", script], cwd=folder, env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = [""]
    for line in shell.stdout:
        print(line, end="", flush=True)
        if line.startswith(MARK):
            output.append("")
        else:
            output[-1] += line
    if shell.wait() != 0:
        raise PageError(f"{commands[len(output) - 1].place}: the commands ended with {shell.returncode}")
    check_output(blocks, output)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{PAGE}: {used.ru_utime + used.ru_stime:.0f} s of processor time")


def check_output(blocks, output):
    said = iter(output)
    for block in (block for block in blocks if block.language in ("sh", "text")):
        if block.language == "sh":
            text = next(said)
            continue
        for line in block.text.splitlines():
            if line not in text:
                raise PageError(f"{block.place}: the commands do not print {line!r}")


def main(arguments):
    blocks = blocks_of((ROOT / PAGE).read_text(encoding="utf-8"))
    if arguments == ["count"]:
        return count(blocks)
    if len(arguments) == 2 and arguments[0] in ("apply", "run"):
        return {"apply": apply, "run": run}[arguments[0]](blocks, pathlib.Path(arguments[1]))
    sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (PageError, subprocess.CalledProcessError) as error:
        sys.exit(f"first_op: {error}")
