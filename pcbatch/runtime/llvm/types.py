"""The types of numbers: HLO's names, LLVM's types, NumPy's dtypes.

A type may be that of one number, or of a vector of them, one for each of several lanes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import llvmlite.ir as ir

from pcbatch.runtime.llvm.hlo import UnsupportedError


class Splat(ir.Constant):  # type: ignore[misc]
    """A constant vector of equal numbers, in LLVM's short form of them."""

    def _get_reference(self) -> str:
        return f"splat ({self.constant[0]})"


@dataclass(frozen=True)
class Number:
    """A type of numbers: as a register holds it (`type`) and as memory does (`stored`), which for bools is a byte."""

    name: str
    kind: str
    """"bool", "signed", "unsigned", "float", "complex", or "bits", of which nothing is known but how many there are."""
    bits: int
    dtype: str
    type: ir.Type
    stored: ir.Type
    lanes: int = 1
    """The length of the vector, 1 where it is one number."""

    @property
    def bytes(self) -> int:
        """The size of one in memory, or of a vector."""
        return max(self.bits // 8, 1) * self.lanes

    @property
    def suffix(self) -> str:
        """The type in the names of LLVM's own functions."""
        one = f"{'f' if self.is_float else 'i'}{self.bits}"
        return one if self.lanes == 1 else f"v{self.lanes}{one}"

    @property
    def flag(self) -> ir.Type:
        """The type of comparisons."""
        return BIT if self.lanes == 1 else ir.VectorType(BIT, self.lanes)

    @property
    def has_vectors(self) -> bool:
        """True if there are vectors of such numbers."""
        return self.kind not in ("complex", "bits") and self.name != "f16"

    @property
    def narrow(self) -> Number:
        """The type of one number of a vector."""
        return _BY_NAME[self.name]

    def wide(self, lanes: int) -> Number:
        """The type of a vector of so many numbers; `UnsupportedError` for those that have none."""
        return self if lanes == 1 else _wide(self.name, lanes)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_signed(self) -> bool:
        return self.kind == "signed"

    def constant(self, value: Any) -> ir.Constant:
        """A constant of the type, in a vector all the same."""
        if self.lanes > 1:
            return Splat(self.type, self.narrow.constant(value))
        if self.kind == "complex":
            parts = zip(self.type, (value.real, value.imag), strict=True)
            return ir.Constant(self.type, [of(each) for of, each in parts])
        return ir.Constant(self.type, float(value) if self.is_float else int(value))


ALIGNED = 64
"""Alignment of outputs in bytes: TensorFlow takes them over as they are then."""
BYTE, INT32, INT64, BIT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.IntType(1)


def _numbers() -> dict[str, Number]:
    found = {"pred": Number("pred", "bool", 1, "bool", BIT, BYTE)}
    for bits in (8, 16, 32, 64):
        of = ir.IntType(bits)
        found[f"s{bits}"] = Number(f"s{bits}", "signed", bits, f"int{bits}", of, of)
        found[f"u{bits}"] = Number(f"u{bits}", "unsigned", bits, f"uint{bits}", of, of)
    for bits, kind in ((16, ir.HalfType()), (32, ir.FloatType()), (64, ir.DoubleType())):
        found[f"f{bits}"] = Number(f"f{bits}", "float", bits, f"float{bits}", kind, kind)
    for bits in (32, 64):
        pair = ir.LiteralStructType([found[f"f{bits}"].type] * 2)
        found[f"c{2 * bits}"] = Number(f"c{2 * bits}", "complex", 2 * bits, f"complex{2 * bits}", pair, pair)
    found["bf16"] = Number("bf16", "bits", 16, "bfloat16", ir.IntType(16), ir.IntType(16))
    return found


_BY_NAME = _numbers()
_BY_DTYPE = {number.dtype: number for number in _BY_NAME.values()}


@functools.cache
def _wide(name: str, lanes: int) -> Number:
    one = _BY_NAME[name]
    if not one.has_vectors:
        raise UnsupportedError(f"vectors of the dtype {one.dtype}")
    return replace(one, type=ir.VectorType(one.type, lanes), stored=ir.VectorType(one.stored, lanes), lanes=lanes)


def by_name(name: str) -> Number:
    """The type that HLO calls so; `UnsupportedError` for those of which no native code is made."""
    if name not in _BY_NAME:
        raise UnsupportedError(f"numbers of the type {name}")
    return _BY_NAME[name]


def by_dtype(dtype: str) -> Number:
    """The type of NumPy's dtype of this name."""
    if dtype not in _BY_DTYPE:
        raise UnsupportedError(f"numbers of the dtype {dtype}")
    return _BY_DTYPE[dtype]
