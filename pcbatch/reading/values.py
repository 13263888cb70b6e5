"""Abstract values: what the reader knows of a value of Python's while it interprets a function.

A *lane's* value is a variable of the program, with a type. What is known now is a *host* value: a number that is
written, a function, a class, a captured array. Objects that can change are cells of a heap (`state`), which values
refer to: two names of one object hold the same reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.frontend.nodes import span_of
from pcbatch.ir.types import TensorType
from pcbatch.lowering.captures.guarded_paths import Place


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
class Attributes(Ref):
    """`vars(p)`: the cell of an object, seen as a dict of its attributes."""


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
    site: Any = field(default=None, compare=False)
    """Of a list of which a lane keeps some elements, the place where it is made; see `lengths`."""


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
    layout: np.ndarray = field(compare=False, repr=False)
    """An array that lies in memory as NumPy's would."""

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

    @property
    def around(self) -> Iterator[Frame]:
        """It, and the calls of the functions around its own."""
        yield self
        yield from self.function.frames


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

    @property
    def frames(self) -> Iterator[Frame]:
        """The calls of the functions around it, the nearest first."""
        return iter(()) if self.frame is None else self.frame.around

    @property
    def outermost(self) -> Function:
        """The function of a module in which it stands, or that it is."""
        return [self, *(frame.function for frame in self.frames)][-1]

    @property
    def span(self) -> Span:
        """The place of its definition."""
        return span_of(self.tree, self.file)

    @property
    def qualname(self) -> str:
        """Its name, with that of its class."""
        return getattr(self.live, "__qualname__", self.name)


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
    """A generator that has not begun: its tree, the frame that it stands in, and what its first loop goes over."""

    tree: Any
    frame: Frame
    first: Value


@dataclass(frozen=True)
class OneOf:
    """One of several objects: which one says a lane's number."""

    index: Lane
    items: tuple[Ref, ...]


@dataclass(frozen=True)
class Optional:
    """A value that is None in the lanes for which `there`, a bool, does not hold; see `several`."""

    there: Lane
    content: Value


@dataclass(frozen=True)
class Choice:
    """One of several words (see `several`): which one says a lane's number."""

    number: Lane
    words: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """A value that no variable can hold, such as an array of unknown length: it is computed where it is used.

    `pattern` says how; `why` is the code, the message and the help for where a lane would have to keep it. If it is a
    function that was made of functions of the user's, `made_of` has these, with what each read when it was made.
    """

    pattern: Any
    why: tuple[str, str, str]
    made_of: tuple[tuple[Function, dict[str, Any]], ...] = ()
    is_function: bool = False


@dataclass(frozen=True, eq=False)
class Undefined:
    """No value: a variable that may be unassigned, or is of kinds that do not meet. A fault where it is read."""

    code: str
    why: str
    spans: tuple[tuple[Span, str], ...] = ()
    help: str = ""
    turns: bool = False
    """True if it would be known if the turns of a loop were written out."""
    wants: tuple[Any, ...] = ()
    """The sites of containers that would have to be of a length that differs by lane for it to be known."""


Value = (
    Lane
    | Host
    | Ref
    | Tuple
    | Range
    | Lazy
    | View
    | Function
    | Bound
    | Super
    | Generator
    | OneOf
    | Optional
    | Choice
    | Part
    | Undefined
)

NONE = Host(None)
LOST = Undefined("", "a statement that is refused was to give it a value")
"""The value of a variable behind a statement that is left out; see `recovery`."""


def is_number(value: object) -> bool:
    """Return whether a Python value is a number or a bool of Python's own."""
    return isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)


def plain_number(value: Any) -> Any:
    """A number as one of the classes of Python's own, whatever the user has derived from these."""
    classes: tuple[Any, ...] = (bool, int, float, complex)
    return next(cls(value) for cls in classes if isinstance(value, cls))


def is_none(value: Value | None) -> bool:
    """Return whether a value is None."""
    return isinstance(value, Host) and value.value is None


def is_same(a: Value, b: Value) -> bool:
    """Return whether two values are certainly one."""
    if a is b or (type(a) is type(b) and a == b):
        return True
    match a, b:
        case Host(x), Host(y):
            return same_host(x, y)
        case Tuple(xs, cls), Tuple(ys, other):
            return cls is other and len(xs) == len(ys) and all(map(is_same, xs, ys))
        case Generator(), Generator():
            return a.tree is b.tree and a.frame is b.frame and is_same(a.first, b.first)
        case Function(), Function():
            defaults = [[*each.defaults, *each.keyword_defaults.values()] for each in (a, b)]
            is_one = a.tree is b.tree and a.frame is b.frame and a.live is b.live
            return is_one and all(map(is_same, *defaults))
        case Bound(), Bound():
            is_one = a.function == b.function or (
                isinstance(a.function, Function)
                and isinstance(b.function, Function)
                and is_same(a.function, b.function)
            )
            return is_one and is_same(a.receiver, b.receiver)
        case Optional(), Optional():
            return a.there == b.there and is_same(a.content, b.content)
    return False


def is_one_value(a: Value, b: Value) -> bool:
    """Tell whether two values are one for certain; two views of one part of an array are two."""
    return a is b or (not isinstance(a, View) and is_same(a, b))


def same_host(x: Any, y: Any) -> bool:
    """Return whether two Python values are the same to any program: one object, or equal numbers and texts."""
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
