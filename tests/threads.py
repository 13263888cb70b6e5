"""Several threads that do the same at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def in_threads(count: int, work: Callable[[], Result]) -> list[Result]:
    """What `work` returns in each of `count` threads, which begin together; what it raises in one of them is raised."""
    together = threading.Barrier(count)

    def begin(_: int) -> Result:
        together.wait()
        return work()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))
