"""Expressions of generated programs: typed text drawn by hypothesis, calls in any place. See `tests.generator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from hypothesis import strategies as st

Kind = Literal["int", "float", "bool", "array", "pair", "table", "way"]
Choice = TypeVar("Choice")

POOLS: dict[Kind, tuple[str, ...]] = {
    "int": ("a", "b", "t0"),
    "float": ("x", "result"),
    "bool": ("flag", "mask"),
    "pair": ("p",),
    "table": ("d",),
}
"""The variables of every function, by kind; some have names that a compiler likes to use itself.

A pair is a named tuple `Pair(low: int, high: float)`, a table a dict `{"count": int, "on": bool}`.
"""
WAYS = ("0", "1", "2")
"""What a static parameter `way` is given."""
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

    `arrays`, `counters` and `static` are the arrays, the numbers that are not assigned (counters of loops, captures)
    and the static parameters that are bound as well, `loops` the number of loops around, `calls` what is spent of
    CALLS. Alternatives are thunks, for writing a call spends some of that.
    """

    draw: st.DrawFn
    callees: Sequence[Signature]
    arrays: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    static: list[str] = field(default_factory=list)
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
            case "way":
                return self.pick([*WAYS, *self.static])
            case "pair":
                return self.pair(depth)
            case "table":
                return self.table(depth)
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
        literal = f"({number})" if number < 0 else str(number)
        return self.pick([literal, *POOLS["int"], *self.counters, "p.low", 'd["count"]', *self.static])

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
            lambda: f"math.{self.pick(['floor', 'ceil'])}({self.expression('float', depth - 1)})",
            lambda: f"round({self.expression('float', depth - 1)})",
            lambda: f"({self.number()} {self.pick(['<<', '>>'])} ({self.number()} % 3))",
            lambda: f"({deeper()} {self.pick(['&', '|', '^'])} {self.number()})",
            lambda: f"{self.pick(['~', '+', '-'])}{self.number()}",
            lambda: f"({self.number()} ** 2)",
            lambda: f"divmod({deeper()}, {self.divisor()})[{self.pick(['0', '1'])}]",
            lambda: f"sum(({self.number()}, {deeper()}, 1))",
            lambda: f"({self.pick(POOLS['int'])} := {deeper()} % 17)",
        ]
        if self.arrays:
            forms += [lambda: f"{self.pick(self.arrays)}[{self.index()}]"] * 3
            forms += [lambda: f"{self.pick(['sum', 'min', 'max'])}({self.part()})"] * 2
            forms.append(lambda: f"len({self.pick(self.arrays)})")
        return self.pick(forms)()

    def real(self, depth: int) -> str:
        """A float expression whose value is a multiple of 1/4."""

        def leaf() -> str:
            literal = str(self.draw(st.integers(0, 16)) / 4)
            return self.pick([literal, *POOLS["float"], *(f"float({counter})" for counter in self.counters)])

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
            lambda: "p.high",
            lambda: self.pick(["0.25", *(f"{counter} * 0.25" for counter in self.counters if counter[0] == "i")]),
            lambda: f"math.fabs({deeper()})",
            lambda: f"math.copysign({leaf()}, {deeper()})",
            lambda: f"float(math.floor({deeper()}))",
            lambda: f"({self.pick(POOLS['float'])} := min(max({deeper()}, -8.0), 8.0))",
        ]
        return self.pick(forms)()

    def pair(self, depth: int) -> str:
        """A named tuple: a variable, one made anew, or one with another part."""
        if not depth:
            return "p"
        return self.pick(
            [
                f"Pair({self.bounded('int', depth - 1)}, {self.bounded('float', depth - 1)})",
                f"p._replace(low={self.bounded('int', depth - 1)})",
                "Pair(*p)",
            ]
        )

    def table(self, depth: int) -> str:
        """A dict: a variable, one written out, or one with another entry."""
        if not depth:
            return "d"
        return self.pick(
            [
                f'{{"count": {self.bounded("int", depth - 1)}, "on": {self.expression("bool", depth - 1)}}}',
                f'{{**d, "count": {self.bounded("int", depth - 1)}}}',
            ]
        )

    def part(self) -> str:
        """An array, or a slice of fixed length of one, which may leave it."""
        array = self.pick(self.arrays)
        return self.pick([array, f"{array}[{self.window()}]"])

    def window(self, length: int | None = None) -> str:
        """A slice of fixed length, of 1 to 3 elements; its start is mostly one that fits."""
        length = length or self.draw(st.integers(1, 3))
        start = self.pick([*POOLS["int"], *self.counters])
        number = self.draw(st.integers(0, LENGTH - length))
        return self.pick([f"{number}:{number + length}", f"{start}:{start} + {length}"])

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
            lambda: 'd["on"]',
        ]
        if self.static:
            forms += [lambda: f"way {self.pick(['==', '!=', '>'])} {self.pick(WAYS)}"] * 2
        if depth:
            forms += [
                lambda: f"({comparison()} and {self.expression('bool', depth - 1)})",
                lambda: f"({comparison()} or {self.expression('bool', depth - 1)})",
                lambda: f"{comparison()} {self.pick(COMPARISONS)} {self.expression(kind, depth - 1)}",
                lambda: f"({name} != 0 and {self.number()} // {name} {self.pick(COMPARISONS)} {self.number()})",
                lambda: f"({name} == 0 or {self.number()} % {name} {self.pick(COMPARISONS)} {self.number()})",
                lambda: f"not ({comparison()})",
                lambda: (
                    f"{self.expression('int', depth - 1)} {self.pick(['in', 'not in'])} ({self.number()}, {name}, 3)"
                ),
                lambda: f"{self.number()} in range({self.pick(['4', '1, 7', '-6, 9, 3'])})",
                lambda: f"({self.pick(POOLS['bool'])} := {comparison()})",
                lambda: f"{self.pick(['any', 'all'])}(({self.pick(POOLS['bool'])}, {comparison()}))",
                lambda: f"{self.pick(POOLS['bool'])} {self.pick(['&', '|', '^'])} ({comparison()})",
            ]
            if self.arrays:
                forms.append(lambda: f"{self.number()} {self.pick(['in', 'not in'])} {self.part()}")
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
