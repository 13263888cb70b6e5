"""How pcbatch looks to a type checker. mypy reads this file (tests/api/test_types.py); nothing runs it.

Lines with `type: ignore[..]` must be errors, of that kind: an ignore that is not needed is an error itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
bare.run(array, 3, 4)  # type: ignore[call-arg]
bare.single(x="text")  # type: ignore[arg-type]
bare.options(max_step=7)  # type: ignore[call-arg]
bare.options(schedule="latest")  # type: ignore[arg-type]
bare.options(jit="no")  # type: ignore[arg-type]
pcbatch.autobatch(jitt=True)  # type: ignore[call-overload]
pcbatch.autobatch(plain, backend="torch")  # type: ignore[call-overload]
bare.ir("ssa")  # type: ignore[arg-type]
