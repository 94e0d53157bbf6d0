# SPDX-License-Identifier: Apache-2.0
"""Starts a recording from environment variables, for worker processes that an engine starts."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import multiprocessing.util
import os
import sys
from typing import Any

from ._recorder import Recorder, record
from ._trace_tensors import BadTrace

_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


_recorder: Recorder | None = None


def from_environment() -> Recorder | None:
    """Records until the process ends, if PLUMB_RECORD is set. Further calls return the same recorder.

    vLLM and SGLang call this in each process: it is an entry point of both (pyproject.toml).

    PLUMB_RECORD=FOLDER[:OPTION=VALUE,…] with the options ops, layers, steps (several: 0+3+8-12), budget, rows.
    PLUMB_TAPS=MODULE:FUNCTION names the function that gives the taps to record().
    """
    global _recorder
    wanted = os.environ.get("PLUMB_RECORD")
    if not wanted or _recorder is not None:
        return _recorder
    folder, options = parse(wanted)
    module, _, function = os.environ.get("PLUMB_TAPS", "").partition(":")
    if not module or not function:
        raise BadTrace("PLUMB_RECORD is set: PLUMB_TAPS=MODULE:FUNCTION has to name the taps")
    taps = getattr(importlib.import_module(module), function)
    recording = contextlib.ExitStack()
    atexit.register(recording.close)

    def rank() -> int:
        """Called at the first step. A process that multiprocessing forked ends without atexit."""
        multiprocessing.util.Finalize(None, recording.close, exitpriority=0)
        return rank_of_process()

    _recorder = recording.enter_context(record(folder, taps, rank=rank, **options))
    return _recorder


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Folder and options of PLUMB_RECORD. A colon without "=" after it belongs to the folder."""
    folder, colon, listed = text.rpartition(":")
    if not colon or "=" not in listed:
        folder, listed = text, ""
    options: dict[str, Any] = {}
    for option in filter(None, listed.split(",")):
        name, _, value = option.partition("=")
        try:
            options[name] = _PARSERS[name](value)
        except KeyError:
            raise BadTrace(f"PLUMB_RECORD: no option {name!r}: ops, layers, steps, budget or rows") from None
        except ValueError:
            raise BadTrace(f"PLUMB_RECORD: {name}={value} is not understood") from None
    return folder, options


def _numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for part in text.split("+"):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _size(text: str) -> int:
    return int(text[:-1]) * _SIZES[text[-1]] if text[-1:] in _SIZES else int(text)


_PARSERS = {"ops": lambda text: text.split("+"), "layers": _numbers, "steps": _numbers, "budget": _size, "rows": int}


def rank_of_process() -> int:
    """Rank of this process in torch.distributed, or the RANK variable of a launcher."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return int(os.environ.get("RANK", "0"))
