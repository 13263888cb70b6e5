"""Abstract values: what the reader knows of a value of Python's while it interprets a function.

A *lane's* value is a variable of the program, with a type. What is known now is a *host* value: a number that is
written, a function, a class, a captured array. Objects that can change are cells of a heap (`state`), which values
refer to: two names of one object hold the same reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.types import TensorType
from pcbatch.reading.places import Place


@dataclass(frozen=True)
class Lane:
    """A number or an array of the lane: a variable of the program."""

    name: str
    type: TensorType


@dataclass(frozen=True, eq=False)
class Host:
    """A value of Python's that is known now; `place` is where it was read from, if that can be read again.

    `path` is how the user wrote what leads to it, `tf.nn.relu`, and `root` what that path begins with.
    """

    value: Any
    place: Place | None = None
    path: str = ""
    root: Any = None


@dataclass(frozen=True)
class Ref:
    """A reference to a cell of the heap: a list, a dict, a set, an object, an array that is stored into."""

    cell: int


@dataclass(frozen=True)
class Tuple:
    """A tuple; `cls` is the class of a named one."""

    items: tuple[Value, ...]
    cls: type | None = None


@dataclass(frozen=True)
class Range:
    """`range(start, stop, step)` of which some bound is a lane's."""

    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True)
class Lazy:
    """`zip`, `enumerate` or `reversed` of what a loop goes over; of `enumerate` the first number is the last part."""

    kind: str
    parts: tuple[Value, ...]


@dataclass(frozen=True)
class View:
    """A part of an array that shares its elements: what a basic index, a transpose or a reshape of it gives.

    `base` is an array; `value` what the view has held since its base held `seen`.
    """

    base: Value
    steps: Viewing
    seen: Any = field(compare=False)
    value: Lane = field(compare=False)


@dataclass(frozen=True)
class Item:
    """The part of an array at an index; places in it are numbers of operands."""

    index: Any
    operands: tuple[Value, ...]


@dataclass(frozen=True)
class Moved:
    """The elements of an array in another order or shape: `positions[i..]` says which element of the flat one."""

    name: str
    positions: bytes
    shape: tuple[int, ...]

    @property
    def places(self) -> np.ndarray:
        """The positions as an array of `shape`."""
        return np.frombuffer(self.positions, np.int32).reshape(self.shape)


Viewing = Item | Moved


@dataclass(frozen=True, eq=False)
class Frame:
    """A call of a function that is interpreted in place; its variables are those of the state under its `number`."""

    number: int
    function: Function
    span: Span | None = None
    escapes: list[bool] = field(default_factory=list, repr=False)
    """Not empty once a function inside it refers to its variables."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the user's: its tree, the frame around it, and the live function if it is none of a frame's.

    `owner` is the class in which it stands, for `super()`.
    """

    name: str
    tree: Any
    file: str
    frame: Frame | None = None
    live: Any = None
    defaults: tuple[Value, ...] = ()
    keyword_defaults: Mapping[str, Value] = field(default_factory=dict)
    owner: type | None = None
    batched: Any = None
    """The batched function that it is the body of."""


@dataclass(frozen=True, eq=False)
class Bound:
    """A method of a value: a function of the user's, or the name of one that the reader knows."""

    function: Function | str
    receiver: Value


@dataclass(frozen=True, eq=False)
class Super:
    """`super()` in a method of `behind`, of an object."""

    receiver: Value
    cls: type
    behind: type


@dataclass(frozen=True, eq=False)
class Generator:
    """A generator that has not begun: its tree, and the frame that it stands in."""

    tree: Any
    frame: Frame


@dataclass(frozen=True)
class OneOf:
    """One of several objects: which one says a lane's number."""

    index: Lane
    items: tuple[Ref, ...]


@dataclass(frozen=True, eq=False)
class Undefined:
    """No value: a variable that may be unassigned, or is of kinds that do not meet. A fault where it is read."""

    code: str
    why: str
    spans: tuple[tuple[Span, str], ...] = ()
    help: str = ""
    turns: bool = False
    """Whether it would be known if the turns of a loop were written out."""


Value = (
    Lane | Host | Ref | Tuple | Range | Lazy | View | Function | Bound | Super | Generator | OneOf | Undefined
)

NONE = Host(None)


def is_number(value: object) -> bool:
    """Whether a Python value is a number or a bool of Python's own."""
    return isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)


def is_same(a: Value, b: Value) -> bool:
    """Whether two values are one for certain."""
    if a is b or (type(a) is type(b) and a == b):
        return True
    match a, b:
        case Host(x), Host(y):
            return same_host(x, y)
        case Tuple(xs, cls), Tuple(ys, other):
            return cls is other and len(xs) == len(ys) and all(map(is_same, xs, ys))
        case Function(), Function():
            return a.tree is b.tree and a.frame is b.frame and a.live is b.live
        case Bound(), Bound():
            is_one = a.function == b.function or (
                isinstance(a.function, Function) and isinstance(b.function, Function) and is_same(a.function, b.function)
            )
            return is_one and is_same(a.receiver, b.receiver)
    return False


def same_host(x: Any, y: Any) -> bool:
    """Whether two values of Python's are the same to any program: one object, or equal numbers and texts."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if isinstance(x, float):
        return repr(x) == repr(y)
    if isinstance(x, bool | int | str | bytes | complex):
        return bool(x == y)
    if isinstance(x, range | slice):
        return x == y
    if isinstance(x, tuple):
        return len(x) == len(y) and all(map(same_host, x, y))
    return False


Mapper = Callable[[Value], Value]
