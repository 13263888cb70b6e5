"""Expressions of generated programs: typed text drawn by hypothesis, calls in any place. See `tests.generator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.generator_names import Kind
from tests.generator_scopes import Scopes

WAYS = ("0", "1", "2")
"""What a static parameter `way` is given."""
LENGTH = 4
"""The length of every lane array."""
CALLS = 4
"""How often, at most, one run of a function's body may call (a call in a loop counts for three)."""
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")


@dataclass(frozen=True)
class Signature:
    """A function's parameters after the fuel `n`, the kinds of its results, and the names of its variables by kind."""

    name: str
    parameters: tuple[tuple[str, Kind], ...]
    results: tuple[Kind, ...]
    pools: Mapping[Kind, tuple[str, ...]]


@dataclass
class Expressions(Scopes):
    """Writes expressions of one function, in which all variables of `pools` are bound.

    `loops` is the number of loops around, `calls` what is spent of CALLS. Alternatives are thunks, for writing a call
    spends some of that.
    """

    callees: Sequence[Signature] = ()
    loops: int = 0
    calls: int = 0

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
            case "wild":
                return self.wild(depth)
            case "wide":
                return self.wide(depth)
            case "kept":
                return self.pick(self.pools["kept"] or self.pools["int"])

    def bounded(self, kind: Kind, depth: int) -> str:
        """An expression whose value is small, so that it may be kept in a variable."""
        value = self.expression(kind, depth)
        if kind == "int":
            return self.pick([f"{value} % 29", f"{value} % 13 - 6"])
        if kind == "float":
            return self.pick([f"min(max({value}, -16.0), 16.0)", f"({value}) % 8.0"])
        if (
            kind == "wild"
        ):  # by Python's rule the first of two that do not compare is kept: NaN goes through, or does not
            return self.pick(
                [
                    value,
                    f"min({value}, 64.0)",
                    f"max(-64.0, {value})",
                    f"min(64.0, max({value}, {self.pools['float'][0]}))",
                ]
            )
        return value

    def number(self) -> str:
        """A literal, a variable or a counter, an integer."""
        number = self.draw(-5, 9)
        literal = f"({number})" if number < 0 else str(number)
        return self.pick(
            [
                literal,
                *self.pools["int"],
                *self.counters,
                "p.low",
                'd["count"]',
                *self.static,
                *self.captured["int"],
                *self.pools["kept"],
            ]
        )

    def divisor(self) -> str:
        """Mostly not zero."""
        name = self.pick(self.pools["int"])
        return self.pick(["3", "-4", f"({name} if {name} != 0 else 5)", f"max({name}, 1)", "2", name, f"({name} % 2)"])

    def index(self) -> str:
        """Mostly in range, sometimes counted from the end; a literal is in range, for others are refused."""
        in_range = f"{self.number()} % {LENGTH}"
        variable = self.pick([*self.pools["int"], *self.counters])
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
            lambda: f"int({self.pick(self.pools['float'])})",
            lambda: f"round({self.expression('float', depth - 1)})",
            lambda: f"({self.number()} {self.pick(['<<', '>>'])} ({self.number()} % 3))",
            lambda: f"({deeper()} {self.pick(['&', '|', '^'])} {self.number()})",
            lambda: f"{self.pick(['~', '+', '-'])}{self.number()}",
            lambda: f"({self.number()} ** 2)",
            lambda: f"({self.wide(0)} {self.pick(['% 5', '& 7', '// 400000000', '>> 28'])})",
        ]
        if not self.blocks:
            forms += [
                lambda: f"math.{self.pick(['floor', 'ceil'])}({self.expression('float', depth - 1)})",
                lambda: f"divmod({deeper()}, {self.divisor()})[{self.pick(['0', '1'])}]",
                lambda: f"sum(({self.number()}, {deeper()}, 1))",
                *self.scoped("int", depth),
            ]
        if not self.blocks and not self.inner:
            forms.append(lambda: f"({self.pick(self.pools['int'])} := {deeper()} % 17)")
            forms.append(lambda: f"({self.pick(['int', 'round'])}({self.wild(0)}) % 7)")  # which is seldom an int32
        if self.arrays:
            forms += [lambda: f"{self.pick(self.arrays)}[{self.index()}]"] * 3
            forms += [lambda: f"{self.pick(['sum', 'min', 'max'])}({self.part()})"] * 2
            forms.append(lambda: f"len({self.pick(self.arrays)})")
            forms.append(lambda: f"{self.pick(self.arrays)}[{self.wide(0)} % {LENGTH}]")
        if self.captured["array"]:
            forms.append(lambda: f"{self.pick(self.captured['array'])}[{self.index()}]")
        return self.pick(forms)()

    def real(self, depth: int) -> str:
        """A float expression whose value is a multiple of 1/4."""

        def leaf() -> str:
            literal = str(self.draw(0, 16) / 4)
            names = [*self.pools["float"], *self.captured["float"]]
            return self.pick([literal, *names, *(f"float({counter})" for counter in self.counters)])

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
        ]
        if not self.blocks:
            forms += [
                lambda: f"math.fabs({deeper()})",
                lambda: f"math.copysign({leaf()}, {deeper()})",
                lambda: f"float(math.floor({deeper()}))",
                *self.scoped("float", depth),
            ]
        if not self.blocks and not self.inner:
            forms.append(lambda: f"({self.pick(self.pools['float'])} := min(max({deeper()}, -8.0), 8.0))")
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

    def wild(self, depth: int) -> str:
        """A float that may be anything, of operations that are exact for all of them."""

        def deeper() -> str:
            return self.expression("wild", depth - 1)

        if not depth:
            return self.pick(self.pools["wild"])
        forms: list[Callable[[], str]] = [
            deeper,
            lambda: f"{self.pick(['min', 'max'])}({deeper()}, {self.real(0)})",
            lambda: f"{self.pick(['min', 'max'])}({self.real(0)}, {deeper()})",
            lambda: f"{self.pick(['min', 'max'])}({self.real(0)}, {deeper()}, {deeper()})",
            lambda: f"({deeper()} if {self.expression('bool', depth - 1)} else {deeper()})",
            lambda: f"(-{deeper()})",
            lambda: f"abs({deeper()})",
            lambda: f"({self.wild(0)}) * {self.pick(['0.0', '-1.0'])}",
            lambda: self.real(depth - 1),
        ]
        return self.pick(forms)()

    def wide(self, depth: int) -> str:
        """An int that may be any of 32 bits, of operations that stay among these."""
        name = self.pick(self.pools["wide"])
        if not depth:
            return name
        forms: list[Callable[[], str]] = [
            lambda: name,
            lambda: f"{self.pick(['min', 'max'])}({self.wide(depth - 1)}, {self.number()})",
            lambda: f"({self.wide(depth - 1)} if {self.expression('bool', depth - 1)} else {self.number()})",
            lambda: f"(~{self.wide(depth - 1)})",
            lambda: f"({self.wide(depth - 1)} {self.pick(['^', '&', '|'])} {self.number()})",
            lambda: f"({self.wide(depth - 1)} {self.pick(['// 3', '>> 1', '// -2'])})",
            lambda: self.pick(["2147483647", "(-2147483647)", self.number()]),
        ]
        return self.pick(forms)()

    def part(self) -> str:
        """An array, or a slice of fixed length of one, which may leave it."""
        array = self.pick(self.arrays)
        return self.pick([array, f"{array}[{self.window()}]"])

    def window(self, length: int | None = None) -> str:
        """A slice of fixed length, of 1 to 3 elements; its start is mostly one that fits."""
        length = length or self.draw(1, 3)
        start = self.pick([*self.pools["int"], *self.counters])
        number = self.draw(0, LENGTH - length)
        return self.pick([f"{number}:{number + length}", f"{start}:{start} + {length}"])

    def truth(self, depth: int) -> str:
        """A bool expression; divisions and indices on the right of `and` and `or` are guarded by the left."""
        kind: Kind = self.pick(["int", "int", "float"])
        name = self.pick(self.pools["int"])

        def comparison() -> str:
            return f"{self.expression(kind, max(depth - 1, 0))} {self.pick(COMPARISONS)} {self.expression(kind, 0)}"

        forms: list[Callable[[], str]] = [
            comparison,
            lambda: self.pick(self.pools["bool"]),
            lambda: f"not {self.pick(self.pools['bool'])}",
            lambda: 'd["on"]',
            lambda: f"{self.wild(0)} {self.pick(COMPARISONS)} {self.pick([*self.pools['wild'], self.real(0)])}",
            lambda: f"{self.wide(0)} {self.pick(COMPARISONS)} {self.number()}",
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
                lambda: f"{self.pick(self.pools['bool'])} {self.pick(['&', '|', '^'])} ({comparison()})",
            ]
            if not self.blocks:
                forms += [
                    lambda: f"math.{self.pick(['isnan', 'isinf'])}({self.wild(depth - 1)})",
                    lambda: f"{self.pick(['any', 'all'])}(({self.pick(self.pools['bool'])}, {comparison()}))",
                    *self.scoped("bool", depth),
                ]
            if not self.blocks and not self.inner:
                forms.append(lambda: f"({self.pick(self.pools['bool'])} := {comparison()})")
            if self.arrays:
                forms.append(lambda: f"{self.number()} {self.pick(['in', 'not in'])} {self.part()}")
                element = f"{self.arrays[0]}[{name}]"
                forms.append(lambda: f"(0 <= {name} < {LENGTH} and {element} {self.pick(COMPARISONS)} {self.number()})")
        return self.pick(forms)()

    def candidates(self, results: Callable[[tuple[Kind, ...]], bool]) -> list[Signature]:
        """Functions with such results whose array, if they take one, can be given; none where CALLS is spent."""
        if self.inner or self.blocks or self.loops > 1 or self.calls + 3**self.loops > CALLS:
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
