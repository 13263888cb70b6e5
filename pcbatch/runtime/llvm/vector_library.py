"""Functions of vectors of floats: those of the C library's vector part, where it has them, else one after another.

glibc's `libmvec` has them for x86, named after Intel's vector function ABI, right to 4 units in the last place. It is
given vectors of 256 bits: how wider ones are handed over differs between processors that have the same instructions.
"""

from __future__ import annotations

import ctypes
import functools
import platform
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from pcbatch.runtime.llvm.library_calls import call as call_declared
from pcbatch.runtime.llvm.types import INT32, Number

LIBRARY = "libmvec.so.1"
BITS = 256
_OF_ONE = ("cbrt", "cos", "erf", "exp", "expm1", "log", "log1p", "sin", "tan", "tanh")
_OF_TWO = ("atan2", "fmod", "hypot", "pow")


def has(name: str) -> bool:
    """True for functions that LLVM has no instructions for."""
    return name in _OF_ONE or name in _OF_TWO


@functools.cache
def library() -> Any:
    """The vector part of the C library; None where there is none for this processor."""
    if platform.machine() != "x86_64" or not llvm.get_host_cpu_features().get("avx2"):
        return None
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


@functools.cache
def _has(symbol: str) -> bool:
    return library() is not None and hasattr(library(), symbol)


def call(builder: Any, of: Number, name: str, *values: Any) -> Any:
    """The result of a function of the C library for each number of vectors."""
    single = "" if of.bits == 64 else "f"
    count = min(BITS // of.bits, of.lanes)
    symbol = f"_ZGVdN{count}{'v' * len(values)}_{name}{single}"
    if count * of.bits < BITS or not _has(symbol):
        return _one_by_one(builder, of, name + single, values)
    part = of.narrow.wide(count)
    starts = range(0, of.lanes, count)
    parts = [
        call_declared(builder, symbol, part.type, *(_chosen(builder, each, each, start, count) for each in values))
        for start in starts
    ]
    while len(parts) > 1:  # halves become a whole
        size = parts[0].type.count
        parts = [_chosen(builder, *pair, 0, 2 * size) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _chosen(builder: Any, left: Any, right: Any, start: int, count: int) -> Any:
    """Select so many numbers of two vectors, from a place on."""
    places = [ir.Constant(INT32, start + place) for place in range(count)]
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(INT32, count), places))


def _one_by_one(builder: Any, of: Number, name: str, values: Any) -> Any:
    found = ir.Constant(of.type, ir.Undefined)
    for place in range(of.lanes):
        at = ir.Constant(INT32, place)
        one = call_declared(builder, name, of.narrow.type, *(builder.extract_element(each, at) for each in values))
        found = builder.insert_element(found, one, at)
    return found
