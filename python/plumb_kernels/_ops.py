# SPDX-License-Identifier: Apache-2.0
"""Worker process for a file with declared ops. plumb run --ops FILE.py starts it to compute their references.

    python -m plumb_kernels._ops INTERFACE my_ops.py

Descriptor 3 is the channel to plumb. INTERFACE must equal this module's digest, because both processes build the
arguments of a launch.
"""

from __future__ import annotations

import os
import signal
import sys

from . import _plumb
from ._worker import import_user_file


def refusal(interface: str, path: str) -> str:
    """Imports the file. Returns the reason why its ops cannot be used; "": none."""
    if interface != _plumb.interface_digest():
        return f"{path}: plumb and the plumb_kernels of {sys.executable} are of different versions"
    try:
        import_user_file(path)
    except ValueError as error:
        return str(error)
    return "" if _plumb.has_own_ops() else f"{path}: declares no @op"


def main(words: list[str]) -> int:
    if len(words) != 2 or not _plumb.is_ops_worker():
        print("plumb_kernels._ops is for plumb itself: plumb run --ops my_ops.py", file=sys.stderr)
        return 2
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.dup2(2, 1)  # standard output belongs to plumb's report
    return _plumb.serve_ops(refusal(*words))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
