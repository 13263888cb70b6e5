"""Ctrl-C while compiled code runs: kept until it has ended, so that what it did is not lost."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """A context in which the first Ctrl-C only sets `pending`; the second raises KeyboardInterrupt as usual.

    A signal handler runs between two instructions of Python, so an exception from it could fall between the end of a
    compiled program and the assignment of what it gave. Only in the main thread, and only where Python's own handler is
    in place: whoever has installed another one knows better.
    """

    def __init__(self) -> None:
        self.pending = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True
