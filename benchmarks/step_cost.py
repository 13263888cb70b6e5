"""Does a trip of the machine cost more when stacks are deeper? And how long does the sampler take to compile?

    python -m benchmarks.step_cost [--json out/step_cost.json]

Fibonacci on 64 lanes with a 128-float variable that survives a call, so that it is on a stack; microseconds per trip
under XLA with room for 32 to 2048 entries. A machine that copies its stacks pays for their size (a `switch` over
whole states: 66, 723, 6033 microseconds); one masked write per push does not.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
import pcbatch.nuts
from benchmarks.harness import arguments, measure, write_json

LANES, WIDTH = 64, 128
DEPTHS = (32, 128, 512, 2048)
"""Sizes through which stacks grow; a lane goes that deep before anything is measured."""
SCHEDULES = ("earliest", "busiest", "sweep", "adaptive")


@pcbatch.autobatch
def wide_fibonacci(n, ones):
    """Fibonacci numbers, each computed `WIDTH` times over: `left` is the wide variable that survives a call.

    Below 0 it goes down -n calls deep, which makes the stacks that large.
    """
    if n < 0:
        return wide_fibonacci(n + 1, ones) + ones
    if n <= 1:
        return ones
    left = wide_fibonacci(n - 2, ones)
    return left + wide_fibonacci(n - 1, ones)


def stacked_shapes(function: Any, *args: Any) -> list[tuple[int, ...]]:
    """Shapes of the variables that the IR keeps on stacks."""
    program = function.program("optimized", *args)
    variables = [variable for part in program.functions for variable in part.variables]
    return [variable.type.shape for variable in variables if variable.storage in ("stack", "cached stack")]


def step_costs(repeats: int) -> dict[str, dict[str, Any]]:
    """Schedule and depth to trips, microseconds per trip, and the timing behind them."""
    ns = tf.constant(np.arange(LANES) % 8 + 7, tf.int32)
    ones = tf.ones((LANES, WIDTH))
    if (WIDTH,) not in stacked_shapes(wide_fibonacci, ns, ones):
        raise SystemExit("the IR does not keep the wide variable on a stack: nothing to measure")
    figures: dict[str, dict[str, Any]] = {}
    for schedule in SCHEDULES:
        functions = {depth: wide_fibonacci.options(max_depth=depth, schedule=schedule) for depth in DEPTHS}
        for depth, function in functions.items():
            function.run(tf.fill([LANES], -depth), ones)
            if function.stats().stack_entries != depth + 1:
                raise SystemExit(f"the stacks have {function.stats().stack_entries} entries after {depth} calls")
        trips = {depth: int(function.run(ns, ones).trips) for depth, function in functions.items()}
        timings = measure(
            {str(depth): lambda f=function: f.run(ns, ones).value for depth, function in functions.items()},
            repeats=repeats,
        )
        figures[schedule] = {
            str(depth): {
                "trips": trips[depth],
                "microseconds per trip": 1e6 * timings[str(depth)].median / trips[depth],
                "timing": timings[str(depth)],
            }
            for depth in DEPTHS
        }
    return figures


def normal(q: tf.Tensor) -> tf.Tensor:
    """A standard normal density, up to a constant."""
    return -0.5 * tf.reduce_sum(q * q)


def sampler_compile_time() -> dict[str, float]:
    """Trace and compile seconds of the No-U-Turn sampler, and its whole first and second call."""

    def call() -> tuple[float, Any]:
        started = time.perf_counter()
        samples = pcbatch.nuts.sample(
            normal, np.zeros(10, np.float32), chains=LANES, warmup=0, draws=10, step_size=0.5, progress=False
        )
        return time.perf_counter() - started, samples.stats

    first, stats = call()
    second, again = call()
    if again.compilations != stats.compilations:
        raise SystemExit("the second call compiled again")
    return {"trace": stats.trace_seconds, "compile": stats.compile_seconds, "first call": first, "second call": second}


def main() -> None:
    """Print the figures."""
    options = arguments(__doc__).parse_args()
    figures = step_costs(options.repeats)
    print(f"microseconds per trip, {LANES} lanes, {WIDTH} floats on a stack of this many entries")
    print(f"{'schedule':>10} {'trips':>7}" + "".join(f"{depth:>9}" for depth in DEPTHS) + f"{'ratio':>9}")
    for schedule, by_depth in figures.items():
        costs = [entry["microseconds per trip"] for entry in by_depth.values()]
        trips = by_depth[str(DEPTHS[0])]["trips"]
        print(
            f"{schedule:>10} {trips:>7}" + "".join(f"{cost:>9.1f}" for cost in costs) + f"{costs[-1] / costs[0]:>9.2f}"
        )
    sampler = sampler_compile_time()
    print("\nthe sampler, seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in sampler.items()))
    if options.json:
        write_json(options.json, {"step cost": figures, "sampler": sampler})


if __name__ == "__main__":
    main()
