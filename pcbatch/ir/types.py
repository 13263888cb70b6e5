"""Types of lane values: tensors of one dtype and static shape, fixed structures of them, and joins of types.

A type describes ONE example; the batch axis is the machine's business. `weak` marks Python numbers that have not met a
tensor yet (as in JAX's weak types); weak numbers are scalars of int32 or float64, as wide as Python's own.

Types are joined where branches, loops, calls and returns meet (design: "Numbers"). An unknown type is None. Unknown
with t is t; weak int with weak float is weak float; a weak int takes any numeric tensor's dtype, a weak float a
floating tensor's; two ints or two floats meet in the wider dtype, and an int meets a float in the float's where that
holds all of the int's numbers. Everything else that differs is a conflict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class TensorType:
    """A tensor of one example: dtype name (`"int32"`), static shape, and whether it is a weak Python number."""

    dtype: str
    shape: tuple[int, ...] = ()
    weak: bool = False

    @property
    def returned(self) -> str:
        """The dtype that such a value has in the results of a batch: a weak float becomes float32 there at last."""
        return "float32" if self.weak and self.dtype == "float64" else self.dtype

    @property
    def bytes(self) -> int:
        """The size of such a value in bytes."""
        bits = "".join(filter(str.isdigit, self.dtype))  # bools have none, and take a byte
        return math.prod(self.shape) * (int(bits) // 8 if bits else 1)

    def __str__(self) -> str:
        """`int32[]`, `float32[3, 4]`, `weak int32[]`."""
        return f"{'weak ' if self.weak else ''}{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class StructType:
    """A fixed structure: `kind` is "tuple", "list", "dict", "None" or the name of a named tuple or dataclass.

    `keys` are the dict's keys or the fields' names (empty for tuples and lists); `constructor` rebuilds a value from
    its items and takes no part in comparisons, so that a type read back from text equals the one that was printed.
    """

    kind: str
    items: tuple[Type, ...]
    keys: tuple[Any, ...] = ()
    constructor: type | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """`(int32[], float32[3])`, `[int32[]]`, `{a: int32[]}`, `State(x=float32[3])`."""
        items = [str(item) for item in self.items]
        match self.kind:
            case "tuple":
                return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
            case "list":
                return f"[{', '.join(items)}]"
            case "dict":
                keys = [key if _is_plain(key) else repr(key) for key in self.keys]
                return "{" + ", ".join(f"{k}: {v}" for k, v in zip(keys, items, strict=True)) + "}"
            case "None":
                return "None"
            case name:
                return f"{name}({', '.join(f'{k}={v}' for k, v in zip(self.keys, items, strict=True))})"


def _is_plain(key: Any) -> bool:
    """Return whether a key of a dict is written without quotes."""
    return isinstance(key, str) and key.isidentifier() and key not in ("True", "False", "None")


Type = TensorType | StructType

NONE = StructType("None", ())
"""The type of None: a structure without leaves."""


def leaves(type_: Type) -> Iterator[TensorType]:
    """The tensor types inside `type_`, left to right."""
    match type_:
        case TensorType():
            yield type_
        case StructType(items=items):
            for item in items:
                yield from leaves(item)


def is_number(type_: Type) -> bool:
    """True for the type of one number."""
    return isinstance(type_, TensorType) and type_.shape == ()


def elements(type_: Type) -> int:
    """Return the number of elements in a value of the type."""
    return sum(math.prod(leaf.shape) for leaf in leaves(type_))


def with_leaves(type_: Type, new: Iterator[TensorType]) -> Type:
    """`type_` with the next of `new` in place of each of its tensor types."""
    match type_:
        case TensorType():
            return next(new)
        case StructType(items=items):
            return replace(type_, items=tuple(with_leaves(item, new) for item in items))
    raise TypeError(f"not a type: {type_!r}")


def returned(type_: Type) -> Type:
    """`type_` as it is in the results of a batch, where nothing is weak."""
    return with_leaves(type_, (TensorType(leaf.returned, leaf.shape) for leaf in leaves(type_)))


def structs(type_: Type) -> Iterator[StructType]:
    """The structures inside `type_`, itself among them."""
    if isinstance(type_, StructType):
        yield type_
        for item in type_.items:
            yield from structs(item)


def records(type_: Type) -> Iterator[type]:
    """The classes of the named tuples and dataclasses inside `type_`."""
    return (each.constructor for each in structs(type_) if each.constructor is not None)


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
