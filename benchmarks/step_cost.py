"""Does a trip of the machine cost more when stacks are deeper? And how long does the sampler take to compile?

    python -m benchmarks.step_cost [--lanes 64] [--schedules sweep adaptive] [--json out/step_cost.json]

Fibonacci with a wide variable that survives a call, so that it is on a stack; microseconds per trip under XLA with room
for 32 to 4096 entries, under every schedule, for 1 to 4096 lanes. A machine that copies its stacks pays for their size
(a `switch` over whole states, 64 lanes with 128 floats: 66, 723, 6033 microseconds for 32, 256 and 2048 entries); one
masked write per push does not. `ratio` is the largest size over the smallest, the median over neighbours in time;
`start ms` is what a run takes that only begins and ends, on the largest stacks, which it fills with zeros.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
import pcbatch.nuts
from benchmarks.harness import arguments, measure, write_json

LANES = (1, 8, 64, 512, 4096)
WIDTH = 128
"""Floats of the wide variable of a lane."""
MOST = 65_536
"""Floats of all lanes: more lanes than make so many have narrower variables, for the largest stacks to take 1 GB."""
DEPTHS = (32, 128, 512, 2048, 4096)
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


def step_costs(schedule: str, lanes: int, repeats: int) -> dict[str, Any]:
    """Trips, microseconds per trip for every depth, the ratio of the last to the first, and the timings behind them.

    A trip's time is what a run takes beyond one of few trips, divided by the trips that it makes beyond those.
    """
    ns, ones = tf.constant(np.arange(lanes) % 8 + 7, tf.int32), tf.ones((lanes, min(WIDTH, MOST // lanes)))
    if ones.shape[1:] not in stacked_shapes(wide_fibonacci, ns, ones):
        raise SystemExit("the IR does not keep the wide variable on a stack: nothing to measure")
    functions = {str(depth): wide_fibonacci.options(max_depth=depth, schedule=schedule) for depth in DEPTHS}
    for depth, function in zip(DEPTHS, functions.values(), strict=True):
        function.run(tf.fill([lanes], -depth), ones)
        if function.stats().stack_entries != depth + 1:
            raise SystemExit(f"the stacks have {function.stats().stack_entries} entries after {depth} calls")
    leaves = tf.zeros_like(ns)  # runs that only begin and end: stacks are filled with zeros, which pays for their size
    runs = [function.run(ns, ones) for function in functions.values()]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.value, runs[0].value)
    trips = {int(run.trips) - int(f.run(leaves, ones).trips) for run, f in zip(runs, functions.values(), strict=True)}
    if len(trips) > 1:
        raise SystemExit(f"the number of trips depends on the depth: {trips}")
    (count,) = trips
    timings = measure(
        {
            f"{kind} {depth}": lambda f=function, n=n: f.run(n, ones).value
            for depth, function in functions.items()
            for kind, n in (("whole", ns), ("start", leaves))
        },
        repeats=repeats,
        rtol=None,
    )
    seconds = {
        depth: [
            a - b for a, b in zip(timings[f"whole {depth}"].seconds, timings[f"start {depth}"].seconds, strict=True)
        ]
        for depth in functions
    }
    smallest, *_, largest = seconds.values()
    return {
        "trips": count,
        "microseconds per trip": {depth: 1e6 * statistics.median(each) / count for depth, each in seconds.items()},
        "ratio": statistics.median(b / a for a, b in zip(smallest, largest, strict=True)),
        "start milliseconds": {depth: 1e3 * timings[f"start {depth}"].median for depth in functions},
        "timings": timings,
    }


def normal(q: tf.Tensor) -> tf.Tensor:
    """A standard normal density, up to a constant."""
    return -0.5 * tf.reduce_sum(q * q)


def sampler_compile_time() -> dict[str, float]:
    """Trace and compile seconds of the No-U-Turn sampler, and its whole first and second call."""

    def call() -> tuple[float, Any]:
        started = time.perf_counter()
        samples = pcbatch.nuts.sample(
            normal, np.zeros(10, np.float32), chains=64, warmup=0, draws=10, step_size=0.5, progress=False
        )
        return time.perf_counter() - started, samples.stats

    first, stats = call()
    second, again = call()
    if again.compilations != stats.compilations:
        raise SystemExit("the second call compiled again")
    return {"trace": stats.trace_seconds, "compile": stats.compile_seconds, "first call": first, "second call": second}


def main() -> None:
    """Print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES, help="numbers of lanes")
    parser.add_argument("--schedules", nargs="+", default=SCHEDULES, choices=SCHEDULES, help="schedules")
    options = parser.parse_args()
    print("microseconds per trip, room for this many entries on the stacks")
    print(
        f"{'schedule':>10} {'lanes':>6} {'trips':>7}"
        + "".join(f"{depth:>9}" for depth in DEPTHS)
        + f"{'ratio':>9}{'start ms':>10}"
    )
    figures: dict[str, Any] = {}
    for lanes in options.lanes:
        for schedule in options.schedules:
            entry = figures[f"{schedule}, {lanes} lanes"] = step_costs(schedule, lanes, options.repeats)
            start = entry["start milliseconds"][str(DEPTHS[-1])]
            row = "".join(f"{cost:>9.1f}" for cost in entry["microseconds per trip"].values())
            print(f"{schedule:>10} {lanes:>6} {entry['trips']:>7}{row}{entry['ratio']:>9.2f}{start:>10.2f}", flush=True)
    sampler = sampler_compile_time()
    print("\nthe sampler, seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in sampler.items()))
    if options.json:
        write_json(options.json, {"step cost": figures, "sampler": sampler})


if __name__ == "__main__":
    main()
