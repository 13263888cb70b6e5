"""Which schedule is best for which program? And is "adaptive", which "auto" means, never far from the best?

    python -m benchmarks.schedules [--lanes 64] [--json out/schedules.json]

Programs whose dear block (a few matrix products) costs far more than the rest, and two that have none. For each
schedule: how often the dear blocks ran, the rows that they computed, which part of these was of use, the trips, the
estimated cost (fixed costs of trips, guards and executions, and rows, in millions of multiply-adds; see
`pcbatch/runtime/costs/estimate.py`) and its ratio to the best schedule's, and the time, schedules taking turns, and
its ratio. "adaptive" passes where its estimated cost is at most 1.15 times the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import arguments, measure, write_json
from pcbatch import random

SCHEDULES = ("earliest", "busiest", "sweep", "adaptive")
MARGIN = 1.15
WIDTH = 128
MATRIX = tf.constant(np.linalg.qr(np.random.default_rng(0).normal(size=(WIDTH, WIDTH)))[0].astype(np.float32))


def dear(x: tf.Tensor) -> tf.Tensor:
    """Work for `x`: four products of a 128 by 128 matrix, 65,000 multiply-adds."""
    for _ in range(4):
        x = tf.tanh(tf.linalg.matvec(MATRIX, x))
    return x


def chance(key: tf.Tensor, number: Any, probability: float) -> tf.Tensor:
    """Whether something happens in turn `number`."""
    return random.uniform(random.fold_in(key, number)) < probability


# -- the programs ------------------------------------------------------------------------------------------------------


@pcbatch.autobatch
def fibonacci(n, key, x):
    """Nothing is dear."""
    if n <= 1:
        return n
    return fibonacci(n - 2, key, x) + fibonacci(n - 1, key, x)


@pcbatch.autobatch
def tree(depth, node, key, x):
    """A trajectory of up to 2**depth leaves, each a gradient; it may stop anywhere."""
    if depth > 0:
        x, stop = tree(depth - 1, 2 * node, key, x)
        if stop:
            return x, stop
        x, stop = tree(depth - 1, 2 * node + 1, key, x)
        return x, stop | chance(key, node, 0.1)
    return dear(x), chance(key, -node, 0.01)


@pcbatch.autobatch
def sampler(n, key, x):
    """Like the No-U-Turn sampler: trees that double until one stops, draw after draw; the gradient is dear."""
    for draw in range(10):
        depth = 0
        stop = False
        while depth < 5 and not stop:
            x, stop = tree(depth, 1, random.fold_in(key, 10 * draw + depth), x)
            depth = depth + 1
    return x


@pcbatch.autobatch
def nested_loops(n, key, x):
    """The body of the inner loop is dear; lanes differ in how often both loops turn."""
    for i in range(n):
        turns = tf.cast(12.0 * random.uniform(random.fold_in(key, i)), tf.int32)
        for _ in range(turns):
            x = dear(x)
    return x


@pcbatch.autobatch
def rejection(n, key, x):
    """Propose (dear) until a proposal is accepted, `n` times over."""
    tries = 0
    for _ in range(n):
        accepted = False
        while not accepted:
            x = dear(x)
            tries = tries + 1
            accepted = chance(key, tries, 0.3)
    return x


@pcbatch.autobatch
def two_arms(n, key, x):
    """Both arms of a branch are dear."""
    for i in range(2 * n):
        x = dear(x) if chance(key, i, 0.5) else dear(-x)
    return x


@pcbatch.autobatch
def rare_arm(n, key, x):
    """A dear arm that a lane takes once in twenty turns."""
    for i in range(10 * n):
        if chance(key, i, 0.05):
            x = dear(x)
    return x


@pcbatch.autobatch
def tree_recursion(n, key, x):
    """A tree of `n` leaves split at random; joining two halves is dear."""
    if n <= 1:
        return x
    left = 1 + tf.cast(random.uniform(random.fold_in(key, n)) * tf.cast(n - 1, tf.float32), tf.int32)
    first = tree_recursion(left, random.fold_in(key, -1), x)
    second = tree_recursion(n - left, random.fold_in(key, -2), x)
    return dear(first + second)


@pcbatch.autobatch
def even(n, key, x):
    """Mutual recursion with `odd`; both are dear on the way out."""
    if n <= 0:
        return x
    x = odd(n - 1, random.fold_in(key, 0), x)
    if chance(key, 1, 0.3):
        x = odd(n - 2, random.fold_in(key, 2), x)
    return dear(x)


@pcbatch.autobatch
def odd(n, key, x):
    """The other half of `even`."""
    if n <= 0:
        return -x
    return dear(even(n - 1, random.fold_in(key, 3), -x))


@pcbatch.autobatch
def stragglers(n, key, x):
    """Cheap loops of very unequal length before each dear step."""
    for i in range(n):
        turns = 400 if chance(key, i, 0.02) else 4
        for _ in range(turns):
            x = x * 0.99
        x = dear(x)
    return x


@pcbatch.autobatch
def collatz(n, key, x):
    """A loop in which nothing is dear, and lanes differ in length."""
    steps = 0
    n = n + 20
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


PROGRAMS = (
    fibonacci,
    sampler,
    nested_loops,
    rejection,
    two_arms,
    rare_arm,
    tree_recursion,
    even,
    stragglers,
    collatz,
)


# -- what is measured --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """One program under one schedule; `cost` is the estimate, `seconds` the median."""

    trips: int
    executions: int
    rows: int
    utilization: float
    cost: float
    seconds: float


def batch(lanes: int) -> tuple[Any, ...]:
    """Arguments of every program: sizes from 1 to 12, keys, vectors."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 13, lanes, dtype=np.int32)
    return tf.constant(sizes), random.keys(0, lanes), tf.constant(rng.normal(size=(lanes, WIDTH)).astype(np.float32))


def figures_of(program: Any, lanes: int, repeats: int) -> dict[str, Figures]:
    """Every schedule's figures for `program`."""
    given = batch(lanes)
    contestants = {name: program.options(schedule=name, max_depth=64) for name in SCHEDULES}
    timings = measure(
        {name: lambda run=function.run: np.asarray(run(*given).value) for name, function in contestants.items()},
        repeats=repeats,
        rtol=1e-4,
        atol=1e-5,
    )
    found = {}
    for name, function in contestants.items():
        run = function.run(*given)
        prices = function.pipeline(*given).machine.legs.loop.prices(lanes)
        labels = dict(zip(run.executions, prices.row_costs, strict=True))
        dearest = max(prices.row_costs)
        of_interest = [label for label, cost in labels.items() if cost > dearest / 4] if dearest > WIDTH else []
        executions = sum(run.executions[label] for label in of_interest)
        active = sum(run.utilization.active[label] for label in of_interest)
        rows = sum(run.utilization.executed[label] for label in of_interest)
        cost = prices.whole_run(run.trips, list(run.executions.values()))
        found[name] = Figures(run.trips, executions, rows, active / rows if rows else 1.0, cost, timings[name].median)
    return found


def table(name: str, by_schedule: dict[str, Figures]) -> tuple[str, bool]:
    """The lines of one program, and whether "adaptive" passes."""
    best = min(figures.cost for figures in by_schedule.values())
    fastest = min(figures.seconds for figures in by_schedule.values())
    lines, passes = [], True
    for schedule, figures in by_schedule.items():
        ratio, verdict = figures.cost / best, ""
        if schedule == "adaptive":
            passes = ratio <= MARGIN
            verdict = ("PASS" if passes else "FAIL") + ("" if ratio == 1 else ", not the best")
        lines.append(
            f"{name:>15} {schedule:>9} {figures.executions:>6} {figures.rows:>8} {figures.utilization:>6.2f}"
            f" {figures.trips:>6} {figures.cost / 1e6:>9.1f} {ratio:>6.2f}"
            f" {1000 * figures.seconds:>9.1f} {figures.seconds / fastest:>6.2f}  {verdict}".rstrip()
        )
        name = ""
    return "\n".join(lines), passes


def main() -> None:
    """Print the table; exit code 1 where "adaptive" fails."""
    parser = arguments(__doc__)
    parser.add_argument("--lanes", type=int, default=64)
    parser.add_argument("--programs", nargs="*", help="names of programs; all by default")
    options = parser.parse_args()
    print(
        f"{'program':>15} {'schedule':>9} {'dear':>6} {'rows':>8} {'useful':>6} {'trips':>6} {'cost':>9} {'ratio':>6}"
        f" {'ms':>9} {'ratio':>6}"
    )
    figures, failed = {}, []
    for program in PROGRAMS:
        if options.programs and program.__name__ not in options.programs:
            continue
        figures[program.__name__] = figures_of(program, options.lanes, options.repeats)
        text, passes = table(program.__name__, figures[program.__name__])
        print(text, flush=True)
        failed += [] if passes else [program.__name__]
    if options.json:
        write_json(options.json, {n: {s: vars(f) for s, f in by.items()} for n, by in figures.items()})
    if failed:
        raise SystemExit(f'"adaptive" is more than {MARGIN} times the best for {", ".join(failed)}')


if __name__ == "__main__":
    main()
