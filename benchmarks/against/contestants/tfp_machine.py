"""TensorFlow Probability's program-counter machine, under XLA; its language is smaller, so the tasks have a text here.

Types of results are written by hand, and so is the depth of the stacks: enough for the task, no more.
"""

# ruff: noqa: D103, RET505 -- the tasks are described in `recursions.py`; its language has no early return
from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_probability.python.experimental.auto_batching import frontend, instructions

from benchmarks.against.contestants.worker import Call, Job, serve

# One for each set of functions that call each other: types of functions that are not called cannot be inferred.
CONTEXTS = {name: frontend.Context() for name in ("fibonacci", "tail", "sum", "total")}
DEPTHS = {"fibonacci": 24, "even_odd_tail": 68, "even_odd": 68, "depth_10": 14, "depth_100": 104, "depth_1000": 1004}


def result(_: Any) -> instructions.TensorType:
    """The type of every function here."""
    return instructions.TensorType(np.int32, ())


@CONTEXTS["fibonacci"].batch(type_inference=result)
def fibonacci(n: Any) -> Any:
    if n <= 1:
        return 1
    else:
        return fibonacci(n - 2) + fibonacci(n - 1)


@CONTEXTS["tail"].batch(type_inference=result)
def even_odd_tail(n: Any) -> Any:
    if n == 0:
        return 1
    else:
        return odd_even_tail(n - 1)


@CONTEXTS["tail"].batch(type_inference=result)
def odd_even_tail(n: Any) -> Any:
    if n == 0:
        return 0
    else:
        return even_odd_tail(n - 1)


@CONTEXTS["sum"].batch(type_inference=result)
def even_odd(n: Any) -> Any:
    if n == 0:
        return 0
    else:
        return n - odd_even(n - 1)


@CONTEXTS["sum"].batch(type_inference=result)
def odd_even(n: Any) -> Any:
    if n == 0:
        return 0
    else:
        return n + even_odd(n - 1)


@CONTEXTS["total"].batch(type_inference=result)
def total(n: Any) -> Any:
    if n == 0:
        return 0
    else:
        return n + total(n - 1)


TASKS = {"fibonacci": fibonacci, "even_odd_tail": even_odd_tail, "even_odd": even_odd} | dict.fromkeys(
    ("depth_10", "depth_100", "depth_1000"), total
)


def prepare(job: Job) -> Call:
    """A call of the machine on a batch."""
    task, depth = TASKS[job.task], DEPTHS[job.task]
    given = tuple(map(tf.constant, job.arguments()))
    machine = tf.function(lambda *lanes: task(*lanes, max_stack_depth=depth), jit_compile=True, autograph=False)
    return lambda: np.asarray(machine(*given))


if __name__ == "__main__":
    serve(prepare)
