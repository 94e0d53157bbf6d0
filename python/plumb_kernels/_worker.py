# SPDX-License-Identifier: Apache-2.0
"""Process of a Python plug-in. plumb starts it, and it serves the functions of one file.

    python -m plumb_kernels._worker INTERFACE kernels.py
    python -m plumb_kernels._worker INTERFACE kernels.py::name

Standard input is the socket to plumb. INTERFACE must equal this module's digest, because messages are structures in
memory.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
import traceback
from types import ModuleType

from . import _plumb
from ._kernels import BadKernel, Kernel, kernels_of


_imported: dict[str, ModuleType] = {}  # by absolute path, because a file may both declare an op and have its kernel


def import_file(path: str) -> ModuleType:
    """Imports a file once: as part of its package if the folder is one, else under the file's name."""
    path = os.path.abspath(path)
    if path not in _imported:
        _imported[path] = _import(path)
    return _imported[path]


def _import(path: str) -> ModuleType:
    folder, name = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.dirname(folder), f"{os.path.basename(folder)}.{name}"
    sys.path.insert(0, folder)
    if "." in name:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def import_user_file(file: str) -> ModuleType:
    """Imports a user's file. Raises BadKernel: one line with the file, the error and its place."""
    if not os.path.exists(file):
        raise BadKernel(f"{file}: No such file or directory")
    try:
        return import_file(file)
    except BadKernel as error:
        raise BadKernel(f"{file}: {error}") from error
    except BaseException as error:
        frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == os.path.abspath(file)]
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadKernel(f"{file}: cannot be imported: {what}{f' (line {line})' if line else ''}") from error


def load(path: str) -> tuple[list[Kernel], str]:
    """The kernels of kernels.py or kernels.py::name, and the module's version. Raises BadKernel."""
    file, _, wanted = path.partition("::")
    module = import_user_file(file)
    found = [one for one in kernels_of(vars(module).values()) if not wanted or one.name in wanted.split(",")]
    if not found:
        raise BadKernel(f"{file}: has no @kernel function{f' {wanted}' if wanted else ''}")
    of_op: dict[str, Kernel] = {}
    for one in found:
        other = of_op.setdefault(one.op, one)
        if other is not one:
            raise BadKernel(f"{file}: two kernels for {one.op}: {other.name} and {one.name} ({file}::{one.name} names one)")
    return found, str(getattr(module, "__version__", ""))


def serve(control: int, interface: str, path: str) -> None:
    if interface != _plumb.interface_digest():
        _plumb.refuse(control, f"{path}: plumb and the plumb_kernels of {sys.executable} are of different versions")
        return
    try:
        for file in filter(None, os.environ.get("PLUMB_OPS", "").split("\n")):
            import_user_file(file)
        kernels, version = load(path)
        for one in kernels:
            _plumb.add_kernel(one.op, one.name, dict(one.numerics), one.contract, one.before_launch if one.supports or one.platforms else None, one.run)
    except ValueError as error:
        text = str(error)
        _plumb.refuse(control, text if text.startswith(path.partition("::")[0]) else f"{path}: {text}")
        return
    name = os.path.splitext(os.path.basename(path.partition("::")[0]))[0]
    _plumb.serve(control, name, version)


def main(words: list[str]) -> int:
    if len(words) != 2:
        print("plumb_kernels._worker is for plumb itself: plumb run --plugin kernels.py", file=sys.stderr)
        return 2
    # Set before user code runs: only plumb may end this process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.dup2(2, 1)  # standard output belongs to plumb's report
    control = _plumb.take_control()
    if control < 0:
        print("plumb_kernels._worker is for plumb itself: standard input is no socket", file=sys.stderr)
        return 2
    serve(control, *words)
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of the kernels may still run
