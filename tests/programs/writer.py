"""The text of a program as it is written: names in scope with their types, blocks, and the module around.

See `tests.programs.generator`. Numbers are multiples of a small power of two and stay small, so float32 is exact, no
branch is decided by rounding, and Python's own answer is the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from tests.generator_names import Draw

Choice = TypeVar("Choice")


# -- types of variables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A float of the lane."""


@dataclass(frozen=True)
class Whole:
    """A small int of the lane that nobody assigns: a parameter, a counter."""


@dataclass(frozen=True)
class Array:
    """A float32 array."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class Object:
    """An object of one of the module's classes."""

    of: str


@dataclass(eq=False)
class List:
    """A list. Names of the same list share this, so that its length is known under each."""

    of: Type
    length: int
    fixed: bool = False
    """Whether its length must not change any more, since a lane decides which list it is."""


@dataclass(frozen=True)
class Dict:
    """A dict with the keys "p" and "q"."""

    of: Type


@dataclass(frozen=True)
class Pair:
    """A named tuple with the fields `left` and `right`."""

    left: Type
    right: Type


@dataclass(frozen=True)
class Function:
    """A function of the module or of a function around, by the types of its parameters and of its result."""

    takes: tuple[Type, ...]
    gives: Type | None


@dataclass(frozen=True)
class Grown:
    """A list whose length differs by lane, of "number", "pair", "row", "list" or "point"."""

    of: str


Type = Grown | Number | Whole | Array | Object | List | Dict | Pair | Function
NUMBER, WHOLE = Number(), Whole()
ROW, MATRIX = Array((4,)), Array((3, 3))
KEYS = ("p", "q")
ATTRIBUTES: dict[str, dict[str, Type]] = {
    "Point": {"x": NUMBER, "y": NUMBER},
    "Spot": {"x": NUMBER, "y": NUMBER},
    "Grid": {"m": ROW, "n": NUMBER},
    "Link": {"x": NUMBER, "other": Object("Point")},
    "Vec": {"a": ROW, "n": NUMBER},
}
"""The attributes of each class."""


@dataclass
class Variable:
    """A name in scope."""

    name: str
    type: Type


@dataclass(frozen=True)
class Place:
    """An expression that leads to a value: a name, an attribute, an element of a list or a dict."""

    text: str
    type: Type
    storable: bool


# -- the module --------------------------------------------------------------------------------------------------------


@dataclass
class Module:
    """What stands around `main`: the members of classes that are used, and functions in order."""

    members: dict[str, dict[str, str]] = field(default_factory=dict)
    functions: list[tuple[str, Function, str]] = field(default_factory=list)
    names: int = 0
    used: set[str] = field(default_factory=set)
    dataclass: bool = False
    """Whether points are of a dataclass."""
    copies: bool = False
    """Tell whether anything is copied by the module `copy`."""

    def fresh(self, letter: str) -> str:
        """A name that is not taken."""
        self.names += 1
        return f"{letter}{self.names}"


@dataclass
class Writer:
    """Writes statements of one function. `kinds` are the kinds of constructs it may use besides the plainest."""

    draw: Draw
    kinds: frozenset[str]
    module: Module
    scope: list[Variable] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    outside: int = 0
    """How many variables of the scope are those of the functions around, which are read only."""
    lanes: int = 0
    """How many blocks around run for some lanes only or more than once: no list changes its length there."""
    loops: int = 0
    """How many loops are around in this function."""
    inside: int = 0
    """How many functions are around."""

    # -- choosing ------------------------------------------------------------------------------------------------------

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of `choices`; hypothesis shrinks to the first, so the plainest stands there."""
        return choices[self.draw(0, len(choices) - 1)]

    def chance(self, tenths: int) -> bool:
        """True in `tenths` of ten cases; shrinks to False."""
        return self.draw(0, 9) >= 10 - tenths

    def has(self, kind: str) -> bool:
        """Whether constructs of a kind may be used."""
        return kind in self.kinds

    def either(self, forms: Sequence[tuple[str, Callable[[], Choice]]]) -> Choice:
        """What one of the forms writes whose kind may be used; the plain ones have the kind "". The kind is noted."""
        kind, form = self.pick([each for each in forms if not each[0] or self.has(each[0])])
        if kind:
            self.module.used.add(kind)
        return form()

    # -- lines and blocks ----------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Add a line at the present indentation."""
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, head: str, lanes: int = 1) -> Iterator[None]:
        """A block under a line; what is named in it is unknown behind it."""
        self.line(head)
        names, lines = len(self.scope), len(self.lines)
        self.indent += 1
        self.lanes += lanes
        yield
        if len(self.lines) == lines:
            self.line("pass")
        self.indent -= 1
        self.lanes -= lanes
        del self.scope[names:]

    # -- names ---------------------------------------------------------------------------------------------------------

    def new(self, type_: Type, text: str) -> str:
        """A new variable with a value; its name."""
        name = self.module.fresh({Number: "t", Array: "c", Object: "o", List: "xs", Dict: "d"}.get(type(type_), "r"))
        self.line(f"{name} = {text}")
        self.scope.append(Variable(name, type_))
        return name

    def own(self, name: str) -> bool:
        """Whether a name may be assigned here."""
        return any(variable.name == name for variable in self.scope[self.outside :])

    def places(self) -> Iterator[Place]:
        """Everything that a name in scope leads to."""
        for number, variable in enumerate(self.scope):
            storable = number >= self.outside and variable.type != WHOLE and not isinstance(variable.type, Function)
            yield from _through(Place(variable.name, variable.type, storable))

    def leading_to(self, type_: Type, storable: bool = False) -> list[str]:
        """The expressions that lead to a value of this type; those that may be assigned, if `storable`."""
        return [place.text for place in self.places() if place.type == type_ and (place.storable or not storable)]

    def arrays(self) -> list[tuple[str, tuple[int, ...]]]:
        """The arrays, with their shapes."""
        return [(place.text, place.type.shape) for place in self.places() if isinstance(place.type, Array)]

    def lists(self, changing: bool = False) -> list[Place]:
        """The lists; those whose length may change here, if `changing`."""
        found = [place for place in self.places() if isinstance(place.type, List)]
        return [place for place in found if not (place.type.fixed or self.lanes or self.inside)] if changing else found

    def member(self, name: str, member: str, text: str) -> None:
        """Give a class a member, unless it has it."""
        self.module.members.setdefault(name, {}).setdefault(member, text)


def _through(place: Place) -> Iterator[Place]:
    yield place
    match place.type:
        case Object(name):
            for attribute, type_ in ATTRIBUTES[name].items():
                yield from _through(Place(f"{place.text}.{attribute}", type_, True))
        case List(of, length):
            for number in range(length):
                yield from _through(Place(f"{place.text}[{number}]", of, True))
        case Dict(of):
            for key in KEYS:
                yield from _through(Place(f'{place.text}["{key}"]', of, True))
        case Pair(left, right):
            yield from _through(Place(f"{place.text}.left", left, False))
            yield from _through(Place(f"{place.text}.right", right, False))
