"""Python's cyclic garbage collector, paused while a program is compiled."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Collect no cycles inside, if they are collected outside.

    A graph in the making is a million objects that all stay: to look through them again and again is a sixth of the
    time that tracing takes.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
