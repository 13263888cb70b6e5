"""Hypothesis strategy for typed, terminating programs, as source text.

A program has one to three batched functions. The first parameter `n` of each is its fuel: a call passes less of it, and
a function without fuel returns at once, so recursion ends; loops have fuel or a bounded range. Integers stay far below
2**31, and floats are multiples of 1/4 of small size, on which `+ - %`, products with whole numbers, comparisons, `min`
and `max` are exact: Python's own answer is the truth, bit for bit, in any dtype, and no branch is decided by rounding.
Divisions, indices, asserts and raises fail in some lanes, rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.generator_expressions import CALLS, POOLS, Expressions, Kind, Signature

STATEMENTS = 9
"""How many statements, at most, a function has besides its frame."""
ENTRY_PARAMETERS: tuple[tuple[str, Kind], ...] = (("a", "int"), ("b", "int"), ("x", "float"), ("xs", "array"))
RESULTS: tuple[tuple[Kind, ...], ...] = (("int",), ("float",), ("bool",), ("int", "int"), ("float", "int"))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Source of a module whose entry is `main(n, a, b, x, xs)`: int32, int32, int32, float32, int32[4]."""
    helpers = [_signature(draw, f"f{number}") for number in range(draw(st.integers(0, 2)))]
    signatures = [*helpers, Signature("main", ENTRY_PARAMETERS, draw(st.sampled_from(RESULTS)))]
    functions = [Writer(draw, signatures).function(signature) for signature in signatures]
    return "import pcbatch\n\n\n" + "\n\n\n".join(functions) + "\n"


def _signature(draw: st.DrawFn, name: str) -> Signature:
    parameters: list[tuple[str, Kind]] = []
    most: dict[Kind, int] = {"int": 2, "float": 1, "bool": 1}
    for kind, limit in most.items():
        parameters += [(parameter, kind) for parameter in POOLS[kind][: draw(st.integers(0, limit))]]
    if draw(st.booleans()):
        parameters.append(("xs", "array"))
    return Signature(name, tuple(parameters), draw(st.sampled_from(RESULTS)))


@dataclass
class Writer(Expressions):
    """Writes one function. Every variable of POOLS is bound at the top, so any of them may be read anywhere."""

    results: tuple[Kind, ...] = ()
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    statements: int = 0
    fresh: int = 0

    def function(self, signature: Signature) -> str:
        """The text of the function with this signature."""
        given = [name for name, _ in signature.parameters]
        self.results = signature.results
        self.lines = ["@pcbatch.autobatch", f"def {signature.name}({', '.join(['n', *given])}):"]
        initial: dict[Kind, str] = {"int": "2", "float": "0.5", "bool": "False"}
        for kind, value in initial.items():
            for name in POOLS[kind]:
                if name not in given:
                    self.line(f"{name} = {value}")
        if "xs" in given:
            self.arrays = ["xs"]
            if self.chance(5):
                self.line("ys = xs + 0")
                self.arrays = ["ys", "xs"]  # stores go to the first
        self.calls = CALLS  # without fuel there are no calls
        self.line("if n <= 0:")
        self.line(f"    {self.give_back()}")
        self.calls = 0
        while self.statements < STATEMENTS and not (self.statements >= 3 and self.chance(3)):
            self.statement(2)
        self.line(self.give_back())
        return "\n".join(self.lines)

    def line(self, text: str) -> None:
        """Add a line at the present indentation."""
        self.lines.append("    " * self.indent + text)

    def block(self, depth: int) -> None:
        """One to three statements, indented."""
        self.indent += 1
        before = len(self.lines)
        for _ in range(self.draw(st.integers(1, 3))):
            if self.statements < STATEMENTS:
                self.statement(depth)
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1

    def statement(self, depth: int) -> None:
        """A statement with at most `depth` levels of blocks inside."""
        self.statements += 1
        forms: list[Callable[[], None]] = [self.assign, self.augment, self.exchange, self.leave, self.check]
        forms += [self.assign, self.assign_call, self.assign_call, self.assign_call]
        if self.arrays:
            forms += [self.store, self.store]
        if self.loops:
            forms += [self.leave, self.leave]
        if depth:
            forms += [lambda: self.branch(depth), lambda: self.branch(depth)]
            forms += [lambda: self.repeat(depth), lambda: self.count(depth)] * 2
        self.pick(forms)()

    # -- statements without blocks -------------------------------------------------------------------------------------

    def kind(self) -> Kind:
        """The kind of a variable."""
        kinds: Sequence[Kind] = ("int", "int", "float", "bool")
        return self.pick(kinds)

    def assign(self) -> None:
        """Plain and chained assignment."""
        kind = self.kind()
        targets = self.pick([self.pick(POOLS[kind]), " = ".join(POOLS[kind][:2])])
        self.line(f"{targets} = {self.bounded(kind, 2)}")

    def augment(self) -> None:
        """Augmented assignment, kept small by another."""
        name, operator = self.pick(POOLS["int"]), self.pick(["+", "-", "*", "//"])
        self.line(f"{name} {operator}= {self.divisor() if operator == '//' else self.number()}")
        self.line(f"{name} %= 31")

    def exchange(self) -> None:
        """Variables change places at once; a tuple is built and taken apart again."""
        self.fresh += 1
        forms: list[Callable[[], list[str]]] = [
            lambda: ["a, b = b, a"],
            lambda: ["a, b, t0 = t0, a, b"],
            lambda: ["x, result = result, x"],
            lambda: [f"a, b = b, {self.bounded('int', 1)}"],
            lambda: [f"pair{self.fresh} = (t0, x)", f"(t0, result), a = pair{self.fresh}, b"],
        ]
        for line in self.pick(forms)():
            self.line(line)

    def assign_call(self) -> None:
        """Assign all results of a call."""
        if not (callees := self.candidates(lambda results: True)):
            return self.assign()
        callee = self.pick(callees)
        free = {kind: list(POOLS[kind]) for kind in callee.results}
        targets = [free[kind].pop(self.draw(st.integers(0, len(free[kind]) - 1))) for kind in callee.results]
        return self.line(f"{', '.join(targets)} = {self.call_of(callee)}")

    def store(self) -> None:
        """Replace or change one element of an array."""
        element = f"{self.arrays[0]}[{self.index()}]"
        if self.chance(3):
            self.line(f"{element} += {self.draw(st.integers(1, 5))}")
        else:
            self.line(f"{element} = {self.bounded('int', 2)}")

    def check(self) -> None:
        """An `assert` or a `raise` that seldom fails."""
        number, never = self.number(), self.draw(st.integers(-1, 4))
        if self.chance(5):
            self.line(f"assert {number} != {never}, f'{{{number}}} is not allowed'")
        else:
            self.line(f"if {number} == {never}:")
            self.line(f"    raise ValueError(f'{{{number}}} is refused')")

    def leave(self) -> None:
        """A conditional `break`, `continue` or early `return`."""
        self.line(f"if {self.expression('bool', 2)}:")
        self.line("    " + (self.pick(["break", "continue"]) if self.loops and self.chance(7) else self.give_back()))

    def give_back(self) -> str:
        """The text of a return, of a call's results where there is a function with the same ones."""
        if (callees := self.candidates(lambda results: results == self.results)) and self.chance(3):
            return f"return {self.call_of(self.pick(callees))}"
        return f"return {', '.join(self.bounded(kind, 1) for kind in self.results)}"

    # -- statements with blocks ----------------------------------------------------------------------------------------

    def branch(self, depth: int) -> None:
        """`if`, with or without `elif` and `else`."""
        self.line(f"if {self.expression('bool', 2)}:")
        self.block(depth - 1)
        if self.chance(3):
            self.line(f"elif {self.expression('bool', 1)}:")
            self.block(depth - 1)
        if self.chance(6):
            self.line("else:")
            self.block(depth - 1)

    def repeat(self, depth: int) -> None:
        """`while` with fuel, tested in the condition or by a `break`."""
        self.fresh += 1
        fuel = f"k{self.fresh}"
        self.line(f"{fuel} = {self.pick(['2', '3', f'{self.number()} % 4'])}")
        self.loops += 1  # the condition runs once per turn, as the body does
        if self.chance(6):
            self.line(f"while {fuel} > 0 and {self.expression('bool', 1)}:")
            self.line(f"    {fuel} -= 1")
        else:
            self.line(f"while {self.expression('bool', 1)}:")
            self.line(f"    {fuel} -= 1")
            self.line(f"    if {fuel} < 0:")
            self.line("        break")
        self.block(depth - 1)
        self.loops -= 1

    def count(self, depth: int) -> None:
        """`for` over a range with one, two or three bounds; the step is positive, negative, or either by lane."""
        self.fresh += 1
        counter = f"i{self.fresh}"
        end = f"{self.expression('int', 1)} % 4"
        forms = [end, f"1, {end}", f"{end}, -1, -1", f"0, {end} + 4, 3", f"a % 3, {end} - 1, 1 - 2 * (b % 2)"]
        self.line(f"for {counter} in range({self.pick(forms)}):")
        self.counters.append(counter)
        self.loops += 1
        self.block(depth - 1)
        self.loops -= 1
        self.counters.remove(counter)
