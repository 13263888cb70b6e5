"""Functions of `operator` that change what they are given, written in the language, as `in_python` says."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


def setitem(a: Any, b: Any, c: Any) -> None:
    """`operator.setitem`."""
    a[b] = c


def delitem(a: Any, b: Any) -> None:
    """`operator.delitem`."""
    del a[b]


def iadd(a: Any, b: Any) -> Any:
    """`operator.iadd`."""
    a += b
    return a


def isub(a: Any, b: Any) -> Any:
    """`operator.isub`."""
    a -= b
    return a


def imul(a: Any, b: Any) -> Any:
    """`operator.imul`."""
    a *= b
    return a


def itruediv(a: Any, b: Any) -> Any:
    """`operator.itruediv`."""
    a /= b
    return a


def ifloordiv(a: Any, b: Any) -> Any:
    """`operator.ifloordiv`."""
    a //= b
    return a


def imod(a: Any, b: Any) -> Any:
    """`operator.imod`."""
    a %= b
    return a


def ipow(a: Any, b: Any) -> Any:
    """`operator.ipow`."""
    a **= b
    return a


def iand(a: Any, b: Any) -> Any:
    """`operator.iand`."""
    a &= b
    return a


def ior(a: Any, b: Any) -> Any:
    """`operator.ior`."""
    a |= b
    return a


def ixor(a: Any, b: Any) -> Any:
    """`operator.ixor`."""
    a ^= b
    return a


def ilshift(a: Any, b: Any) -> Any:
    """`operator.ilshift`."""
    a <<= b
    return a


def irshift(a: Any, b: Any) -> Any:
    """`operator.irshift`."""
    a >>= b
    return a


def while_loop(
    convert: Any,
    cond: Any,
    body: Any,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: Any = 10,
    back_prop: Any = True,
    swap_memory: Any = False,
    maximum_iterations: Any = None,
    name: Any = None,
) -> Any:
    """`tf.while_loop` of numbers and arrays, which `convert` makes tensors of."""
    values = tuple([convert(each) for each in loop_vars])
    turns = 0
    while cond(*values):
        if maximum_iterations is not None and turns >= maximum_iterations:
            break
        values = tuple(body(*values))
        turns += 1
    return list(values) if isinstance(loop_vars, list) else values


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    operator.setitem: setitem,
    operator.delitem: delitem,
    operator.iadd: iadd,
    operator.isub: isub,
    operator.imul: imul,
    operator.itruediv: itruediv,
    operator.ifloordiv: ifloordiv,
    operator.imod: imod,
    operator.ipow: ipow,
    operator.iand: iand,
    operator.ior: ior,
    operator.ixor: ixor,
    operator.ilshift: ilshift,
    operator.irshift: irshift,
}
"""The functions that are read in the place of functions that are given anything of a lane's."""
