# SPDX-License-Identifier: Apache-2.0
"""The process of a file with ops of its own: plumb run --ops FILE.py starts it for their references.

    python -m plumb_kernels._ops INTERFACE my_ops.py

Descriptor 3 is the channel to plumb. INTERFACE has to be this module's own, because both sides make
the arguments of a launch.
"""

from __future__ import annotations

import os
import signal
import sys

from . import _plumb
from ._worker import import_user_file


def refusal(interface: str, path: str) -> str:
    """Imports the file. Why its ops cannot be used; "": they can."""
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
    os.dup2(2, 1)  # standard output is plumb's report
    return _plumb.serve_ops(refusal(*words))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
