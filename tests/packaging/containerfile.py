#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a Containerfile, and runs one in a root of debootstrap instead of an image.

containerfile.py check FILE...
containerfile.py run FILE --context FOLDER --root FOLDER [--mirror URL] [-- WORDS...]
containerfile.py exec --root FOLDER -- WORDS...

`run` needs root and debootstrap. It takes files of one stage FROM debian:SUITE. COPY copies from the context, RUN runs
in the root, and the entry point is run with CMD, or with WORDS in its place, in an empty folder of WORKDIR. It ends
with the exit code of the entry point. `exec` runs something else in such a root. Exit code 2: a file that cannot be read or run.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

KNOWN = {"FROM", "COPY", "RUN", "ENV", "WORKDIR", "ENTRYPOINT", "CMD"}
# What gets a package manager to the network of this machine.
NETWORK = re.compile(r"^(https?_proxy|no_proxy|pip_(cert|index_url|extra_index_url|default_timeout|trusted_host)|ssl_cert_file)$", re.I)


class BadFile(Exception):
    pass


@dataclasses.dataclass
class Instruction:
    line: int
    name: str
    text: str


def instructions_of(text, where):
    """Comments are gone, and continued lines are joined."""
    found, began, joined = [], 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        began = began if joined else number
        joined += line.strip().removesuffix("\\") + " "
        if line.rstrip().endswith("\\"):
            continue
        name, _, rest = joined.strip().partition(" ")
        if name not in KNOWN:
            raise BadFile(f"{where}:{began}: {name} is none of {', '.join(sorted(KNOWN))}")
        if not rest.strip():
            raise BadFile(f"{where}:{began}: {name} of nothing")
        found.append(Instruction(began, name, rest.strip()))
        joined = ""
    if joined:
        raise BadFile(f"{where}:{began}: the last line is continued")
    return found


def words_of(one, where):
    """Of ENTRYPOINT and CMD, which are a list here: without a shell in front, signals reach the program."""
    try:
        words = json.loads(one.text)
    except ValueError:
        words = None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise BadFile(f"{where}:{one.line}: {one.name} is no list of texts: {one.text}")
    return words


def check_one(one, where, stages):
    if one.name == "FROM":
        found = re.fullmatch(r"([a-z0-9./-]+:[\w.-]+)(?: AS ([a-z]+))?", one.text)
        if not found:
            raise BadFile(f"{where}:{one.line}: FROM image:tag [AS name], not {one.text}")
        stages.append(found[2])
    elif one.name == "RUN":
        done = subprocess.run(["sh", "-n", "-c", one.text], capture_output=True, text=True)
        if done.returncode != 0:
            raise BadFile(f"{where}:{one.line}: {' '.join(done.stderr.split())}")
    elif one.name == "COPY":
        words = shlex.split(one.text)
        source = words[0].removeprefix("--from=") if words[0].startswith("--") else None
        if source is not None and source not in stages[:-1]:
            raise BadFile(f"{where}:{one.line}: no stage in front is named {source}")
        if len(words) < (3 if source else 2):
            raise BadFile(f"{where}:{one.line}: COPY of what, or to where?")
    elif one.name == "ENV" and not re.fullmatch(r"\w+=\S+", one.text):
        raise BadFile(f"{where}:{one.line}: ENV NAME=VALUE, not {one.text}")
    elif one.name in ("ENTRYPOINT", "CMD"):
        words_of(one, where)


def read(path):
    """The instructions of a file. Raises BadFile."""
    found = instructions_of(pathlib.Path(path).read_text(encoding="utf-8"), path)
    stages = []
    for one in found:
        if not stages and one.name != "FROM":
            raise BadFile(f"{path}:{one.line}: {one.name} in front of FROM")
        check_one(one, path, stages)
    if not stages:
        raise BadFile(f"{path}: no FROM")
    return found


class Root:
    """A folder that stands for an image."""

    def __init__(self, folder):
        self.folder = folder
        self.folder_inside = "/"
        kept = {name: value for name, value in os.environ.items() if NETWORK.match(name)}
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                            "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **kept}

    def make(self, suite, mirror):
        if not self.folder.exists():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            partly = self.folder.with_name(self.folder.name + ".part")
            shutil.rmtree(partly, ignore_errors=True)
            subprocess.run(["debootstrap", "--variant=minbase", suite, partly, mirror], check=True,
                           stdout=subprocess.DEVNULL)
            partly.rename(self.folder)
        # As this machine finds its mirror, and whom it trusts.
        for name in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copyfile(name, self.folder / name.lstrip("/"))
        for name in ("PIP_CERT", "SSL_CERT_FILE"):
            if name in os.environ:
                shutil.copyfile(os.environ[name], self.folder / f"etc/{name}.crt")
                self.environment[name] = f"/etc/{name}.crt"

    def run(self, words):
        """The exit code. /proc is there while it runs; debootstrap has made what plumb needs of /dev."""
        inside = ["chroot", self.folder, "env", "-i", *(f"{name}={value}" for name, value in self.environment.items()),
                  "sh", "-c", 'cd "$0" && exec "$@"', self.folder_inside, *words]
        subprocess.run(["mount", "-t", "proc", "proc", self.folder / "proc"], check=True)
        try:
            return subprocess.run(inside, stdin=subprocess.DEVNULL).returncode
        finally:
            subprocess.run(["umount", "-l", self.folder / "proc"], check=True)

    def copy(self, words, context, where):
        *sources, target = words
        there = self.folder / target.lstrip("/")
        there.mkdir(parents=True, exist_ok=True)
        for source in sources:
            found = sorted(context.glob(source))
            if not found:
                raise BadFile(f"{where}: the context has no {source}")
            for path in found:
                (shutil.copytree if path.is_dir() else shutil.copy)(path, there / path.name)


def run(given):
    found = read(given.file)
    entry, arguments = [], []
    base = re.fullmatch(r"debian:(\w+)", found[0].text)
    if not base or any(one.name == "FROM" for one in found[1:]):
        raise BadFile(f"{given.file}: one stage FROM debian:SUITE can be run here")
    root = Root(given.root.resolve())
    root.make(base[1], given.mirror)
    for one in found[1:]:
        print(f"{one.name} {one.text}", flush=True)
        if one.name == "RUN" and (code := root.run(["sh", "-c", one.text])) != 0:
            raise BadFile(f"{given.file}:{one.line}: RUN ended with {code}")
        if one.name == "COPY":
            root.copy(shlex.split(one.text), given.context, f"{given.file}:{one.line}")
        elif one.name == "ENV":
            name, _, value = one.text.partition("=")
            root.environment[name] = value
        elif one.name == "WORKDIR":
            (root.folder / one.text.lstrip("/")).mkdir(parents=True, exist_ok=True)
            root.folder_inside = one.text
        elif one.name == "ENTRYPOINT":
            entry = words_of(one, given.file)
        elif one.name == "CMD":
            arguments = words_of(one, given.file)
    words = [*entry, *(given.words or arguments)]
    print(shlex.join(words), flush=True)
    return root.run(words)


def main():
    arguments = argparse.ArgumentParser(description="Check a Containerfile, or run it in a root of debootstrap.")
    commands = arguments.add_subparsers(dest="command", required=True)
    checked = commands.add_parser("check")
    checked.add_argument("files", nargs="+")
    one = commands.add_parser("run")
    one.add_argument("file")
    one.add_argument("--context", type=pathlib.Path, required=True)
    one.add_argument("--root", type=pathlib.Path, required=True, help="is made if it is not there")
    one.add_argument("--mirror", default="http://deb.debian.org/debian")
    other = commands.add_parser("exec")
    other.add_argument("--root", type=pathlib.Path, required=True)
    # argparse gives words behind options to whom it likes.
    options, _, words = "\0".join(sys.argv[1:]).partition("\0--\0")
    given = arguments.parse_args(options.split("\0"), argparse.Namespace(words=words.split("\0") if words else []))
    try:
        if given.command == "run":
            return run(given)
        if given.command == "exec":
            return Root(given.root.resolve()).run(given.words)
        for file in given.files:
            print(f"{file}: {len(read(file))} instructions")
        return 0
    except (BadFile, OSError, subprocess.CalledProcessError) as error:
        print(f"containerfile: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
