"""Joins of types where branches, loops, calls and returns meet (design: "Numbers").

An unknown type is None. Unknown with t is t; weak int with weak float is weak float; a weak int takes any numeric
tensor's dtype, a weak float a floating tensor's; two ints or two floats meet in the wider dtype, and an int meets a
float in the float's where that holds all of the int's numbers. Everything else that differs is a conflict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from pcbatch.ir.types import NONE, StructType, TensorType, Type, records

# -- dtypes ------------------------------------------------------------------------------------------------------------
# Dtypes by their names: which integers hold others, and NumPy's casts where a number is stored into an array.

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


# -- joins -------------------------------------------------------------------------------------------------------------

Spelling = Callable[[str], str]
"""The spelling of an operation or a dtype for users of an array library: with TensorFlow, `tf.cast` for "cast"."""


class ConflictError(TypeError):
    """Raised if two types have no join; `told` gives the reason and the cast to write.

    `text` has `{}` wherever one of `operations` is named; without any it is as it stands.
    """

    def __init__(self, text: str, *operations: str):
        self.text, self.operations = text, operations
        super().__init__(self.told(str))

    def told(self, spelling: Spelling) -> str:
        """The message to users of a library that spells operations so."""
        return self.text.format(*map(spelling, self.operations)) if self.operations else self.text


def join(old: Type | None, new: Type | None) -> Type | None:
    """The least type that holds both; raises ConflictError where there is none."""
    if old is None or new is None:
        return new if old is None else old
    return _join_known(old, new)


def _join_known(old: Type, new: Type) -> Type:
    if old == new:
        if any(one is not other for one, other in zip(records(old), records(new), strict=False)):
            raise ConflictError(f"two classes are called {_doubtful(old, new)}; give one of them another name")
        return old
    match old, new:
        case TensorType(), TensorType():
            return _join_tensors(old, new)
        case StructType(), StructType() if (old.kind, old.keys, len(old.items)) == (new.kind, new.keys, len(new.items)):
            return replace(old, items=tuple(_join_known(a, b) for a, b in zip(old.items, new.items, strict=True)))
        case StructType(), StructType() if (old.kind, *sorted(old.keys)) == (new.kind, *sorted(new.keys)) and old.keys:
            raise ConflictError("the keys stand in another order; write them in the same order on both paths")
    if isinstance(old, StructType) and isinstance(new, StructType) and old.kind == new.kind == "list":
        raise ConflictError(
            "a list has one length at each place; let all lanes append equally often, `for k in range(4):`, "
            "else take `pcbatch.bounded(shape, dtype, capacity)`, or an array of the largest size, `a[n] = v`, and "
            "count in `n`"
        )
    if NONE in (old, new):
        raise ConflictError(
            "one is None, and the other is not; begin with a value of the other's type, `xs[0]` or `float('-inf')`, "
            "and say in a bool whether it counts"
        )
    raise ConflictError("their structures differ; give both paths the same structure")


def _doubtful(old: Type, new: Type) -> str:
    """The name that two classes share, the first of its kind in two equal types."""
    return next(one.__name__ for one, other in zip(records(old), records(new), strict=False) if one is not other)


def _join_tensors(old: TensorType, new: TensorType) -> TensorType:
    if old.shape != new.shape:
        why = f"shapes {list(old.shape)} and {list(new.shape)} differ, and nothing broadcasts here"
        if () in (old.shape, new.shape):
            raise ConflictError(why + "; write {}(..) or {}(..) where the scalar is set", "zeros_like", "fill")
        raise ConflictError(why)
    if old.weak and new.weak:
        return old if is_inexact(old.dtype) else new  # two different weak types: int and float
    if old.weak or new.weak:
        weak, committed = (old, new) if old.weak else (new, old)
        if committed.dtype == "bool":
            raise ConflictError("a bool and a number do not meet; write True/False, or {} one of them", "cast")
        if is_inexact(weak.dtype) and not is_inexact(committed.dtype):
            why = f"a Python float does not fit {committed.dtype}"
            raise ConflictError(why + "; write an int, or {}(.., {})", "cast", "float32")
        return committed
    if "bool" in (old.dtype, new.dtype):
        raise ConflictError("a bool and a number do not meet; write True/False, or {} one of them", "cast")
    wider = meeting(old.dtype, new.dtype)
    is_exact = is_inexact(old.dtype) == is_inexact(new.dtype) or holds_exactly(
        new.dtype if is_inexact(old.dtype) else old.dtype, wider or ""
    )
    if wider is not None and is_exact:
        return TensorType(wider, old.shape)
    is_new = is_inexact(new.dtype) and not is_inexact(old.dtype)  # a cast to int would cut off
    holds = new.dtype if is_new else old.dtype
    why = f"dtypes {old.dtype} and {new.dtype} differ"
    raise ConflictError(why + "; write {}(.., {}) for the other one", "cast", holds)
