"""The process that runs programs on the card: jobs come in as lines of JSON, figures go out as lines of JSON.

{"do": "start"}                                       -> {"card": its name, or null}
{"do": "right", "name": ..}                           -> {"wrong": a line, or null}
{"do": "time", "way": .., "program": .., "size": ..}  -> {"first": seconds, "seconds": of a warm call}
"""

from __future__ import annotations

import contextlib
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks import conversation
from benchmarks.nuts.targets import TARGETS
from pcbatch import nuts
from pcbatch.runtime.backends.tensorflow import graphs
from pcbatch.runtime.costs import device

REPEATS = 5
WARM = 2
"""Calls before those that are timed: with loops on the device the second one builds the graph."""
LANES = 17


def card() -> str | None:
    """The name of the GPU; None where there is none."""
    found = tf.config.list_physical_devices("GPU")
    return tf.config.experimental.get_device_details(found[0]).get("device_name", "GPU") if found else None


def wrong(name: str) -> str | None:
    """The first line of what is wrong with a program of the corpus, as a kernel and in lockstep; None if nothing is."""
    from tests.harness import AUTO, LOCKSTEP, check  # the judge, which an installed pcbatch does not have

    in_place = contextlib.nullcontext() if card() else graphs.targeting("GPU", kernels=True)
    try:
        with in_place:
            check(name, AUTO, LANES)
            check(name, LOCKSTEP, LANES)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return None


@pcbatch.autobatch
def fibonacci(n):
    """Two calls."""
    return n if n < 2 else fibonacci(n - 2) + fibonacci(n - 1)


@pcbatch.autobatch
def collatz(n):
    """A loop of very different lengths."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@pcbatch.autobatch
def insertion_sort(values):
    """Stores into an array."""
    for i in range(1, len(values)):
        key = values[i]
        j = i - 1
        while j >= 0 and values[j] > key:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = key
    return values


def _of(function: Any, *arrays: np.ndarray) -> Callable[[str], Callable[[], Any]]:
    """Calls of a function of plain numbers."""

    def made(way: str) -> Callable[[], Any]:
        called, given = (
            function.options(form="native" if way.startswith("kernel") else "lockstep"),
            [*map(tf.constant, arrays)],
        )
        return lambda: called(*given)

    return made


def sampler(chains: int) -> Callable[[], Any]:
    """Ten trajectories of each chain."""
    from benchmarks.nuts.contestants import pcbatch_sampler
    from benchmarks.nuts.contestants.worker import Job

    warnings.simplefilter("ignore", nuts.SamplerWarning)
    run = pcbatch_sampler.prepare(Job(replace(TARGETS["logistic-small"], trajectories=10), chains, 10))
    return lambda: run(1, False).draws


def trees(count: int, training: bool) -> Callable[[], Any]:
    """A TreeLSTM of 128 cells, or its training step inside a `tf.function`."""
    from benchmarks.trees.contestants import pcbatch_batched
    from benchmarks.trees.networks import NETWORKS

    network = NETWORKS["small trees"]
    weights = {name: tf.Variable(each) for name, each in network.weights().items()}
    given = [tf.constant(each) for each in network.batch(count, 1).values()]
    function = pcbatch_batched.binary(weights)
    if not training:
        return lambda: function(*given)
    optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.nn.l2_loss(function(*given))
        variables = list(weights.values())
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step


def program(name: str, size: int, way: str) -> Callable[[], Any]:
    """A call of a program."""
    match name:
        case "fibonacci":
            return _of(fibonacci, np.arange(size, dtype=np.int32) % 16)(way)
        case "collatz":
            return _of(collatz, np.arange(1, size + 1, dtype=np.int32))(way)
        case "sort":
            return _of(insertion_sort, np.random.default_rng(1).integers(0, 1000, (size, 32), dtype=np.int32))(way)
        case "sampler":
            return sampler(size)
        case "tree" | "training step":
            return trees(size, name != "tree")
    raise ValueError(f"no program {name}")


def timed(way: str, name: str, size: int) -> dict[str, float]:
    """Seconds of the first call, and of a warm one with its results on the host, the median."""
    if way == "one trip":
        device.GPU = replace(device.GPU, trips_together=1)
    call, seconds = program(name, size, way), []
    for _ in range(1 + WARM + REPEATS):
        started = time.perf_counter()
        tf.nest.map_structure(np.asarray, call())
        seconds.append(time.perf_counter() - started)
    return {"first": seconds[0], "seconds": statistics.median(seconds[1 + WARM :])}


def answer(command: dict[str, Any]) -> dict[str, Any]:
    """The reply to a command."""
    match command["do"]:
        case "start":
            return {"card": card()}
        case "right":
            return {"wrong": wrong(command["name"])}
    return timed(command["way"], command["program"], command["size"])


if __name__ == "__main__":
    conversation.serve(answer)
