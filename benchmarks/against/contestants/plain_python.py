"""Plain Python: a loop over the lanes, in this process or, as variant "cores", in one process for each core."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import sys
import time
from typing import Any

import numpy as np

from benchmarks.against.contestants.worker import Call, Job, serve
from benchmarks.against.texts import compiled_by

sys.setrecursionlimit(5000)


@functools.cache
def _tasks() -> dict[str, Any]:
    return compiled_by(lambda function: function)


@functools.cache
def _pool() -> Any:
    return multiprocessing.get_context("spawn").Pool(os.cpu_count())


_used = 0.0
"""CPU seconds of the pool's processes."""


def lanes(task: str, arguments: tuple[np.ndarray, ...]) -> np.ndarray:
    """The task, lane after lane."""
    function = _tasks()[task]
    # `tolist` makes Python's own numbers, which are faster; arrays are copied, as a task may write into them.
    columns = [list(array.copy()) if array.ndim > 1 else array.tolist() for array in arguments]
    return np.array([function(*row) for row in zip(*columns, strict=True)])


def timed_lanes(task: str, arguments: tuple[np.ndarray, ...]) -> tuple[np.ndarray, float]:
    """The same, and the CPU seconds that it took."""
    began = time.process_time()
    found = lanes(task, arguments)
    return found, time.process_time() - began


def on_cores(task: str, parts: list[tuple[np.ndarray, ...]]) -> np.ndarray:
    """The task on parts of the lanes, each in a process."""
    global _used
    found = _pool().starmap(timed_lanes, zip(itertools.repeat(task), parts))
    _used += sum(seconds for _, seconds in found)
    return np.concatenate([part for part, _ in found])


def cpu() -> float:
    """CPU seconds of this process and of the pool's."""
    return time.process_time() + _used


def prepare(job: Job) -> Call:
    """A call of the loop, or of the pool on one part of the lanes for each core."""
    arguments = job.arguments()
    if job.variant != "cores":
        return lambda: lanes(job.task, arguments)
    parts = list(zip(*(np.array_split(array, os.cpu_count() or 1) for array in arguments), strict=True))
    parts = [part for part in parts if len(part[0])]
    return lambda: on_cores(job.task, parts)


if __name__ == "__main__":
    serve(prepare, cpu)
