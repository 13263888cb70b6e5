"""Programs with functions inside functions, whose few names meet: of parameters, locals, captures, scopes inside.

As `tests.generator`: typed, terminating, exact. A function inside is a lambda or a `def`, straight or with a branch or
a loop; it reads variables of `main`, calls functions defined before it, and is called in statements, in comprehensions,
in lambdas and by other functions, wherever those names may mean something else.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.generator import ENTRY_PARAMETERS, HEADER, Writer
from tests.generator_expressions import Signature
from tests.generator_names import POOLS, Draw, Kind

MOST = 4
"""How many functions `main` defines, at most."""


@st.composite
def programs_of_functions(draw: st.DrawFn) -> str:
    """Source of a program, for hypothesis, which makes it smaller where it fails."""
    return _program(lambda low, high: draw(st.integers(low, high)))


def program_of_functions(seed: int) -> str:
    """Source of the program of this number, the same one every time."""
    return _program(random.Random(seed).randint)


def _program(draw: Draw) -> str:
    signature = Signature("main", ENTRY_PARAMETERS, (("int",), ("int", "int"))[draw(0, 1)], POOLS)
    return HEADER + Functions(draw, callees=[], focused=True).function(signature) + "\n"


@dataclass
class Functions(Writer):
    """Writes one function with others inside."""

    known: list[str] = field(default_factory=list)
    """The functions defined so far: of one int, with an int as result."""
    expressions: list[str] = field(default_factory=list)
    """Those that are one expression, which may be called in a lambda."""

    def statement(self, depth: int) -> None:
        """At first some functions inside and calls of them; then more calls, and statements that rebind names."""
        self.statements += 1
        if not self.known:
            for _ in range(self.draw(2, MOST)):
                self.define()
            for _ in range(self.draw(2, 3)):
                self.use()
            return
        forms: list[Callable[[], None]] = [self.use, self.use, self.straight, self.shadow]
        if depth:
            forms += [lambda: self.branch(depth), lambda: self.count(depth)]
        self.pick(forms)()

    # -- definitions ---------------------------------------------------------------------------------------------------

    def define(self) -> None:
        """A function inside, by `def` or as a lambda."""
        self.fresh += 1
        name, parameter, start = f"g{self.fresh}", self.number_name(), len(self.lines)
        default = self.pick(["", "", "", f", {self.pick([*self.pools['int'][:2], 'u'])}={self.bounded('int', 0)}"])
        if default.startswith(f", {parameter}="):
            default = ""
        bound: dict[str, Kind] = {parameter: "int"}
        if default:
            bound[default[2:].partition("=")[0]] = "int"
        if self.chance(4):
            with self.scope(bound):
                value = self.value()
            self.line(f"{name} = lambda {parameter}{default}: {value}")
        else:
            self.line(f"def {name}({parameter}{default}):")
            self.indent += 1
            self.body(bound)
            self.indent -= 1
        if self.is_expression("\n".join(self.lines[start:])):
            self.expressions.append(name)
        self.known.append(name)

    def is_expression(self, definition: str) -> bool:
        """Whether a function is one expression, in which others like it are called at most."""
        (statement,) = ast.parse(textwrap.dedent(definition)).body
        is_one = isinstance(statement, ast.Assign) or isinstance(statement.body[0], ast.Return)
        read = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        return is_one and read.isdisjoint({*self.known} - {*self.expressions})

    def body(self, bound: dict[str, Kind]) -> None:
        """The body of a `def`, with a local mostly, which has the name of something around."""
        local = self.number_name()
        first, *_ = bound
        if local not in bound and self.chance(8):
            with self.scope(bound), self.without(local):
                self.line(f"{local} = {self.value()}")
            bound = {**bound, local: "int"}
        with self.scope(bound):
            form = self.pick(["straight", "straight", "branch", "loop"])
            if form == "branch":
                self.line(f"if {self.pick([*bound])} > {self.draw(0, 9)}:")
                self.line(f"    return {self.value()}")
            elif form == "loop":
                self.fresh += 1
                self.line(f"for i{self.fresh} in range({first} % 3):")
                self.line(f"    {first} = {self.value()}")
            self.line(f"return {self.value()}")

    # -- uses ----------------------------------------------------------------------------------------------------------

    def use(self) -> None:
        """An assignment, or a change, of an int by calls of functions inside."""
        self.line(f"{self.pick(self.pools['int'])} = {self.value()}")

    def value(self) -> str:
        """A small int that calls functions inside, or is made in scopes of its own."""
        one = self.pick([*self.pools["int"], *self.captured["int"][:1]])
        forms = [lambda: f"{one} * {self.draw(2, 5)}"]
        if self.known:
            forms += [self.call, self.call, self.in_comprehension]
        if self.expressions:
            forms += [self.in_lambda, self.in_lambda]
        return f"({self.pick(forms)()} + {self.pick([one, one, self.bounded('int', 0)])}) % 29"

    def call(self) -> str:
        """A call, of a call sometimes."""
        argument = self.bounded("int", 0)
        return f"{self.pick(self.known)}({self.pick([argument, argument, f'{self.pick(self.known)}({argument})'])})"

    def in_comprehension(self) -> str:
        """Calls for each of several numbers."""
        name, one, other = self.number_name(), self.bounded("int", 0), self.bounded("int", 0)
        inside = self.called_with(self.pick(self.known), name)
        forms = [
            f"sum([{inside} for {name} in ({one}, {other})])",
            f"sum({inside} for {name} in ({one}, {other}))",
            f"max([{inside} for {name} in [{one}, {other}]])",
            f"[{inside} for {name} in ({one}, {other})][1]",
            f"(1 if any([{inside} > 5 for {name} in ({one}, {other})]) else 2)",
        ]
        return self.pick(forms)

    def called_with(self, function: str, name: str) -> str:
        """A call in a scope that binds the name of what is handed over."""
        with self.scope({name: "int"}):
            return f"{function}({name}) + {self.bounded('int', 0)}"

    def in_lambda(self) -> str:
        """A call in a lambda, which is called at once or handed to something; a function that is handed on."""
        name, argument, called = self.number_name(), self.bounded("int", 0), self.pick(self.expressions)
        inside = self.called_with(called, name)
        forms = [
            f"(lambda {name}: {inside})({argument})",
            f"apply(lambda {name}: {inside}, {argument})",
            f"apply({called}, {argument})",
            f"sum(map(lambda {name}: {inside}, ({argument}, 3)))",
            f"max([{argument}, 4], key=lambda {name}: {inside})",
        ]
        return self.pick(forms)

    def number_name(self) -> str:
        """A name that mostly means a number around already."""
        return self.pick([*POOLS["int"], "LIMIT"])

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Where nothing is called `name` yet."""
        before = self.pools, self.captured
        self.pools = {kind: tuple(each for each in names if each != name) for kind, names in self.pools.items()}
        self.captured = {kind: tuple(each for each in names if each != name) for kind, names in self.captured.items()}
        yield
        self.pools, self.captured = before
