"""Typed, terminating programs, as source text: a strategy of hypothesis, and programs by number.

A program has one to three batched functions. The first parameter `n` of each is its fuel: a call passes less of it, and
a function without fuel returns at once, so recursion ends; loops have fuel or a bounded range. Integers stay far below
2**31, and floats are multiples of 1/4 of small size, on which `+ - %`, products with whole numbers, comparisons, `min`
and `max` are exact: Python's own answer is the truth, bit for bit, in any dtype, and no branch is decided by rounding.
Divisions, indices, asserts and raises fail in some lanes, rarely.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.generator_expressions import CALLS, LENGTH, Signature
from tests.generator_names import NAMES, POOLS, Draw, Kind
from tests.generator_rebinding import Rebinding

STATEMENTS = 9
"""How many statements, at most, a function has besides its frame."""
ENTRY_PARAMETERS: tuple[tuple[str, Kind], ...] = (
    ("a", "int"),
    ("b", "int"),
    ("x", "float"),
    ("xs", "array"),
    ("y", "wild"),
    ("w", "wide"),
    ("m", "kept"),
)
OTHERS: tuple[tuple[str, Kind], ...] = (
    ("xs", "array"),
    ("p", "pair"),
    ("d", "table"),
    ("way", "way"),
    ("y", "wild"),
    ("w", "wide"),
)
RESULTS: tuple[tuple[Kind, ...], ...] = (
    ("int",),
    ("float",),
    ("bool",),
    ("int", "int"),
    ("float", "int"),
    ("pair",),
    ("table", "int"),
    ("wild",),
    ("wide", "int"),
)
HEADER = """import collections
import contextlib
import math

import numpy as np
import tensorflow as tf

import pcbatch

Pair = collections.namedtuple("Pair", "low high")
LIMIT = 3
SCALE = 0.5
STEP = tf.Variable(2)
TABLE = np.array([4, -3, 2, 7], np.int32)
WEIGHTS = tf.Variable([1, 5, -2, 3])


def apply(f, v):
    return f(v)


def keep(v):
    return v


def either(v, u):
    return v


"""


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Source of a program, for hypothesis, which makes it smaller where it fails."""
    return program(lambda low, high: draw(st.integers(low, high)))


def program_of(seed: int) -> str:
    """Source of the program of this number, the same one every time."""
    return program(random.Random(seed).randint)


def program(draw: Draw) -> str:
    """Source of a module whose entry is `main(n, a, b, x, xs, y, w, m)`.

    They are int32, int32, int32, float32, int32[4], float32 of any value, int32 of any value, int32.
    """
    focused = bool(draw(0, 1))
    helpers = [_signature(draw, f"f{number}") for number in range(draw(0, 2))]
    signatures = [*helpers, Signature("main", ENTRY_PARAMETERS, RESULTS[draw(0, len(RESULTS) - 1)], POOLS)]
    callees = signatures
    if focused and draw(0, 1):  # nobody calls
        callees, signatures = [], signatures[-1:]
    functions = [Writer(draw, callees=callees, focused=focused).function(signature) for signature in signatures]
    return HEADER + "\n\n\n".join(functions) + "\n"


def _signature(draw: Draw, name: str) -> Signature:
    parameters: list[tuple[str, Kind]] = []
    pools = dict(POOLS)
    for some, names in NAMES.items():  # in every second helper other names than in `main`, in part
        start = draw(0, len(names) - 1) * (some == "kept" or draw(0, 1))
        pools[some] = (names * 2)[start : start + len(POOLS[some])]
    most: dict[Kind, int] = {"int": 2, "float": 1, "bool": 1}
    for kind, limit in most.items():
        parameters += [(parameter, kind) for parameter in pools[kind][: draw(0, limit)]]
    for parameter, kind in OTHERS:
        if draw(0, 2) == 2:
            parameters.append((parameter, kind))
    if draw(0, 1):
        parameters.append((pools["kept"][0], "kept"))
    else:
        pools["kept"] = ()
    return Signature(name, tuple(parameters), RESULTS[draw(0, len(RESULTS) - 1)], pools)


@dataclass
class Writer(Rebinding):
    """Writes one function. Every variable of its pools is bound at the top, so any of them may be read anywhere.

    `focused` makes it a short one, most of whose statements are such as rebind names.
    """

    statements: int = 0
    focused: bool = False

    def function(self, signature: Signature) -> str:
        """The text of the function with this signature."""
        given = [name for name, _ in signature.parameters]
        self.results, self.pools = signature.results, dict(signature.pools)
        self.static = [name for name, kind in signature.parameters if kind == "way"]
        options = '(static_argnames="way")' if self.static else ""
        self.lines = [f"@pcbatch.autobatch{options}", f"def {signature.name}({', '.join(['n', *given])}):"]
        initial: dict[Kind, str] = {"int": "2", "float": "0.5", "bool": "False", "pair": "Pair(2, 0.5)"}
        initial |= {"table": '{"count": 1, "on": True}', "wild": "-0.25", "wide": "7"}
        for kind, value in initial.items():
            for name in self.pools[kind]:
                if name not in given:
                    self.line(f"{name} = {value}")
        if "xs" in given:
            self.arrays = ["xs"]
            if self.chance(8):
                self.line("ys = xs + 0")
                self.arrays = ["ys", "xs"]  # stores go to the first
        if self.callees:
            self.calls = CALLS  # without fuel there are no calls
            self.line("if n <= 0:")
            self.line(f"    {self.give_back()}")
            self.calls = 0
        least, end = (1, 5) if self.focused else (3, 3)
        while self.statements < STATEMENTS and not (self.statements >= least and self.chance(end)):
            self.statement(2)
        self.line(self.give_back())
        return "\n".join(self.lines)

    def block(self, depth: int) -> None:
        """One to three statements, indented."""
        self.indent += 1
        before = len(self.lines)
        for _ in range(self.draw(1, 3)):
            if self.statements < STATEMENTS:
                self.statement(depth)
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1

    def statement(self, depth: int) -> None:
        """A statement with at most `depth` levels of blocks inside."""
        self.statements += 1
        rebinding: list[Callable[[], None]] = [self.straight, self.within, self.living, self.shadow]
        if self.arrays:
            rebinding.append(self.second_name)
        if self.chance(7 if self.focused else 2):
            return self.pick(rebinding)()
        forms: list[Callable[[], None]] = [self.assign, self.augment, self.exchange, self.leave, self.check, self.check]
        forms += [self.assign, self.assign_call, self.assign_call, self.assign_call]
        if self.arrays:
            forms += [self.store, self.store]
        if self.loops:
            forms += [self.leave, self.leave]
        if depth:
            forms += [lambda: self.branch(depth), lambda: self.branch(depth)]
            forms += [lambda: self.repeat(depth), lambda: self.count(depth), lambda: self.go_through(depth)] * 2
            forms += [lambda: self.choose(depth)]
        forms.append(lambda: self.line("pcbatch.sync()"))
        return self.pick(forms)()

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
        self.otherwise(depth)

    def otherwise(self, depth: int) -> None:
        """Sometimes the `else` of the loop before."""
        if self.chance(2):
            self.line("else:")
            self.block(depth - 1)

    def go_through(self, depth: int) -> None:
        """`for` over the elements of an array or a tuple."""
        self.fresh += 1
        counter, element = f"j{self.fresh}", f"e{self.fresh}"
        written = f"({self.number()}, {self.expression('int', 1)}, {self.number()})"
        whole = self.pick([written, *(self.arrays[1:] * 3), f"[{self.comprehension('int', 1)}]"])
        both = (f"{counter}, {element}", [counter, element])
        one = (element, [element])
        forms = [
            (f"{whole}", one),
            (f"{whole}", one),
            (f"reversed({whole})", one),
            (f"enumerate({whole})", both),
            (f"enumerate({whole}, {self.number()})", both),
            (f"zip({whole}, ({', '.join(map(str, range(2, 2 + LENGTH)))}))", both),
        ]
        sequence, (targets, names) = self.pick(forms)
        self.line(f"for {targets} in {sequence}:")
        self.counters += names
        self.loops += 1
        self.block(depth - 1)
        self.loops -= 1
        self.counters = self.counters[: -len(names)]
        self.otherwise(depth)

    def choose(self, depth: int) -> None:
        """`match` on a number or on two, with captures and guards."""
        self.fresh += 1
        name = f"m{self.fresh}"
        one = [("1", []), ("0 | 2", []), ("-1", []), (f"{name} if {name} > 2", [name]), (f"3 as {name}", [name])]
        two = [("(0, 1)", []), (f"(1, {name})", [name]), (f"({name}, _) if {name} > 1", [name]), ("(-1 | 2, 0)", [])]
        subject = f"{self.expression('int', 1)} % 4"
        cases, subject = self.pick([(one, subject), (two, f"{subject}, {self.number()}")])
        self.line(f"match {subject}:")
        self.indent += 1
        for _ in range(self.draw(1, 3)):
            pattern, names = self.pick(cases)
            self.line(f"case {pattern}:")
            self.counters += names
            self.block(depth - 1)
            self.counters = self.counters[: len(self.counters) - len(names)]
        if self.chance(5):
            self.line("case _:")
            self.block(depth - 1)
        self.indent -= 1

    def count(self, depth: int) -> None:
        """`for` over a range with one, two or three bounds; the step is positive, negative, or either by lane."""
        self.fresh += 1
        counter = f"i{self.fresh}"
        end = f"{self.expression('int', 1)} % 4"
        first, second, *_ = self.pools["int"]
        forms = [
            end,
            f"1, {end}",
            f"{end}, -1, -1",
            f"0, {end} + 4, 3",
            f"{first} % 3, {end} - 1, 1 - 2 * ({second} % 2)",
        ]
        self.line(f"for {counter} in range({self.pick(forms)}):")
        self.counters.append(counter)
        self.loops += 1
        self.block(depth - 1)
        self.loops -= 1
        self.counters.remove(counter)
        self.otherwise(depth)
