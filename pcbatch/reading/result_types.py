"""Types of what common operations give, from the types of their operands alone: nothing is traced for them.

Indices and stores have NumPy's rules for shapes. An elementwise operator gives an array of a dtype that depends on the
dtypes of its operands only, and of the shape to which these are broadcast: the backend is asked once for the dtypes
(`ResultTypes`). What is out of the ordinary is None here, and is tried: constants that are large, indices that are out
of range, shapes that do not fit, dtypes that do not meet.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pcbatch.ir.operators import COMPARISONS
from pcbatch.ir.types import TensorType
from pcbatch.reading.operations import WindowOf
from pcbatch.reading.values import Lane

_INTS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
_DTYPES = _INTS | _FLOATS | {"bool", "complex64", "complex128"}
_PLAIN = frozenset({"+", "-", "*", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "-x", "+x", "~x", "if"})
_CHECKED = frozenset({"/", "//", "%", "**", "<<", ">>"})
"""Operators of which a constant operand may say that they cannot fail, or that they always do."""
_DIVISIONS = frozenset({"/", "//", "%"})
_LARGEST = 65504.0
"""The largest number of float16: every dtype of floats has one as large."""

Known = tuple[TensorType, bool]
"""The type of what an operation gives, and whether it may fail a lane."""


def known_result(key: Hashable, arguments: Sequence[Any]) -> Known | None:
    """Return the result type of an index or a store."""
    match key, arguments:
        case "[]", (Lane(_, type_), index):
            return _element(type_, index)
        case ("builtin", "__stored__"), (Lane(_, type_), value, *places):
            return _stored(type_, value, places)
    return None


def _element(type_: TensorType, index: Any) -> Known | None:
    parts = index if type(index) is tuple else (index,)
    if type_.weak or type_.dtype not in _DTYPES or not type_.shape or 0 in type_.shape:
        return None
    taken = sum(part is not None and part is not ... for part in parts)
    if taken > len(type_.shape) or sum(part is ... for part in parts) > 1:
        return None
    found: list[Any] = []
    sizes = iter(_sizes(parts, type_.shape, taken))
    is_checked = False
    for part in parts:
        size = None if part is None or part is ... else next(sizes)
        match part:
            case Lane(_, TensorType(dtype, ())) if dtype in _INTS:
                found.append(0)
                is_checked = True
            case WindowOf(start, length, step) if size is not None:
                count = len(range(0, length, step or 1))
                if not 1 <= count <= size or not _is_place(start):
                    return None
                found.append(slice(0, count))
                is_checked = True
            case int() if type(part) is int and size is not None and -size <= part < size:
                found.append(part)
            case slice() if all(each is None or type(each) is int for each in (part.start, part.stop, part.step)):
                if part.step == 0:
                    return None
                found.append(part)
            case _ if part is None or part is ...:
                found.append(part)
            case _:
                return None
    shape = np.broadcast_to(np.zeros(()), type_.shape)[tuple(found)].shape
    return (TensorType(type_.dtype, shape), is_checked) if 0 not in shape else None


def _sizes(parts: Sequence[Any], shape: tuple[int, ...], taken: int) -> list[int]:
    """The lengths of the axes that the parts of an index take, `None` and `...` apart."""
    before = next((place for place, part in enumerate(parts) if part is ...), len(parts))
    first = sum(part is not None for part in parts[:before])
    return [*shape[:first], *shape[len(shape) - (taken - first) :]]


def _is_place(start: Any) -> bool:
    return isinstance(start, Lane) and not start.type.shape and _is_int(start)


def _are_places(index: Any) -> bool:
    """Return whether an index of a store is one position, or a vector of them."""
    return isinstance(index, Lane) and len(index.type.shape) < 2 and 0 not in index.type.shape and _is_int(index)


def _is_int(lane: Lane) -> bool:
    return lane.type.dtype in _INTS


def _stored(type_: TensorType, value: Any, places: Sequence[Any]) -> Known | None:
    if type_.weak or type_.dtype not in _DTYPES or len(places) > len(type_.shape) or 0 in type_.shape:
        return None
    if not all(map(_are_places, places)) or not isinstance(value, Lane):
        return None
    own = value.type
    same = own.dtype == type_.dtype or (own.weak and own.dtype == "float64" and type_.dtype in _FLOATS)
    shape = (*(size for each in places for size in each.type.shape), *type_.shape[len(places) :])
    return (type_, bool(places)) if same and own.shape in ((), shape) else None


class ResultTypes:
    """The result types of operations; of elementwise operators as far as trying them has shown."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[str, bool, bool]] = {}
        """The dtype, whether that is weak, and whether the operator may fail a lane."""

    def of(self, module: str, key: Hashable, arguments: Sequence[Any]) -> Known | None:
        """Return the result type of a backend's operation; None where it is not known."""
        return self._elementwise(module, key, arguments) or known_result(key, arguments)

    def _elementwise(self, module: str, key: Hashable, arguments: Sequence[Any]) -> Known | None:
        kinds, shape = _kinds(key, arguments)
        if kinds is None or shape is None:
            return None
        found = self._known.get((module, key, kinds)) or _promoted(key, kinds)
        if found is None:
            return None
        dtype, weak, is_checked = found
        return TensorType(dtype, shape, weak), is_checked

    def note(self, module: str, key: Hashable, arguments: Sequence[Any], result: Any, is_checked: bool) -> None:
        """An operator has been tried."""
        kinds, shape = _kinds(key, arguments)
        if isinstance(result, TensorType) and result.shape == shape:
            self._known[module, key, kinds] = result.dtype, result.weak, is_checked


def _promoted(key: Hashable, kinds: Sequence[Any]) -> tuple[str, bool, bool] | None:
    """Return the rules of promotion's answer for numbers of the usual dtypes; None for all others."""
    if key == "[]":
        found = {_NUMBERS.get(kind[:2]) for kind in kinds[1]}
        one = found.pop() if len(found) == 1 else None
        return None if one is None else (*one, True)
    if key == "if":
        yes, no = (_NUMBERS.get(kind[:2]) for kind in kinds[1:])
        return (*yes, False) if kinds[0] == ("bool", False, False) and yes is not None and yes == no else None
    numbers = [number for kind in kinds if (number := _NUMBERS.get(kind[:2])) is not None]
    if len(numbers) < len(kinds):
        return None
    if len(numbers) == 1:
        return (*numbers[0], False) if key in ("-x", "+x") else None
    if key in COMPARISONS:
        return "bool", False, False
    dtype, weak = _joined(*numbers)
    is_float = dtype.startswith("float")
    if key in ("+", "-", "*"):
        return dtype, weak, False
    if key == "/" and is_float and not weak:
        return dtype, False, False
    return (dtype, weak, kinds[1] != (int, "divides")) if key in ("//", "%") and not is_float else None


_WIDTHS = {"int32": 1, "int64": 2, "float32": 3, "float64": 4}
_NUMBERS: dict[Any, tuple[str, bool]] = {
    **{(dtype, False): (dtype, False) for dtype in _WIDTHS},
    **{(dtype, True): (dtype, True) for dtype in ("int32", "float64")},
    **{(int, how): ("int32", True) for how in (False, True, "divides")},
    **{(float, how): ("float64", True) for how in (False, True, "divides")},
}
"""The dtype of a kind of operand, and whether it is weak."""


def _joined(a: tuple[str, bool], b: tuple[str, bool]) -> tuple[str, bool]:
    """The dtype of two numbers that meet, and whether it is weak."""
    if a[1] == b[1]:
        return max(a, b, key=lambda each: _WIDTHS[each[0]])
    (strong, _), (weak, _) = (b, a) if a[1] else (a, b)
    is_cast = strong.startswith("int") and weak == "float64"
    return ("float32" if is_cast else strong), False


def _divides(number: float) -> bool:
    """Tell whether a divisor is a number of every dtype of its kind."""
    return 1 <= number <= (_LARGEST if isinstance(number, float) else 127)


def _kinds(key: Hashable, arguments: Sequence[Any]) -> tuple[tuple[Hashable, ...] | None, tuple[int, ...] | None]:
    """Return a key of the dtype, and the shape of an operator's result; None where it is not elementwise."""
    if key == "[]" and type(arguments[0]) is list and isinstance(arguments[1], Lane):
        items, shape = _kinds("if", [*arguments[0], arguments[1]])
        if items is None or shape != () or not _is_place(arguments[1]):
            return None, None
        return ("one of", frozenset(items[:-1]), arguments[1].type), ()
    is_plain = key in _PLAIN
    if not is_plain and key not in _CHECKED:
        return None, None
    kinds: list[Hashable] = []
    shapes: list[tuple[int, ...]] = []
    for each in arguments:
        match each:
            case Lane(_, TensorType(dtype, shape, weak)) if dtype in _DTYPES and 0 not in shape:
                kinds.append((dtype, weak, bool(shape)))
                shapes.append(shape)
            case bool() | int() | float() if is_plain and -128 <= each <= 127:
                kinds.append((type(each), each < 0))
            case float() if is_plain and abs(each) <= _LARGEST:
                kinds.append((float, each < 0))
            case int() | float() if key in _DIVISIONS and each is arguments[1] and _divides(each):
                kinds.append((type(each), "divides"))
            case bool() | int() | float():
                kinds.append((type(each), repr(each)))
            case _:
                return None, None
    if key == "if" and any(shapes) and len(arguments) == 3 and shapes != [(), shapes[-1], shapes[-1]]:
        return None, None  # the two values have one shape
    if not any(isinstance(each, Lane) for each in arguments):
        return None, None
    try:
        return tuple(kinds), np.broadcast_shapes(*shapes)
    except ValueError:
        return None, None
