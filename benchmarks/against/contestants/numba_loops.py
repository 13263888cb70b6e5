"""Numba: a compiled loop over the lanes, on one thread or, as variant "cores", on all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.against.contestants.worker import Call, Job, serve
from benchmarks.against.texts import WRITTEN, compiled_by, result_type


@functools.cache
def _tasks() -> dict[str, Any]:
    return compiled_by(numba.njit)


@functools.cache
def _loop(task: str, count: int, parallel: bool) -> Callable[..., Any]:
    """A compiled loop that calls a task with so many arguments for every lane."""
    names = [f"a{i}" for i in range(count)]
    text = (
        f"def loop(out, {', '.join(names)}):\n"
        f"    for i in prange(len(a0)):\n"
        f"        out[i] = task({', '.join(f'{each}[i]' for each in names)})\n"
    )
    scope: dict[str, Any] = {"prange": numba.prange if parallel else range, "task": _tasks()[task]}
    exec(text, scope)
    compiled: Callable[..., Any] = numba.njit(parallel=parallel)(scope["loop"])
    return compiled


def prepare(job: Job) -> Call:
    """A call of the loop."""
    arguments = job.arguments()
    first = arguments[0]
    out = np.zeros(first.shape if job.task == "quicksort" else len(first), result_type(job.task))
    loop = _loop(job.task, len(arguments), job.variant == "cores")

    written = WRITTEN.get(job.task, ())

    def call() -> np.ndarray:
        loop(out, *(array.copy() if place in written else array for place, array in enumerate(arguments)))
        return out

    return call


if __name__ == "__main__":
    serve(prepare)
