"""How pcbatch looks to type checkers: mypy (tests/api/test_types.py) and pyright (`make lint`). Nothing runs it.

Lines with `type: ignore[..]` must be errors, of that kind: an ignore that is not needed is an error itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tensorflow import Tensor
from typing_extensions import assert_type

import pcbatch
from pcbatch import Batched, Run


@dataclass
class Array:
    """Stands for an array type."""

    size: int


@pcbatch.autobatch
def bare(x: Array, n: int = 3) -> Array:
    return x


@pcbatch.autobatch(max_depth=50, schedule="earliest", in_axes={"n": None})
def with_options(x: Array, n: int = 3) -> Array:
    return x


def plain(x: Array, n: int = 3) -> Array:
    return x


called = pcbatch.autobatch(plain, jit=False, in_axes=(0, None), backend="reference")
array = Array(2)

assert_type(bare(array), Array)
assert_type(with_options(array, n=4), Array)
assert_type(called(array, 4), Array)
assert_type(bare.single(array), Array)
assert_type(bare.run(array, 3), Run)
bare.check(array)
assert_type(bare.options(max_steps=7)(array, 2), Array)
assert_type(bare.options(max_steps=7).run(array), Run)
assert_type(bare.source(array), str)
assert_type(bare.ir("stack"), str)
assert_type(bare.ir("cfg", array), str)


def takes(function: Callable[[Array, int], Array]) -> None:
    """A batched function goes where the function went."""


def given(function: Batched[[Array], Array], x: Array) -> Array:
    """A batched function can be named in annotations."""
    return function(x)


takes(bare)
takes(bare.options(name="other"))
takes(bare.single)

bare("text")  # type: ignore[arg-type]
bare.run(array, 3, 4)  # type: ignore[call-overload]
bare.single(x="text")  # type: ignore[arg-type]
bare.options(max_step=7)  # type: ignore[call-arg]
bare.options(schedule="latest")  # type: ignore[arg-type]
bare.options(jit="no")  # type: ignore[arg-type]
pcbatch.autobatch(jitt=True)  # type: ignore[call-overload]
pcbatch.autobatch(plain, backend="torch")  # type: ignore[call-overload]
bare.ir("ssa")  # type: ignore[arg-type]


# Functions of one example, with numbers for annotations, and batches for arguments.


@pcbatch.autobatch
def fib(n: int) -> int:
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


@pcbatch.autobatch(in_axes=(None, 0), static_argnames="kind")
def scaled(scale: float, x: float, kind: str = "plain") -> float:
    return scale * x if kind == "plain" else scale


@pcbatch.autobatch
def extremes(x: float, n: int) -> tuple[float, int]:
    return x, n


class Walk:
    """A batched method."""

    @pcbatch.autobatch
    def ahead(self, x: float) -> float:
        return x


assert_type(fib(3), int)
assert_type(fib([1, 2, 3]), Tensor)
assert_type(fib((1, 2, 3)), Tensor)
assert_type(fib(np.arange(3)), Tensor)
assert_type(fib(n=[1, 2, 3]), Tensor)
assert_type(fib.options(max_steps=9)([1, 2, 3]), Tensor)
assert_type(fib.run([1, 2, 3]), Run)
assert_type(fib.run(np.arange(3), lanes=3), Run)
assert_type(fib.single(3), int)
assert_type(scaled(2.0, [1.0, 2.0]), Tensor)
assert_type(scaled(2.0, np.ones(3), "other"), Tensor)
assert_type(scaled(2.0, x=np.ones(3)), Tensor)
assert_type(scaled.run(2.0, [[1.0], [2.0]]), Run)
assert_type(scaled(2.0, 3.0, lanes=4), Tensor)
fib([1, 2, 3]).numpy()
values, places = extremes([1.0, 2.0], [3, 4])
values.numpy()
Walk().ahead([1.0, 2.0])
fib.check([1, 2])
fib.source(np.arange(3))
xs: list[int] = [1, 2, 3]
fib(xs)
fib([xs, xs])
fib("text")  # type: ignore[arg-type]
fib(None)  # type: ignore[call-overload]
scaled.single([1.0], 2.0)  # type: ignore[arg-type]
