"""What counts as a record, how it is taken apart and made anew, and copies of structures."""

import collections
import dataclasses
import enum
import threading
from typing import Any

import pytest

from pcbatch.ir import values
from pcbatch.ir.values import flatten, pack
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, type_of

Pair = collections.namedtuple("Pair", "a b")
MADE = []


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 0

    def __post_init__(self):
        MADE.append(self)


@dataclasses.dataclass(frozen=True)
class Fixed:
    x: Any
    twice: Any = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "twice", 2 * self.x)


@dataclasses.dataclass
class Slotted:
    __slots__ = ("x",)
    x: Any


class Plain:
    def __init__(self, x):
        self.x = x


class Derived(Plain):
    def __init__(self):
        super().__init__(1)
        self.y = [2]


class Color(enum.Enum):
    RED = 1


def own(bases=(), **names):
    """An object with an attribute, of a class made of `names`."""
    made = type("Own", bases, names)()
    object.__setattr__(made, "x", 1)
    return made


NO_RECORDS = [
    3,
    "text",
    [1],
    {"a": 1},
    (1, 2),
    Plain,
    Color.RED,
    ValueError("no"),
    object(),
    type("Empty", (), {})(),
    own(__slots__=("x",)),
    own(__getattr__=len),
    own(__array__=len),
    own(__setattr__=object.__setattr__),
    own((list,)),
    own((threading.Thread,)),
    collections.Counter(),
]


def test_an_object_that_is_called_is_a_record_a_function_is_none():
    called = own(__call__=lambda self: self.x)
    assert values.fields_of(called) == {"x": 1}
    assert values.is_called(called)
    assert not values.is_called(own())
    assert not values.is_called(len)


@pytest.mark.parametrize("value", NO_RECORDS)
def test_what_is_no_record(value):
    assert values.fields_of(value) is None


def test_a_gradient_tape_is_no_record():
    import tensorflow as tf

    tape = tf.GradientTape()
    assert values.fields_of(tape) is None
    with pytest.raises(NotATensorError):
        type_of(tape)
    with pytest.raises(NotATensorError, match="a Plain"):
        type_of(Plain("text"))


@pytest.mark.parametrize(
    "record", [Pair(1, 2), Point(1, 2), Fixed(4), Slotted(3), Plain(5), Derived()], ids=lambda each: type(each).__name__
)
def test_a_record_is_made_of_its_fields(record):
    count = len(MADE)
    fields = values.fields_of(record)
    again = values.made(type(record), fields)
    assert type(again) is type(record)
    assert values.fields_of(again) == fields
    type_ = type_of(record)
    assert values.fields_of(pack(type_, flatten(type_, record))) == fields
    assert type_.keys == tuple(fields)
    assert len(MADE) == count, "nothing is made a second time"
    assert values.is_record_class(type(record))
    assert values.field_names(type(record)) == (None if isinstance(record, Plain) else tuple(fields))
