"""Those who run the tasks: each makes of a task and its arguments a call that computes the results to the end."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch

Call = Callable[[], np.ndarray]
FLOATS = ("bisection", "rk45", "simpson", "quicksort")
"""The tasks that give float64."""
TASKS = ("collatz", "rejection", "bisection", "rk45", "queens", "simpson", "edit_distance", "quicksort")


@functools.cache
def _compiled_by(task: Callable[..., Any]) -> dict[str, Any]:
    """The tasks, compiled by `task`."""
    path = Path(__file__).with_name("tasks.py")
    module = ModuleType(f"{__package__}.tasks_by_{task.__module__}")
    sys.modules[module.__name__] = module  # Numba finds the functions that a function calls by its module's name
    vars(module).update(task=task)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    return vars(module)


def batched(name: str, arguments: tuple[np.ndarray, ...], **options: Any) -> Call:
    """pcbatch, under these options."""
    function = _compiled_by(pcbatch.autobatch)[name].options(**options)
    given = tuple(map(tf.constant, arguments))
    return lambda: np.asarray(function(*given))


def python(name: str, arguments: tuple[np.ndarray, ...]) -> Call:
    """Plain Python, a loop over the lanes."""
    function = _compiled_by(_as_it_is)[name]

    def call() -> np.ndarray:
        rows = [[row[lane].copy() if row.ndim > 1 else row[lane].item() for row in arguments] for lane in range(lanes)]
        return np.array([function(*row) for row in rows])

    lanes = len(arguments[0])
    return call


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def numba(name: str, arguments: tuple[np.ndarray, ...], parallel: bool = False) -> Call:
    """Numba: a compiled loop over the lanes, on one thread or on all cores."""
    lanes, out_type = len(arguments[0]), np.float64 if name in FLOATS else np.int32
    out = np.zeros((lanes, *arguments[0].shape[1:]) if name == "quicksort" else lanes, out_type)
    loop = _loop(name, len(arguments), parallel)

    def call() -> np.ndarray:
        loop(out, *(array.copy() if array.ndim > 1 else array for array in arguments))
        return out

    return call


@functools.cache
def _loop(name: str, count: int, parallel: bool) -> Callable[..., Any]:
    """A compiled loop that calls a task with so many arguments for every lane."""
    import numba

    names = [f"a{i}" for i in range(count)]
    text = (
        f"def loop(out, {', '.join(names)}):\n"
        f"    for i in prange(len(a0)):\n"
        f"        out[i] = task({', '.join(f'{each}[i]' for each in names)})\n"
    )
    task = _compiled_by(numba.njit)[name]
    scope: dict[str, Any] = {"prange": numba.prange if parallel else range, "task": task}
    exec(text, scope)
    compiled: Callable[..., Any] = numba.njit(parallel=parallel)(scope["loop"])
    return compiled
