"""What does `progress=True` cost: a run in slices with a bar, against the same run in one go?

    python -m benchmarks.long_runs [--json out/long_runs.json]

Two runs of about a second each under XLA: many small trips with little state (Collatz), and a recursion whose stacks
hold 128 floats an entry, so that each slice hands on some megabytes (Fibonacci). And a run of milliseconds, which pays
for its bar.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import arguments, measure, write_json
from benchmarks.step_cost import wide_fibonacci


@pcbatch.autobatch
def collatz(n, rounds):
    """The lengths of the Collatz sequences of n, n + 1, .., added up."""
    total = 0
    while rounds > 0:
        m = n + rounds
        while m != 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            total += 1
        rounds -= 1
    return total


def quietly(function: Any, *args: Any) -> Callable[[], Any]:
    """A call that draws its bar where nobody sees it."""

    def call() -> Any:
        with contextlib.redirect_stderr(io.StringIO()):
            return tf.nest.map_structure(np.asarray, function(*args))

    return call


def programs() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Each program and its arguments."""
    starts = tf.constant(np.arange(64) * 3 + 1, tf.int32)
    ns = tf.constant(np.arange(64) % 8 + 14, tf.int32)
    return {
        "collatz": (collatz, (starts, tf.fill([64], 6_000))),
        "fibonacci": (wide_fibonacci, (ns, tf.ones((64, 128)))),
        "milliseconds": (collatz, (starts, tf.fill([64], 1))),
    }


def main() -> None:
    """Print the ratios; write them with --json."""
    options = arguments(__doc__).parse_args()
    figures = {}
    for name, (function, args) in programs().items():
        contestants = {
            "in one go": quietly(function, *args),
            "progress": quietly(function.options(progress=True), *args),
        }
        found = figures[name] = measure(contestants, repeats=options.repeats)
        whole, sliced = found["in one go"], found["progress"]
        trips = function.run(*args).trips
        print(
            f"{name:>12}: {trips:7d} trips, in one go {whole.median:.4f} s, with progress {sliced.median:.4f} s: "
            f"{sliced.ratio:.3f}"
        )
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
