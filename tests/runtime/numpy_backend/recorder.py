"""Faults of checked operations while a piece runs for one example: the first failed check counts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np


class Recorder:
    """The checks of one run of a piece. `sites` were checked; `first` is the first failed one plus one, or 0."""

    def __init__(self) -> None:
        self.sites: set[int] = set()
        self.first = 0

    def fault(self, bad: Any, site: int) -> None:
        """Note that the lane fails at `site` where `bad`, or any element of it, holds."""
        self.sites.add(site)
        if not self.first and np.any(bad):
            self.first = site + 1


_current: ContextVar[Recorder] = ContextVar("recorder")


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Collect the faults of the checked operations inside."""
    recorder = Recorder()
    token = _current.set(recorder)
    try:
        yield recorder
    finally:
        _current.reset(token)


def fault(bad: Any, site: int) -> None:
    """`Recorder.fault` of the piece that is running; LookupError outside of one."""
    _current.get().fault(bad, site)
