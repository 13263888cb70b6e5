"""Programs with many calls that may be made at the same time, as source text, by number: see `program_of`.

Groups of two and three calls, one after another, in arms, in bodies of loops, in conditions and in arguments, of one to
three functions that call each other; before, between and behind them structures, stores to arrays, mapped calls,
captured variables. All numbers are float64 and every operation is smooth, so that values and gradients of all ways
to run a program agree to rounding. The first parameter `n` of each function is its fuel, as in `tests.generator`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Choice = TypeVar("Choice")

HEADER = """import collections

import numpy as np
import tensorflow as tf

import pcbatch

Pair = collections.namedtuple("Pair", "near far")
W = tf.Variable([[0.5, -0.3, 0.2], [0.1, 0.7, -0.6], [-0.4, 0.3, 0.6]], dtype=tf.float64)
B = tf.Variable([0.3, -0.2, 0.1], dtype=tf.float64)
T = tf.Variable(0.7, dtype=tf.float64)
ROWS = tf.Variable([[0.3, 0.1, -0.5], [0.2, -0.7, 0.4], [0.6, 0.9, -0.1]], dtype=tf.float64)
FIXED = np.array([0.25, -0.5, 0.75, 0.4])


"""
VARIABLES = ("W", "B", "T", "ROWS")
"""What the module has that a program may be differentiated by."""
PARAMETERS = {"k": "int", "x": "scalar", "v": "vector", "xs": "array", "p": "pair", "c": "kept", "cs": "kept array"}
"""The parameters behind `n` and what they are. What is kept is handed on as it is, if the callee takes it."""
INITIAL = {"k": "2", "x": "0.5 * T", "v": "B * 0.5", "xs": "tf.convert_to_tensor(FIXED)", "p": "Pair(c, v)"}
"""What a parameter that a function does not have begins with."""
RESULTS = (("scalar",), ("vector",), ("scalar", "vector"), ("pair",), ("scalar", "int"), ("scalar",), ("vector",))
LARGEST = 3
"""The most fuel that an example has."""
CALLS = (2.4, 3, 3, 4)
"""How many calls, about, a run of a function makes: one of these in all functions of a program."""


@dataclass(frozen=True)
class Callee:
    """A function that may be called: its name, parameters behind `n`, and what it returns."""

    name: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]


def program_of(seed: int) -> str:
    """Source of the module of this number; its entry is `main(n, k, x, v, xs, c, cs)`.

    They are int32, int32, float64, float64[3], float64[4], float64, float64[4].
    """
    rng = random.Random(seed)
    callees, calls = list[Callee](), rng.choice(CALLS)
    for number in range(rng.choice([0, 0, 1, 1, 2])):
        own = tuple(name for name in PARAMETERS if name in ("c", "cs") or rng.random() < 0.55)
        callees.append(Callee(f"f{number}", own, rng.choice(RESULTS)))
    entry = tuple(name for name in PARAMETERS if name != "p")
    callees.append(Callee("main", entry, rng.choice(RESULTS)))
    return HEADER + "\n\n\n".join(Writer(rng, callees, calls).function(each) for each in callees) + "\n"


@dataclass
class Writer:
    """Writes one function, in which every name of `PARAMETERS`, and `y` and `u`, is bound at the top."""

    rng: random.Random
    callees: Sequence[Callee]
    most: float
    """How many calls, about, a run of the function makes."""
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    spent: float = 0
    weight: float = 1
    """How often, about, a statement here runs in a run of the function."""
    counters: list[str] = field(default_factory=list)
    plain: bool = False
    """Whether expressions are of operators alone, which are computed early for later calls of a group."""

    def function(self, callee: Callee) -> str:
        """The text of a function."""
        self.returns = callee.results
        self.lines = ["@pcbatch.autobatch", f"def {callee.name}({', '.join(['n', *callee.parameters])}):"]
        for name, value in INITIAL.items():
            if name not in callee.parameters:
                self.line(f"{name} = {value}")
        self.line("y, u = tf.sin(x) * 0.5, tf.cos(v)")
        self.line("if n <= 0:")
        self.line(f"    return {self.given_back(calls=False)}")
        if self.rng.random() < 0.3:
            self.statement(1)
        while self.spent < self.most - 1.5:
            self.statement(2)
        if self.rng.random() < 0.5:
            self.line(f"return {self.given_back(calls=True)}")
        else:
            self.line(f"return {self.given_back(calls=False)}")
        return "\n".join(self.lines)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def pick(self, among: Sequence[Choice]) -> Choice:
        return self.rng.choice(among)

    def block(self, depth: int, weight: float = 1) -> None:
        """Statements, indented, which run so often."""
        self.indent, self.weight = self.indent + 1, self.weight * weight
        for _ in range(self.pick([1, 1, 2, 3])):
            self.statement(depth)
        self.indent, self.weight = self.indent - 1, self.weight / weight

    def statement(self, depth: int) -> None:
        """A statement with at most `depth` levels of blocks inside."""
        forms: list[Callable[[], None]] = [self.group, self.group, self.group, self.work, self.work, self.store]
        forms += [self.sum_of_calls, self.sum_of_calls, self.call_in_call, self.chosen, self.mapped, self.one_call]
        if depth:
            forms += [lambda: self.branch(depth), lambda: self.branch(depth), lambda: self.static_loop(depth)]
            forms += [lambda: self.lane_loop(depth), lambda: self.through(depth), lambda: self.early(depth)]
        forms += [lambda: self.line("assert k != 9"), self.stored_calls]
        self.pick(forms)()

    # -- calls ---------------------------------------------------------------------------------------------------------

    def may_call(self, times: float = 1) -> bool:
        return self.spent + self.weight * times <= self.most

    def call(self, arguments: Callable[[str], str] | None = None, among: Sequence[Callee] | None = None) -> str:
        """A call with less fuel; its results are those of the last of `called`."""
        self.spent += self.weight
        self.called = callee = self.pick(among or self.callees)
        make = arguments or self.argument
        given = [self.pick(["n - 1", "n - 1", "n - 2"])]
        for name in callee.parameters:
            kind = PARAMETERS[name]
            given.append(name if kind.startswith("kept") else make(kind))
        return f"{callee.name}({', '.join(given)})"

    def argument(self, kind: str) -> str:
        """Something to give to a call, mostly such that it can be computed early."""
        self.plain = self.rng.random() < 0.85
        text = self.expression(kind, 1)
        self.plain = False
        return text

    def target(self, results: tuple[str, ...]) -> str:
        """Names to which the results of a call are assigned."""
        names = {"scalar": ["x", "y"], "vector": ["v", "u"], "pair": ["p"], "int": ["k"]}
        return ", ".join(self.pick(names[kind]) for kind in results)

    def one_call(self) -> None:
        if not self.may_call():
            return self.work()
        text = self.call()
        self.line(f"{self.target(self.called.results)} = {text}")
        return None

    def group(self) -> None:
        """Calls one after the other; what is assigned by the one may be what the next is given."""
        count = self.pick([2, 2, 3])
        if not self.may_call(count):
            return self.work()
        for place in range(count):
            if place and self.rng.random() < 0.25:
                self.work()
            self.one_call()
        return None

    def of_call(self, kind: str) -> str:
        """A call, or a part of what it gives, as a scalar or a vector."""
        text = self.call()
        results = self.called.results
        if kind in results:
            return text if len(results) == 1 else f"{text}[{results.index(kind)}]"
        if results == ("pair",):
            return f"{text}.{'near' if kind == 'scalar' else 'far'}"
        if kind == "scalar":
            return f"tf.reduce_sum({text})"
        return f"{text}{'[0]' if len(results) > 1 else ''} * u"

    def sum_of_calls(self) -> None:
        """Calls in one expression."""
        if not self.may_call(2):
            return self.work()
        kind, target = self.pick([("scalar", "x"), ("scalar", "y"), ("vector", "v"), ("vector", "u")])
        one, other = self.of_call(kind), self.of_call(kind)
        self.line(f"{target} = {self.pick(['{} + {}', '{} * {}', 'tf.tanh({}) - {}']).format(one, other)}")
        return None

    def call_in_call(self) -> None:
        """An argument of a call is what another gives."""
        if not self.may_call(2):
            return self.work()
        made: list[str] = []

        def argument(kind: str) -> str:
            if kind in ("scalar", "vector") and not made:
                made.append(kind)
                called, text = self.called, self.of_call(kind)
                self.called = called
                return text
            return self.argument(kind)

        text = self.call(argument)
        self.line(f"{self.target(self.called.results)} = {text}")
        return None

    def chosen(self) -> None:
        """A call in an arm of a conditional expression, or in a condition."""
        if not self.may_call():
            return self.work()
        kind, target = self.pick([("scalar", "x"), ("vector", "v"), ("scalar", "y")])
        if self.rng.random() < 0.7 or not self.may_call(2):
            self.line(f"{target} = {self.of_call(kind)} if {self.truth()} else {self.expression(kind, 1)}")
        else:
            word = self.pick(["and", "or"])
            self.line(f"if {self.truth()} {word} {self.of_call('scalar')} > {self.of_call('scalar')}:")
            self.line(f"    {target} = {self.expression(kind, 1)}")
        return None

    def mapped(self) -> None:
        """`pcbatch.map` of a call, over an array."""
        if not self.may_call(2):
            return self.work()
        some = [each for each in self.callees if len(each.results) == 1 and each.results != ("pair",)]
        if not some:
            return self.work()
        self.weight *= 3
        text = self.call(lambda kind: "e * 0.7" if kind == "scalar" else self.expression(kind, 0), some)
        self.weight /= 3
        count = self.pick(["", "", ", count=(k + 8) % 5"])
        result = f"pcbatch.map(lambda e: {text}, {self.pick(['xs', 'xs[1:3]', 'cs'] if not count else ['xs'])}{count})"
        if self.called.results == ("scalar",):
            self.line(f"{self.pick(['x', 'y'])} = tf.reduce_sum({result})")
        else:
            self.line(f"{self.pick(['u', 'v'])} = tf.reduce_sum({result}, 0)")
        return None

    def stored_calls(self) -> None:
        """What calls give becomes elements of an array."""
        if not self.may_call(2):
            return self.store()
        if self.rng.random() < 0.5:
            self.line(f"xs[{self.pick(['0', '1', 'k % 2'])}] = {self.of_call('scalar')}")
            self.line(f"xs[{self.pick(['2', '3', 'k % 3'])}] = {self.of_call('scalar')}")
        else:
            self.line("for j in range(2):")
            self.indent, self.weight = self.indent + 1, self.weight * 2
            self.line(f"xs[{self.pick(['j', '3 - j', '2 * j'])}] = {self.of_call('scalar')} * (1.0 + j)")
            self.indent, self.weight = self.indent - 1, self.weight / 2
        return None

    # -- other statements ----------------------------------------------------------------------------------------------

    def work(self) -> None:
        """An assignment without calls."""
        kind, target = self.pick([
            ("scalar", "x"), ("scalar", "y"), ("vector", "v"), ("vector", "u"), ("pair", "p"), ("int", "k"),
        ])  # fmt: skip
        self.line(f"{target} = {self.expression(kind, 2)}")

    def store(self) -> None:
        index = self.pick(["0", "3", "k % 4", *(f"{name} % 4" for name in self.counters)])
        self.line(f"xs[{index}] {self.pick(['=', '=', '+='])} {self.expression('scalar', 1)}")

    def branch(self, depth: int) -> None:
        self.line(f"if {self.truth()}:")
        self.block(depth - 1, 0.6)
        if self.rng.random() < 0.7:
            self.line("else:")
            self.block(depth - 1, 0.6)

    def early(self, depth: int) -> None:
        self.line(f"if {self.truth()}:")
        self.indent, self.weight = self.indent + 1, self.weight * 0.5
        if self.rng.random() < 0.4:
            self.statement(depth - 1)
        self.line(f"return {self.given_back(calls=True)}")
        self.indent, self.weight = self.indent - 1, self.weight / 0.5

    def static_loop(self, depth: int) -> None:
        self.loop(self.pick(["range(2)", "range(2)", "range(1, 4, 2)"]), 2, depth)

    def lane_loop(self, depth: int) -> None:
        """A loop of so many turns as the lane says."""
        if self.rng.random() < 0.5:
            self.loop(self.pick(["range(k % 3)", "range(n)", "range(n, 0, -1)"]), 1.5, depth)
            return
        name = f"m{len(self.lines)}"
        self.line(f"{name} = {self.pick(['n', 'k % 3', '2'])}")
        self.line(f"while {name} > 0 and {self.pick(['x < 5.0', 'y > -9.0', 'n >= ' + name])}:")
        self.line(f"    {name} -= 1")
        if self.rng.random() < 0.3:
            self.line(f"    if {self.truth()}:")
            self.line(f"        {self.pick(['break', 'continue'])}")
        self.block(depth - 1, 1.5)

    def through(self, depth: int) -> None:
        """A loop over the elements of an array."""
        name = f"e{len(self.lines)}"
        self.line(f"for {name} in {self.pick(['cs[:2]', '(xs * 1.0)[1:3]'])}:")
        self.line(f"    {self.pick(['x', 'y'])} = {name} * {self.expression('scalar', 1)}")
        self.block(depth - 1, 2)

    def loop(self, over: str, turns: float, depth: int) -> None:
        name = f"i{len(self.lines)}"
        self.line(f"for {name} in {over}:")
        self.counters.append(name)
        self.block(depth - 1, turns)
        self.counters.remove(name)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def given_back(self, *, calls: bool) -> str:
        """What the function returns."""
        if calls and self.may_call(2) and len(self.returns) == 1 and self.returns[0] in ("scalar", "vector"):
            return f"{self.of_call(self.returns[0])} {self.pick('+*')} {self.of_call(self.returns[0])}"
        alike = [callee for callee in self.callees if callee.results == self.returns]
        if calls and self.may_call() and alike and self.rng.random() < 0.3:
            return self.call(among=alike)
        parts = [f"tf.sin({self.expression(kind, 1)})" if kind in ("scalar", "vector") else self.expression(kind, 1)
                 for kind in self.returns]  # fmt: skip
        return ", ".join(parts)

    def truth(self) -> str:
        return self.pick([
            "k % 2 == 0", "n > 1", "k > 2", "n % 2 == 1", f"{self.expression('scalar', 0)} > 0.1",
            "tf.reduce_sum(v) < y", "(n + k) % 3 != 0", *(f"{name} != 1" for name in self.counters),
        ])  # fmt: skip

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind."""
        return getattr(self, kind)(depth)

    def int(self, depth: int) -> str:
        return self.pick(["k", "n", "k + 1", "(k * 2 + n) % 5", *self.counters])

    def array(self, depth: int) -> str:
        if not depth:
            return "xs"
        return self.pick(["xs", "xs", "xs * 0.5", "cs", "xs + x", *([] if self.plain else ["tf.sin(xs) + x"])])

    def pair(self, depth: int) -> str:
        if not depth:
            return "p"
        return self.pick([
            "p", f"p._replace(near={self.scalar(depth - 1)})",
            f"Pair({self.scalar(depth - 1)}, {self.vector(depth - 1)})",
            f"Pair(p.near * 0.5, {self.vector(depth - 1)})",
        ])  # fmt: skip

    def scalar(self, depth: int) -> str:
        if not depth:
            return self.pick(["x", "y", "c", "p.near", "x * T", "xs[k % 4]", "cs[n % 4]", "v[1]"])
        one, other = self.scalar(depth - 1), self.scalar(depth - 1)
        forms = [
            one, f"({one} * {other})", f"({one} + 0.5 * {other})", "FIXED[k % 4] * x", f"({one} - {other}) * 0.5",
            f"({one} if {self.pick(['k > 1', 'n > 1', 'x > y'])} else {other})",
            self.pick([one, one, one, "cs[k - 5]"]),
            *(f"{one} * (1.0 + {name})" for name in self.counters if name[0] == "i"),
        ]  # fmt: skip
        if not self.plain:
            forms += [
                f"tf.sin({one})", f"tf.tanh({one} - {other})", f"tf.reduce_sum({self.vector(depth - 1)} * B)",
                "tf.reduce_max(xs * x)",
            ]  # fmt: skip
        return self.pick(forms)

    def vector(self, depth: int) -> str:
        if not depth:
            rows = [] if self.plain else ["tf.gather(ROWS, k % 3)"]
            return self.pick(["v", "u", "p.far", "v * c", "xs[:3]", "ROWS[k % 3]", *rows])
        one = self.vector(depth - 1)
        forms = [
            one,
            f"({one} * {self.scalar(depth - 1)})",
            f"({one} - B)",
            f"({one} + 0.5 * {self.vector(depth - 1)})",
        ]
        if not self.plain:
            forms += [f"tf.sin({one})", f"tf.linalg.matvec(W, {one})", f"tf.nn.softmax({one})"]
        return self.pick(forms)
