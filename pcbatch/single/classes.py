"""The classes that numbers have for the user's code, which are those of a lane's numbers, and stand-ins for them."""

from __future__ import annotations

from typing import Any

from pcbatch.runtime.backends.tensorflow import traced_float
from pcbatch.runtime.backends.tensorflow.traced_float import TracedFloat
from pcbatch.single.values import Number, Value, operand


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
