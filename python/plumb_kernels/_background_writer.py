# SPDX-License-Identifier: Apache-2.0
"""The thread that writes the steps of a recording."""

from __future__ import annotations

import collections
import sys
import threading
from typing import Protocol

_SWITCH_SECONDS = 1e-4
_LATEST_SECONDS = 0.2


class EndedStep(Protocol):
    """Members of a step that the writer uses."""

    bytes: int

    def has_replays(self) -> bool: ...

    def copied(self) -> bool:
        """Whether the copies of its replays have reached the host."""

    def write(self) -> None: ...


class BackgroundWriter:
    """Writes steps in a thread. If more than `memory` bytes wait to be written, the engine waits.

    The thread needs Python's lock, which the engine needs again as soon as the device is done. So a step is written
    while a later replay runs: the engine calls `device_is_busy` after each replay, and only that wakes the thread.
    Without a replay the step waits 0.2 to 0.4 s.
    While a writer exists, a thread gets the lock after 0.1 ms of waiting instead of 5 ms.
    """

    def __init__(self, memory: int):
        self._memory = memory
        self._switch = sys.getswitchinterval()
        sys.setswitchinterval(min(self._switch, _SWITCH_SECONDS))
        self.start()

    def start(self) -> None:
        """Starts without steps. Called again in a forked process, which has no threads of its parent."""
        self._steps: collections.deque[EndedStep] = collections.deque()  # the first one is being written
        self._free_to_write = 0  # number of these steps that may be written now
        self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="plumb trace", daemon=True)
        self._thread.start()

    def submit(self, step: EndedStep) -> None:
        """Adds a step. After a step with replays the device is idle, so the rest is left to `device_is_busy`."""
        self._steps.append(step)  # without the lock: a deque's append is atomic
        if not step.has_replays():
            with self._changed:
                self._free_to_write = len(self._steps)
                self._changed.notify_all()
            self._limit()

    def device_is_busy(self) -> None:
        """Frees copied steps to be written. Waits if too many bytes wait, and raises an error of an earlier step."""
        if len(self._steps) > self._free_to_write:
            with self._changed:
                copied = self._free_to_write
                while copied < len(self._steps) and self._steps[copied].copied():
                    copied += 1
                if copied > self._free_to_write:
                    self._free_to_write = copied
                    self._changed.notify_all()
        self._limit()

    def flush(self) -> None:
        self._wait_until_few(-1)
        self._raise()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            self._thread.join()
            sys.setswitchinterval(self._switch)

    def _limit(self) -> None:
        if self._bytes() > self._memory:
            self._wait_until_few(self._memory)
        self._raise()

    def _bytes(self) -> int:
        return sum(one.bytes for one in tuple(self._steps))

    def _wait_until_few(self, memory: int) -> None:
        with self._changed:
            while self._steps and self._bytes() > memory:
                self._free_to_write = len(self._steps)
                self._changed.notify_all()
                self._changed.wait()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while step := self._next():
            try:
                step.write()
            except BaseException as error:  # raised again in the engine's thread
                self._error = self._error or error
            with self._changed:
                self._steps.popleft()
                self._free_to_write = max(0, self._free_to_write - 1)
                self._changed.notify_all()
            del step  # frees its memory for reuse

    def _next(self) -> EndedStep | None:
        with self._changed:
            while not self._free_to_write:
                if self._closed and not self._steps:
                    return None
                first = self._steps[0] if self._steps else None
                if not self._changed.wait(_LATEST_SECONDS) and self._steps and self._steps[0] is first:
                    self._free_to_write = 1
            return self._steps[0]
