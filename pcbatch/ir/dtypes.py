"""Dtypes by their names: which integers hold others, and what NumPy casts where a number is stored into an array."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"(u?)int(\d+)")
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


def casts_into(value: str, array: str) -> bool:
    """Whether NumPy casts a number of dtype `value` that is stored into an array of dtype `array` (a "same kind" cast).

    An int takes another number of bits, and floats take ints; what would cut off a fraction is not cast.
    """
    return _kind(value) <= _kind(array)


def _kind(dtype: str) -> int:
    name = dtype.removeprefix("b") if dtype.startswith("bfloat") else dtype.removeprefix("u")
    return next(place for place, kind in enumerate(_KINDS) if name.startswith(kind))
