"""Dtypes by their names: which integers hold others, and NumPy's casts where a number is stored into an array."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"(u?)int(\d+)")
_PRECISION = {"float16": 11, "bfloat16": 8, "float32": 24, "complex64": 24}
"""The bits of significands where they are not those of float64."""
_KINDS = ("bool", "int", "float", "complex")


def wider_integer(one: str, other: str) -> str | None:
    """The least integer dtype that holds all numbers of both, as in NumPy; None where there is none."""
    first, second = _INTEGER.fullmatch(one), _INTEGER.fullmatch(other)
    if first is None or second is None:
        return None
    bits = {found[1]: 0 for found in (first, second)}
    for found in (first, second):
        bits[found[1]] = max(bits[found[1]], int(found[2]))
    if len(bits) == 1:
        return "".join((*bits, f"int{max(bits.values())}"))
    signed = bits[""] if bits[""] > bits["u"] else 2 * bits["u"]
    return f"int{signed}" if signed <= 64 else None


def meeting(one: str, other: str) -> str | None:
    """The dtype in which two arrays meet; None where no int holds both.

    An int or a bool beside a float has the float's dtype, two floats have the wider one, and so have two ints.
    """
    if one == other or other == "bool":
        return one
    if one == "bool":
        return other
    if not (is_inexact(one) and is_inexact(other)):
        return wider_integer(one, other) if is_inexact(one) == is_inexact(other) else one if is_inexact(one) else other
    if "complex" in one or "complex" in other:
        return "complex128" if _bits(one) == 64 or _bits(other) == 64 else "complex64"
    if _bits(one) == _bits(other):
        return "float32"  # bfloat16 and float16
    return one if _bits(one) > _bits(other) else other


def holds_exactly(dtype: str, array: str) -> bool:
    """Return whether every number of `dtype` is one of `array`, a float's dtype."""
    found = _INTEGER.fullmatch(dtype)
    return found is not None and int(found[2]) - (not found[1]) <= _PRECISION.get(array, 53)


def is_inexact(dtype: str) -> bool:
    """Return whether `dtype` names a floating or complex type."""
    return dtype.startswith(("float", "bfloat", "complex"))


def _bits(dtype: str) -> int:
    """The bits of a real number of a floating or complex dtype."""
    bits = int(dtype.lstrip("bcfloatmpex"))
    return bits // 2 if dtype.startswith("complex") else bits


def casts_into(value: str, array: str) -> bool:
    """Return whether NumPy casts a number of dtype `value` stored into an array of dtype `array` ("same kind").

    An int takes another number of bits, and floats take ints; what would cut off a fraction is not cast.
    """
    return _kind(value) <= _kind(array)


def _kind(dtype: str) -> int:
    name = dtype.removeprefix("b") if dtype.startswith("bfloat") else dtype.removeprefix("u")
    return next(place for place, kind in enumerate(_KINDS) if name.startswith(kind))


ATTRIBUTES = frozenset({"T", "imag", "ndim", "real", "size"})
METHODS = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "copy", "cumprod", "cumsum", "diagonal"}
    | {"dot", "flatten", "item", "max", "mean", "min", "prod", "ravel", "repeat", "reshape", "round", "searchsorted"}
    | {"squeeze", "std", "sum", "swapaxes", "tolist", "trace", "transpose", "var"}
)
MEMBERS = ATTRIBUTES | METHODS
