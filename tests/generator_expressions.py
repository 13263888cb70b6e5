"""Expressions of generated programs: typed text drawn by hypothesis, calls in any place. See `tests.generator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from hypothesis import strategies as st

Kind = Literal["int", "float", "bool", "array"]
Choice = TypeVar("Choice")

POOLS: dict[Kind, tuple[str, ...]] = {"int": ("a", "b", "t0"), "float": ("x", "result"), "bool": ("flag", "mask")}
"""The variables of every function, by kind; some have names that a compiler likes to use itself."""
LENGTH = 4
"""The length of every lane array."""
CALLS = 4
"""How often, at most, one run of a function's body may call (a call in a loop counts for three)."""
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")


@dataclass(frozen=True)
class Signature:
    """A function's parameters, after the fuel `n`, by name and kind, and the kinds of its results."""

    name: str
    parameters: tuple[tuple[str, Kind], ...]
    results: tuple[Kind, ...]


@dataclass
class Expressions:
    """Writes expressions of one function, in which all variables of POOLS are bound.

    `arrays` and `counters` are the arrays and range counters that are bound as well, `loops` the number of loops
    around, `calls` what is spent of CALLS. Alternatives are thunks, for writing a call spends some of that.
    """

    draw: st.DrawFn
    callees: Sequence[Signature]
    arrays: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    loops: int = 0
    calls: int = 0

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of `choices`; hypothesis shrinks to the first, so the plainest stands there."""
        return choices[self.draw(st.integers(0, len(choices) - 1))]

    def chance(self, tenths: int) -> bool:
        """True in `tenths` of ten cases; shrinks to False."""
        return self.draw(st.integers(0, 9)) >= 10 - tenths

    def expression(self, kind: Kind, depth: int) -> str:
        """An expression of `kind`; at depth 0 a name, a literal or little more."""
        if depth and self.may_call(kind) and self.chance(4):
            return self.call(kind)
        match kind:
            case "int":
                return self.integer(depth)
            case "float":
                return self.real(depth)
            case "bool":
                return self.truth(depth)
            case "array":
                return self.pick(self.arrays)

    def bounded(self, kind: Kind, depth: int) -> str:
        """An expression whose value is small, so that it may be kept in a variable."""
        value = self.expression(kind, depth)
        if kind == "int":
            return self.pick([f"{value} % 29", f"{value} % 13 - 6"])
        if kind == "float":
            return self.pick([f"min(max({value}, -16.0), 16.0)", f"({value}) % 8.0"])
        return value

    def number(self) -> str:
        """A literal, a variable or a counter, an integer."""
        number = self.draw(st.integers(-5, 9))
        return self.pick([f"({number})" if number < 0 else str(number), *POOLS["int"], *self.counters])

    def divisor(self) -> str:
        """Mostly not zero."""
        name = self.pick(POOLS["int"])
        return self.pick(["3", "-4", f"({name} if {name} != 0 else 5)", f"max({name}, 1)", "2", name, f"({name} % 2)"])

    def index(self) -> str:
        """Mostly in range, sometimes counted from the end; a literal is in range, for others are refused."""
        in_range = f"{self.number()} % {LENGTH}"
        variable = self.pick([*POOLS["int"], *self.counters])
        return self.pick([in_range, in_range, f"-1 - {in_range}", "0", "-1", "2", "3", variable, variable])

    def integer(self, depth: int) -> str:
        """An int expression; products have leaves for factors, which keeps them far below 2**31."""
        if not depth:
            return self.number()

        def deeper() -> str:
            return self.expression("int", depth - 1)

        forms: list[Callable[[], str]] = [
            deeper,
            lambda: f"({deeper()} + {deeper()})",
            lambda: f"({deeper()} - {deeper()})",
            lambda: f"({self.number()} * {self.number()})",
            lambda: f"({self.number()} // {self.divisor()})",
            lambda: f"({deeper()} {self.pick(['//', '%'])} {self.divisor()})",
            lambda: f"({deeper()} if {self.truth(depth - 1)} else {deeper()})",
            lambda: f"{self.pick(['min', 'max'])}({deeper()}, {self.number()})",
            lambda: f"abs({deeper()})",
            lambda: f"({deeper()} {self.pick(['or', 'and'])} {deeper()})",
            lambda: f"int({self.pick(POOLS['float'])})",
        ]
        if self.arrays:
            forms += [lambda: f"{self.pick(self.arrays)}[{self.index()}]"] * 3
        return self.pick(forms)()

    def real(self, depth: int) -> str:
        """A float expression whose value is a multiple of 1/4."""

        def leaf() -> str:
            literal = str(self.draw(st.integers(0, 16)) / 4)
            return self.pick([literal, *POOLS["float"], *(f"{counter} * 0.25" for counter in self.counters)])

        if not depth:
            return leaf()

        def deeper() -> str:
            return self.expression("float", depth - 1)

        forms: list[Callable[[], str]] = [
            deeper,
            lambda: f"({deeper()} + {leaf()})",
            lambda: f"({leaf()} - {deeper()})",
            lambda: f"({leaf()}) * {self.pick(['2.0', '-1.0', '3.0'])}",
            lambda: f"({deeper()}) % 4.0",
            lambda: f"float({self.number()})",
            lambda: f"{self.pick(['min', 'max'])}({deeper()}, {leaf()})",
            lambda: f"abs({deeper()})",
            lambda: f"({deeper()} if {self.truth(depth - 1)} else {deeper()})",
        ]
        return self.pick(forms)()

    def truth(self, depth: int) -> str:
        """A bool expression; divisions and indices on the right of `and` and `or` are guarded by the left."""
        kind: Kind = self.pick(["int", "int", "float"])
        name = self.pick(POOLS["int"])

        def comparison() -> str:
            return f"{self.expression(kind, max(depth - 1, 0))} {self.pick(COMPARISONS)} {self.expression(kind, 0)}"

        forms: list[Callable[[], str]] = [
            comparison,
            lambda: self.pick(POOLS["bool"]),
            lambda: f"not {self.pick(POOLS['bool'])}",
        ]
        if depth:
            forms += [
                lambda: f"({comparison()} and {self.expression('bool', depth - 1)})",
                lambda: f"({comparison()} or {self.expression('bool', depth - 1)})",
                lambda: f"{comparison()} {self.pick(COMPARISONS)} {self.expression(kind, depth - 1)}",
                lambda: f"({name} != 0 and {self.number()} // {name} {self.pick(COMPARISONS)} {self.number()})",
                lambda: f"({name} == 0 or {self.number()} % {name} {self.pick(COMPARISONS)} {self.number()})",
                lambda: f"not ({comparison()})",
            ]
            if self.arrays:
                element = f"{self.arrays[0]}[{name}]"
                forms.append(lambda: f"(0 <= {name} < {LENGTH} and {element} {self.pick(COMPARISONS)} {self.number()})")
        return self.pick(forms)()

    def candidates(self, results: Callable[[tuple[Kind, ...]], bool]) -> list[Signature]:
        """Functions with such results whose array, if they take one, can be given; none where CALLS is spent."""
        if self.loops > 1 or self.calls + 3**self.loops > CALLS:
            return []
        givable = [c for c in self.callees if self.arrays or all(kind != "array" for _, kind in c.parameters)]
        return [callee for callee in givable if results(callee.results)]

    def may_call(self, kind: Kind) -> bool:
        """Whether there is a function with a result of `kind` to call here."""
        return bool(self.candidates(lambda results: kind in results))

    def call(self, kind: Kind) -> str:
        """One result, of `kind`, of a call."""
        callee = self.pick(self.candidates(lambda results: kind in results))
        text = self.call_of(callee)
        return text if len(callee.results) == 1 else f"{text}[{callee.results.index(kind)}]"

    def call_of(self, callee: Signature) -> str:
        """A call with less fuel, its arguments by position, or by name in reverse order."""
        self.calls += 3**self.loops
        arguments = [("n", self.pick(["n - 1", "n - 1", "n - 2"]))]
        arguments += [(name, self.bounded(kind, self.pick([0, 1]))) for name, kind in callee.parameters]
        if self.chance(2):
            return f"{callee.name}({', '.join(f'{name}={value}' for name, value in reversed(arguments))})"
        return f"{callee.name}({', '.join(value for _, value in arguments)})"
