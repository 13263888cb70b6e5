"""How long one example takes in `f.single`, beside the undecorated function on NumPy's values.

    python -m benchmarks.single [--repeats 5]

A line for each program: milliseconds of the undecorated function and of `f.single`, and their ratio. The programs take
milliseconds, so that making arguments and results, about 0.1 ms for a call, hardly counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pcbatch

RNG = np.random.default_rng(0)


@pcbatch.autobatch
def layers(x, w, n):
    """Arrays of some size: the products are NumPy's."""
    for _ in range(n):
        x = np.tanh(w @ x) + 0.1 * x
    return x


@pcbatch.autobatch
def rows(m, n):
    """Views and stores of rows."""
    for k in range(n):
        m[k % 100] = m[(k + 1) % 100] * 0.5 + m[k % 100]
    return m


@pcbatch.autobatch
def sorting(a):
    """Stores of single elements."""
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


@pcbatch.autobatch
def logistic(x, n):
    """Floats of 32 bits, one after another."""
    for _ in range(n):
        x = 3.7 * x * (1.0 - x)
    return x


def _counted(n):
    return n if n < 2 else _counted(n - 1) + _counted(n - 2)


@pcbatch.autobatch
def recursion(n):
    """Ints of 32 bits in a recursion."""
    return _counted(n)


PROGRAMS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (layers, (RNG.normal(size=400), RNG.normal(size=(400, 400)) / 20, np.int32(200))),
    (rows, (RNG.normal(size=(100, 1000)), np.int32(2000))),
    (sorting, (RNG.normal(size=80).astype(np.float32),)),
    (logistic, (np.float32(0.3), np.int32(10000))),
    (recursion, (np.int32(18),)),
)


def seconds(function: Callable[..., Any], arguments: Sequence[Any], repeats: int) -> float:
    """The shortest time of a call, each with arrays of its own."""
    times = []
    for _ in range(repeats):
        given = [np.array(each) if np.ndim(each) else each for each in arguments]
        started = time.perf_counter()
        function(*given)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print(f"{'program':12}{'NumPy ms':>10}{'single ms':>11}{'ratio':>7}")
    for function, arguments in PROGRAMS:
        with np.errstate(all="ignore"):
            plain, single = (seconds(each, arguments, repeats) for each in (function.function, function.single))
        print(f"{function.__name__:12}{1e3 * plain:10.2f}{1e3 * single:11.2f}{single / plain:7.2f}")


if __name__ == "__main__":
    main()
