"""What does it cost to record the schedule of a run (the option `trace`)?

    python -m benchmarks.profile_overhead [--json out/profile_overhead.json]

The same runs with and without it, in turn; the baseline is without. What `Run.profile()` shows needs no option: the
machine counts it in every run. A second contestant without it says how far equal programs differ on this machine.
Milliseconds are medians; `ratio` is the median of the ratios of neighbours in time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import arguments, measure, paired, write_json

TRIPS = 700
"""How many trips are recorded: all that these programs make."""


@pcbatch.autobatch
def fibonacci(n):
    """Recursion, cheap blocks."""
    if n <= 1:
        return 1
    return fibonacci(n - 2) + fibonacci(n - 1)


@pcbatch.autobatch
def collatz(n):
    """A loop, cheap blocks."""
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@pcbatch.autobatch
def walk(x, turns):
    """A loop with a product of a vector and a matrix."""
    for turn in range(turns):
        if turn % 3 != 0:
            x = tf.tanh(tf.linalg.matvec(weights, x))
    return x


weights = tf.constant(np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))[0], tf.float32)


def cases(lanes: int) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """The programs, and what they run on."""
    numbers = tf.range(lanes)
    x = tf.constant(np.random.default_rng(1).normal(size=(lanes, 64)), tf.float32)
    return {
        "collatz": (collatz, (numbers * 7919 % 1_000_000 + 1,)),
        "fibonacci": (fibonacci, (14 - numbers % 15,)),
        "walk": (walk, (x, 300 + numbers % 7)),
    }


def main() -> None:
    """Print a table."""
    options = arguments(__doc__).parse_args()
    found: dict[str, Any] = {}
    print(f"{'program':>10} {'lanes':>6} {'trips':>6} {'off ms':>8} {'on ms':>8} {'ratio':>6} {'off again':>9}")
    for lanes in (16, 64, 512):
        for name, (function, given) in cases(lanes).items():
            traced = function.options(trace=TRIPS)
            again = function.options(name=f"{name}_again")
            contestants = {"off": function, "on": traced, "off again": again}
            timings = measure(
                {key: lambda f=f, given=given: f(*given).numpy() for key, f in contestants.items()},
                repeats=options.repeats,
            )
            run = traced.run(*given)
            on, off = (paired(timings["off"], timings[key]) for key in ("on", "off again"))
            found[f"{name}, {lanes} lanes"] = {"timings": timings, "on": on, "off again": off, "trips": run.trips}
            print(
                f"{name:>10} {lanes:>6} {run.trips:>6} {1e3 * timings['off'].median:>8.2f} "
                f"{1e3 * timings['on'].median:>8.2f} {on:>6.2f} {off:>9.2f}"
            )
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
