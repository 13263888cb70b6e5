"""Does native code take as long inside a `tf.function` as outside?

    python -m benchmarks.in_graphs [--tasks rk45 quicksort ..] [--lanes 64 1024 16384] [--repeats 7]
                                   [--json out/in_graphs.json]

The cheap tasks of `benchmarks.against`, on tensors: CPU microseconds of a call in ordinary code, of the same call in a
`tf.function`, and in one that XLA compiles; each beside such a function that only selects elements of the same tensors.
The median of the repeats, in turn; and the ratios of a call in a graph to the call outside and the other graph
together.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.against.inputs import CHEAP, batch
from benchmarks.against.texts import compiled_by
from benchmarks.harness import arguments, write_json

ENOUGH = 0.02
"""Seconds that the calls of one repeat take together."""


def ways(function: Any, specs: list[tf.TensorSpec]) -> dict[str, Callable[..., Any]]:
    """The function in ordinary code and in graphs, for any number of lanes, and graphs with next to nothing in them."""

    def run(*given: tf.Tensor) -> Any:
        made = function.run(*given)  # in a function that XLA compiles nothing can raise
        return made.value, made.status

    def plain(*given: tf.Tensor) -> Any:
        return [tf.where(each > 0, each, -each) for each in given]

    def inside(what: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return tf.function(what, input_signature=specs, autograph=False, **options)

    graphs = {"graph": inside(run), "plain graph": inside(plain)}
    return {
        "eager": function,
        **graphs,
        "XLA": inside(run, jit_compile=True),
        "plain XLA": inside(plain, jit_compile=True),
    }


def calls_of(function: Callable[..., Any], given: list[tf.Tensor]) -> int:
    """The number of calls that are timed together."""
    for _ in range(3):
        function(*given)
    began = time.process_time()
    function(*given)
    return max(1, int(ENOUGH / max(time.process_time() - began, 1e-6)))


def timed(function: Callable[..., Any], given: list[tf.Tensor], calls: int) -> float:
    """CPU microseconds of a call."""
    began = time.process_time()
    for _ in range(calls):
        found = function(*given)
    [np.asarray(leaf) for leaf in tf.nest.flatten(found)]
    return (time.process_time() - began) / calls * 1e6


def measured(task: str, lanes: int, repeats: int) -> dict[str, float]:
    """CPU microseconds of a call, by the way in which it is made."""
    given = [tf.convert_to_tensor(each) for each in batch(task, lanes)]
    specs = [tf.TensorSpec([None, *each.shape[1:]], each.dtype) for each in given]
    every = ways(compiled_by(pcbatch.autobatch)[task], specs)
    calls = {name: calls_of(way, given) for name, way in every.items()}
    found: dict[str, list[float]] = {name: [] for name in every}
    for _ in range(repeats):
        for name, way in every.items():
            found[name].append(timed(way, given, calls[name]))
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def main() -> None:
    """Print a line for each task and number of lanes."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=7)
    parser.add_argument("--tasks", nargs="+", choices=CHEAP, default=CHEAP, metavar="task")
    parser.add_argument("--lanes", nargs="+", type=int, default=[64, 1024, 16384])
    given = parser.parse_args()
    every = {}
    print(f"{'us a call':>14} {'lanes':>6} {'eager':>8} {'graph':>8} {'plain':>8} {'XLA':>8} {'plain':>8}  ratios")
    for task in given.tasks:
        for lanes in given.lanes:
            every[f"{task}, {lanes}"] = found = measured(task, lanes, given.repeats)
            ratios = [found[way] / (found["eager"] + found[f"plain {way}"]) for way in ("graph", "XLA")]
            each = " ".join(f"{seconds:>8.1f}" for seconds in found.values())
            print(f"{task:>14} {lanes:>6} {each}  {ratios[0]:.2f} {ratios[1]:.2f}", flush=True)
    if given.json:
        write_json(given.json, every)


if __name__ == "__main__":
    main()
