"""What does a warm call cost, when there is next to nothing to compute?

    python -m benchmarks.calls [--repeats 15] [--json out/calls.json]

Microseconds of a call of four lanes, and the ratio to a jitted `tf.function` that computes the same: a branch on one to
three arguments, the same with 10 and 100 captured arrays, which every call looks at anew, a loop, and a recursion.
Then calls with three arrays of NumPy, their results as tensors and as NumPy's arrays (`output="numpy"`), beside
`jax.jit` where JAX is installed: one call after another, and single ones after 3 ms in which nothing runs. CPU time is
that of all threads: other programs on the machine change it less.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.harness import arguments, measure, write_json

CALLS = 200
"""Calls that are timed together."""
IDLED, PAUSE = 100, 0.003
"""So many calls that are timed alone, each after so many seconds."""
X, Y, Z = (tf.constant(np.random.default_rng(seed).normal(size=4), tf.float32) for seed in range(3))
N = tf.constant([3, 0, 2, 4])
TEN = [tf.constant(0.25) for _ in range(10)]
HUNDRED = [tf.constant(0.25) for _ in range(100)]


@pcbatch.autobatch
def one(x):
    """Doubles what is above 0."""
    if x > 0.0:
        return x * 2.0
    return x


@pcbatch.autobatch
def two(x, y):
    """Of two arguments."""
    if x > y:
        return x * 2.0
    return y


@pcbatch.autobatch
def three(x, y, z):
    """Of three."""
    if x > y:
        return x * 2.0
    return z


@pcbatch.autobatch
def with_ten(x):
    """Reads 10 arrays from around it."""
    if x > 0.0:
        return x * tf.add_n(TEN)
    return x


@pcbatch.autobatch
def with_hundred(x):
    """Reads 100."""
    if x > 0.0:
        return x * tf.add_n(HUNDRED)
    return x


@pcbatch.autobatch
def loop(n):
    """The sum of the numbers up to `n`."""
    total = 0
    while n > 0:
        total += n
        n -= 1
    return total


@pcbatch.autobatch
def recursion(n):
    """The same, on a stack."""
    if n <= 0:
        return 0
    return recursion(n - 1) + n


CASES: dict[str, tuple[Any, Callable[..., tf.Tensor], tuple[tf.Tensor, ...]]] = {
    "a branch, 1 argument": (one, lambda x: tf.where(x > 0.0, x * 2.0, x), (X,)),
    "a branch, 2 arguments": (two, lambda x, y: tf.where(x > y, x * 2.0, y), (X, Y)),
    "a branch, 3 arguments": (three, lambda x, y, z: tf.where(x > y, x * 2.0, z), (X, Y, Z)),
    "10 captured arrays": (with_ten, lambda x: tf.where(x > 0.0, x * tf.add_n(TEN), x), (X,)),
    "100 captured arrays": (with_hundred, lambda x: tf.where(x > 0.0, x * tf.add_n(HUNDRED), x), (X,)),
    "a loop": (loop, lambda n: n * (n + 1) // 2, (N,)),
    "a recursion": (recursion, lambda n: n * (n + 1) // 2, (N,)),
}
"""The batched function, what a masked program would compute, and the arguments."""


def jitted() -> Callable[..., Any] | None:
    """`three` by `jax.jit`, its result as NumPy has it; None where JAX is not installed."""
    try:
        import jax
    except ImportError:
        return None
    compiled = jax.jit(lambda x, y, z: jax.numpy.where(x > y, x * 2.0, z))
    return lambda *batch: np.asarray(compiled(*batch))


def from_numpy() -> dict[str, Callable[..., Any]]:
    """`three` in several ways, from arrays of NumPy."""
    plain = tf.function(CASES["a branch, 3 arguments"][1], jit_compile=True, autograph=False)
    found = {"tf.function": plain, "pcbatch": three, "output='numpy'": three.options(output="numpy")}
    jax = jitted()
    return found if jax is None else {**found, "jax.jit": jax}


def idled(function: Callable[..., Any], batch: Sequence[Any]) -> float:
    """Seconds of a call after a pause, the median of some."""
    found = []
    for _ in range(IDLED):
        time.sleep(PAUSE)
        started = time.perf_counter()
        function(*batch)
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def in_cpu_time(ways: dict[str, Callable[..., Any]], batch: Sequence[Any], repeats: int) -> dict[str, float]:
    """Seconds of CPU time of a call of each, in turns, the median."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, function in ways.items():
            started = time.process_time()
            often(function, batch)()
            found[name].append((time.process_time() - started) / CALLS)
    return {name: statistics.median(each) for name, each in found.items()}


def often(function: Callable[..., Any], batch: Sequence[Any]) -> Callable[[], Any]:
    """`CALLS` calls, and the last one's result as NumPy has it."""

    def calls() -> np.ndarray:
        for _ in range(CALLS - 1):
            function(*batch)
        return np.asarray(function(*batch))

    return calls


def main() -> None:
    """Print the figures."""
    options = arguments(__doc__).parse_args()
    found = {}
    print(f"{'microseconds a call':>22} {'tf.function':>12} {'pcbatch':>8} {'ratio':>6}")
    for name, (batched, plain, batch) in CASES.items():
        compiled = tf.function(plain, jit_compile=True, autograph=False)
        found[name] = measure(
            {"tf.function": often(compiled, batch), "pcbatch": often(batched, batch)},
            repeats=options.repeats,
            rtol=1e-6,
        )
        theirs, ours = (found[name][which].median / CALLS * 1e6 for which in ("tf.function", "pcbatch"))
        print(f"{name:>22} {theirs:>12.0f} {ours:>8.0f} {found[name]['pcbatch'].ratio:>6.2f}")
    batch = tuple(each.numpy() for each in (X, Y, Z))
    ways = from_numpy()
    found["from NumPy"] = measure(
        {name: often(function, batch) for name, function in ways.items()}, repeats=options.repeats, rtol=1e-6
    )
    busy = in_cpu_time(ways, batch, options.repeats)
    after_a_pause = {name: idled(function, batch) for name, function in ways.items()}
    print(f"\n{'microseconds, 3 arrays':>22} {'in a row':>9} {'CPU time':>9} {'after 3 ms':>10}")
    for name in ways:
        in_a_row = found["from NumPy"][name].median / CALLS
        figures = f"{in_a_row * 1e6:>9.1f} {busy[name] * 1e6:>9.1f} {after_a_pause[name] * 1e6:>10.0f}"
        print(f"{name:>22} {figures}")
    if options.json:
        write_json(options.json, {**found, "CPU time": busy, "after 3 ms": after_a_pause})


if __name__ == "__main__":
    main()
