"""Names of generated programs, by kind, and which of them an expression sees. See `tests.generator`.

All functions and all scopes inside them draw on the same few names, so that names meet: a comprehension's variable has
the name of a parameter, a lambda's parameter that of what it captures, a copy's source that of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeVar

Kind = Literal["int", "float", "bool", "array", "pair", "table", "way", "wild", "wide", "kept"]
Choice = TypeVar("Choice")
Draw = Callable[[int, int], int]
"""`draw(low, high)` is a number from `low` to `high`, both included; what makes it decides what is written."""

POOLS: dict[Kind, tuple[str, ...]] = {
    "int": ("a", "b", "t0"),
    "float": ("x", "result"),
    "bool": ("flag", "mask"),
    "pair": ("p",),
    "table": ("d",),
    "wild": ("y", "z"),
    "wide": ("w",),
    "kept": ("m",),
}
"""The variables of every function, by kind; some have names that a compiler likes to use itself.

A pair is a named tuple `Pair(low: int, high: float)`, a table a dict `{"count": int, "on": bool}`. A wild float may be
NaN, infinite or huge, a wide int any of 32 bits: both take part only in what is exact for all of these. A kept int is
assigned by nobody and handed on as it is, so that a whole recursion has one value for it.
"""
NAMES: dict[Kind, tuple[str, ...]] = {
    "int": ("a", "b", "t0", "c", "q"),
    "float": ("x", "result", "s"),
    "kept": ("m", "r", "v"),
}
"""All names of numbers. A function has as many of them as POOLS has, and its inner scopes take any of them."""
CAPTURED: dict[Kind, tuple[str, ...]] = {"int": ("LIMIT", "STEP"), "float": ("SCALE",), "array": ("TABLE", "WEIGHTS")}
"""What the module has around its functions: numbers, Variables and arrays. Inner scopes hide them."""
HIDDEN: tuple[Kind, ...] = ("int", "float", "bool")
"""The kinds of variables whose names inner scopes take for their own."""


@dataclass
class Names:
    """What is bound where an expression stands.

    `arrays`, `counters` and `static` are the arrays, the numbers that are not assigned (counters of loops, captures)
    and the static parameters that are bound besides the variables of `pools`.
    """

    draw: Draw
    arrays: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    static: list[str] = field(default_factory=list)
    pools: dict[Kind, tuple[str, ...]] = field(default_factory=lambda: dict(POOLS))
    captured: dict[Kind, tuple[str, ...]] = field(default_factory=lambda: dict(CAPTURED))
    inner: int = 0
    """The number of lambdas and comprehensions around, in which nothing is assigned and nothing batched called."""
    blocks: int = 0
    """The number of `with` blocks around, in which conditional operands call nothing either."""

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of `choices`; hypothesis shrinks to the first, so the plainest stands there."""
        return choices[self.draw(0, len(choices) - 1)]

    def chance(self, tenths: int) -> bool:
        """True in `tenths` of ten cases; shrinks to False."""
        return self.draw(0, 9) >= 10 - tenths

    def inner_name(self) -> str:
        """A name for a variable of an inner scope: mostly one that means something outside of it."""
        last = [self.pools[kind][0] for kind in HIDDEN if len(self.pools[kind]) == 1]
        spare = [name for kind in HIDDEN for name in (*self.pools[kind], *NAMES.get(kind, ())) if name not in last]
        return self.pick([*NAMES["kept"], *spare, *self.counters, *self.captured["int"], *self.captured["float"]])

    @contextmanager
    def scope(self, bound: dict[str, Kind]) -> Iterator[None]:
        """An inner scope that binds names to values of these kinds."""
        before = self.pools, self.captured, self.counters
        self.inner += 1
        self.pools, self.captured = dict(self.pools), dict(self.captured)
        for kinds in (self.pools, self.captured):
            for kind, names in kinds.items():
                kinds[kind] = tuple(name for name in names if name not in bound)
        self.counters = [name for name in self.counters if name not in bound]
        for name, kind in bound.items():
            self.pools[kind] = (name, *self.pools[kind])
        yield
        self.pools, self.captured, self.counters = before
        self.inner -= 1
