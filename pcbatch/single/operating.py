"""The classes of numbers and arrays: Python's operators on them, and the classes that the user's code sees.

Importing this module gives the operators to the classes of `values`.

Numbers have the classes of a lane's numbers, for which there are stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pcbatch.ir.types import casts_into
from pcbatch.runtime.backends.tensorflow import traced_float
from pcbatch.runtime.backends.tensorflow.traced_float import TracedFloat
from pcbatch.single.meeting import OPERATORS, Operator, apply, dtype_of, is_pythons
from pcbatch.single.values import Array, Number, Value, Variable, Watched, operand, seen

_new = object.__new__
_FLOATS = {dtype: frozenset((dtype, float, int, bool)) for dtype in (np.float16, np.float32, np.float64)}
_INTS = {dtype: frozenset((dtype, int, bool)) for dtype in (np.int8, np.int16, np.int32, np.int64)}
_DIRECT: dict[Any, frozenset[Any]] = {**_FLOATS, **_INTS}
"""The types of numbers beside which NumPy's own operator gives what a lane has."""
_NOTHING: frozenset[Any] = frozenset()
_ON_ARRAYS = frozenset({"add", "sub", "mul", "truediv"})
"""The operators of which arrays of floats of one dtype need nothing but NumPy's."""


def operate(op: Operator, left: Any, right: Any) -> Any:
    """An operator on two values."""
    a, b = operand(left), operand(right)
    if a is NotImplemented or b is NotImplemented:
        other = left if a is NotImplemented else right
        if not isinstance(other, (list, tuple)) or not any(isinstance(each, Array) for each in (left, right)):
            return NotImplemented
        a, b = (np.asarray(each) if each is other else found for each, found in ((left, a), (right, b)))
    if isinstance(left, Array) and left.is_constant:
        a = _beside(a, b, right)
    elif isinstance(right, Array) and right.is_constant:
        b = _beside(b, a, left)
    return seen(apply(op, a, b))


def _beside(constant: Any, other: Any, value: Any) -> Any:
    """A constant array of the dtype of what it meets, where its numbers stay what they are."""
    if not isinstance(constant, np.ndarray) or is_pythons(other) or (isinstance(value, Array) and value.is_constant):
        return constant
    dtype = dtype_of(other)
    if constant.dtype.kind in "iu" and np.dtype(dtype).kind in "iu":
        return constant  # ints of two widths meet in the wider one
    return constant.astype(dtype) if casts_into(constant.dtype.name, dtype.name) else constant


def _methods(op: Operator) -> tuple[Callable[[Any, Any], Any], ...]:
    """The methods of an operator: for numbers that nobody watches, for others, reflected, and for arrays."""
    python, is_division = op.python, op.name in ("floordiv", "mod")
    is_general = op.name in ("truediv", "pow", "lshift", "rshift", "matmul")

    def general(self: Any, other: Any) -> Any:
        return operate(op, self, other)

    def reflected(self: Any, other: Any) -> Any:
        b = self.value if type(self) is Number else None
        if not (is_division or is_general) and type(other) in _DIRECT.get(type(b), _NOTHING):
            try:
                made: Any = _new(Number)
                made.value = python(other, b)
                return made
            except OverflowError:
                pass
        return operate(op, other, self)

    def of_arrays(self: Any, other: Any) -> Any:
        a, b = self.value, other
        if a.dtype.kind == "f" and _is_bare(self):
            if type(other) is Number or (type(other) is Array and _is_bare(other)):
                b = other.value if other.value.dtype == a.dtype else None
            if type(b) in (np.ndarray, float, a.dtype.type):
                return Array(python(a, b))
        return operate(op, self, other)

    def arithmetic(self: Any, other: Any) -> Any:
        a, b = self.value, other.value if type(other) is Number else other
        if type(b) in _DIRECT.get(type(a), _NOTHING):
            try:
                made: Any = _new(Number)
                made.value = python(a, b)
                return made
            except OverflowError:  # an int of Python's that the dtype cannot hold
                pass
        return operate(op, self, other)

    def division(self: Any, other: Any) -> Any:
        a, b = self.value, other.value if type(other) is Number else other
        if type(b) in _DIRECT.get(type(a), _NOTHING) and (b or type(a) in _FLOATS):
            try:
                made: Any = _new(Number)
                made.value = python(a, b)
                return made
            except OverflowError:
                pass
        return operate(op, self, other)

    def comparison(self: Any, other: Any) -> Any:
        a, b = self.value, other.value if type(other) is Number else other
        if type(b) in _DIRECT.get(type(a), _NOTHING):
            return bool(python(a, b))
        return operate(op, self, other)

    fast = comparison if op.compares else division if is_division else arithmetic
    return general if is_general else fast, general, reflected, of_arrays if op.name in _ON_ARRAYS else general


def _is_bare(array: Array) -> bool:
    """Return whether an array is its memory and no more: nobody watches it, and it has its own dtype."""
    return array.tensor is None and array.owner is None and not array.is_constant


def _in_place(op: Operator) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        found = operate(op, self, other)
        given, own = (np.asarray(each).dtype for each in (found, self))
        if given != own and not np.can_cast(given, own, "same_kind"):
            raise TypeError(f"cannot change an array of {own} in place by numbers of {given}")
        self[...] = found
        return self

    return method


for _name, _op in OPERATORS.items():
    _fast, _general, _reflected, _on_arrays = _methods(_op)
    setattr(Number, f"__{_name}__", _fast)
    setattr(Watched, f"__{_name}__", _general)
    setattr(Array, f"__{_name}__", _on_arrays)
    setattr(Variable, f"__{_name}__", _general)
    if not _op.compares:
        for _kind in (Number, Array, Variable):
            setattr(_kind, f"__r{_name}__", _reflected)
        setattr(Array, f"__i{_name}__", _in_place(_op))


# -- classes -----------------------------------------------------------------------------------------------------------


def _scalar(value: Any) -> Any:
    return operand(value) if isinstance(value, Value) else value


def class_of(value: Any) -> type:
    """The class of a value; of a number the one that it has in a lane."""
    if isinstance(value, TracedFloat):
        return float
    if not isinstance(value, Number):
        return type(value)
    dtype = value.dtype
    return bool if dtype.is_bool else int if dtype.is_integer else complex if dtype.is_complex else float


def is_instance(value: Any, classes: Any) -> bool:
    """`isinstance`, by which a number is of the class that it has in a lane."""
    return issubclass(class_of(value), classes) if isinstance(value, Number) else isinstance(value, classes)


class AsPython(type):
    """The type of a class that stands for one of another library's, and has its instances."""

    original: type

    def __instancecheck__(cls, value: Any) -> bool:
        is_ours = isinstance(value, (Number, TracedFloat))
        return issubclass(class_of(value), cls.original) if is_ours else isinstance(value, cls.original)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.original)

    def __hash__(cls) -> int:
        return hash(cls.original)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original

    def __repr__(cls) -> str:
        return repr(cls.original)


class Float(float, metaclass=AsPython):
    """`float`, whose results a tape follows."""

    original = float

    def __new__(cls, *given: Any) -> Any:
        return traced_float.to_float(*map(_scalar, given)) if given else 0.0


class Int(int, metaclass=AsPython):
    """`int`, of which lanes' ints are instances."""

    original = int

    def __new__(cls, *given: Any, **base: Any) -> Any:
        return int(*given, **base)


class Type(type, metaclass=AsPython):
    """`type`, by which a number has the class that it has in a lane; that is `Int` or `Float` here."""

    original = type

    def __new__(cls, *given: Any) -> Any:
        if len(given) != 1:
            return type(*given)
        return STAND_INS.get(found := class_of(given[0]), found)


STAND_INS: dict[type, type] = {float: Float, int: Int}
"""Classes that have numbers of lanes as instances, by those that users name."""
for _python, _own in STAND_INS.items():
    _own.__name__ = _own.__qualname__ = _python.__name__
