"""Lengths of ways through TensorFlow, in calls: a quick way returns the same as the slow one behind it."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any


def is_shorter(way: Callable[[], Any], than: Callable[[], Any]) -> bool:
    """Return whether `way` calls fewer of TensorFlow's Python functions than another one to the same result."""
    return length(way) < length(than)


def length(way: Callable[[], Any]) -> int:
    """Count the calls of TensorFlow's Python functions in a second run of `way`; the first may fill caches.

    A thread has its own profiler, so it is run in a new one: whoever profiles this thread is not disturbed.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_counted, way).result()


def _counted(way: Callable[[], Any]) -> int:
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_globals.get("__name__", "").startswith("tensorflow.")

    way()
    with without_collections():
        sys.setprofile(note)
        try:
            way()
        finally:
            sys.setprofile(None)
    return count


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Let no garbage be collected: TensorFlow's functions have finalizers in Python, which would be counted."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
