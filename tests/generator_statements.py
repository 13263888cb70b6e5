"""Statements of generated programs that have no blocks inside. See `tests.generator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.generator_expressions import Expressions
from tests.generator_names import Kind


@dataclass
class Statements(Expressions):
    """Writes the simple statements of one function whose results are of kinds `results`."""

    results: tuple[Kind, ...] = ()
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    fresh: int = 0

    def line(self, text: str) -> None:
        """Add a line at the present indentation."""
        self.lines.append("    " * self.indent + text)

    def kind(self) -> Kind:
        """The kind of a variable."""
        kinds: Sequence[Kind] = ("int", "int", "float", "bool", "int", "pair", "table", "wild", "wide")
        return self.pick(kinds)

    def assign(self) -> None:
        """Plain and chained assignment."""
        kind = self.kind()
        targets = self.pick([self.pick(self.pools[kind]), " = ".join(self.pools[kind][:2])])
        self.line(f"{targets} = {self.bounded(kind, 2)}")

    def augment(self) -> None:
        """Augmented assignment, kept small by another."""
        name, operator = self.pick(self.pools["int"]), self.pick(["+", "-", "*", "//", "|", "^"])
        self.line(f"{name} {operator}= {self.divisor() if operator == '//' else self.number()}")
        self.line(f"{name} %= 31")

    def exchange(self) -> None:
        """Variables change places at once; a tuple is built and taken apart again."""
        self.fresh += 1
        (a, b, c), (x, y) = self.pools["int"], self.pools["float"]
        flag = self.pools["bool"][0]
        forms: list[Callable[[], list[str]]] = [
            lambda: [f"{a}, {b} = {b}, {a}"],
            lambda: [f"{a}, {b}, {c} = {c}, {a}, {b}"],
            lambda: [f"{x}, {y} = {y}, {x}"],
            lambda: [f"{a}, {b} = {b}, {self.bounded('int', 1)}"],
            lambda: [f"{a}, *rest = {b}, {c}, {a}", f"{b} = rest[1]"],
            lambda: [f"{c}, {x} = p", f'{a}, {flag} = d["count"], d["on"]'],
            lambda: [f"p, d = {self.expression('pair', 1)}, {self.expression('table', 1)}"],
            lambda: [f"pair{self.fresh} = ({c}, {x})", f"({c}, {y}), {a} = pair{self.fresh}, {b}"],
        ]
        for line in self.pick(forms)():
            self.line(line)

    def assign_call(self) -> None:
        """Assign all results of a call."""
        if not (callees := self.candidates(lambda results: True)):
            return self.assign()
        callee = self.pick(callees)
        free = {kind: list(self.pools[kind]) for kind in callee.results}
        targets = [free[kind].pop(self.draw(0, len(free[kind]) - 1)) for kind in callee.results]
        return self.line(f"{', '.join(targets)} = {self.call_of(callee)}")

    def store(self) -> None:
        """Replace or change one element of an array, or a slice of it."""
        if self.chance(4):
            length = self.draw(1, 3)
            place = f"{self.arrays[0]}[{self.window(length)}]"
            values = [self.bounded("int", 1), f"{self.pick(self.arrays)}[{self.window(length)}]"]
            if self.chance(7):
                return self.line(f"{place} = {self.pick(values)}")
            self.line(f"{place} += {self.pick(values)}")
            return self.line(f"{place} %= 31")
        element = f"{self.arrays[0]}[{self.index()}]"
        if self.chance(3):
            return self.line(f"{element} += {self.draw(1, 5)}")
        return self.line(f"{element} = {self.bounded('int', 2)}")

    def check(self) -> None:
        """An `assert` or a `raise` that seldom fails."""
        number, never = self.number(), self.draw(-1, 4)
        if self.chance(5):
            self.line(f"assert {number} < {never + 4}, f'{{{number}}} is not allowed'")
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
        if self.chance(5):  # what a variable holds, so that all the others may go
            return f"return {', '.join(self.pick(self.pools[kind]) for kind in self.results)}"
        return f"return {', '.join(self.bounded(kind, 1) for kind in self.results)}"
