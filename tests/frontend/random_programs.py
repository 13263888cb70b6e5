"""Random functions in the language as it stands: every statement, every operator, evaluation orders that matter.

Values are Python ints and bools, `xs` is a list of three, divisors are mostly constants. Loops are bounded, so every
function ends, with a value or with an exception.
"""

from __future__ import annotations

import random
from collections.abc import Callable

HELPERS = """\
import pcbatch


def plain(x):
    return x * 2 + 1


@pcbatch.autobatch
def near(x):
    return x - 1 if x > 2 else x + 1


@pcbatch.autobatch
def mixed(x, y=3, *, z=1):
    while x > y and x > 0:
        x = x // 2
    return (x + z - y) % 100


@pcbatch.autobatch
def program(a, b, c, xs):
"""

Lines = list[str]


class Generator:
    """Draws one function."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.loops = 0
        self.counters = 0

    def module(self) -> str:
        """The text of a module with the function `program(a, b, c, xs)` and what it calls."""
        body = [*self.block(0), *self.block(0), "return a, b, c, xs"]
        return HELPERS + "".join(f"    {line}\n" for line in body)

    def name(self) -> str:
        return self.draw.choice("abc")

    def maybe(self, chance: float) -> bool:
        return self.draw.random() < chance

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self, depth: int = 0) -> str:
        """An expression, in parentheses unless it is an atom."""
        if depth > 3 or self.maybe(0.25):
            return self.draw.choice(["a", "b", "c", "0", "1", "2", "-3", "7"])
        kinds: list[Callable[[Callable[[], str]], str]] = [
            *[self.arithmetic] * 4,
            *[self.division] * 2,
            *[self.comparison] * 3,
            *[self.logic] * 3,
            *[self.choice] * 2,
            *[self.call] * 3,
            lambda e: f"(not {e()})",
            lambda e: f"plain({e()})",
            lambda e: f"abs({e()})",
            lambda e: f"xs[{e()} % 3]",
            lambda e: f"({self.name()} := {e()})",
            lambda e: f"({e()} {self.draw.choice(['in', 'not in'])} ({e()}, {e()}, 3))",
            lambda e: f"min(*xs, *({e()}, {e()}))",
        ]
        return self.draw.choice(kinds)(lambda: self.expression(depth + 1))

    def arithmetic(self, e: Callable[[], str]) -> str:
        return f"({e()} {self.draw.choice('+-*')} {e()})"

    def division(self, e: Callable[[], str]) -> str:
        divisor = e() if self.maybe(0.1) else self.draw.choice("235")
        return f"({e()} {self.draw.choice(['//', '%'])} {divisor})"

    def comparison(self, e: Callable[[], str]) -> str:
        chain = f" {self.draw.choice(['<', '>='])} {e()}" if self.maybe(0.4) else ""
        return f"({e()} {self.draw.choice(['<', '<=', '==', '!=', '>'])} {e()}{chain})"

    def logic(self, e: Callable[[], str]) -> str:
        third = f" {self.draw.choice(['and', 'or'])} {e()}" if self.maybe(0.4) else ""
        return f"({e()} {self.draw.choice(['and', 'or'])} {e()}{third})"

    def choice(self, e: Callable[[], str]) -> str:
        return f"({e()} if {e()} else {e()})"

    def call(self, e: Callable[[], str]) -> str:
        forms = (f"near({e()})", f"mixed({e()}, {e()}, z={e()})", f"mixed(z={e()}, x={e()})")
        return self.draw.choice(forms)

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, depth: int) -> Lines:
        """One to three statements."""
        return [line for _ in range(self.draw.randint(1, 3)) for line in self.statement(depth)]

    def statement(self, depth: int) -> Lines:
        """A statement, nested up to three deep."""
        if depth > 2 or self.maybe(0.25):
            return [f"{self.name()} = {self.expression()}"]
        kinds = [
            *[self.assignment] * 5,
            *[self.condition] * 3,
            *[self.for_loop] * 3,
            *[self.for_each] * 2,
            *[self.match] * 2,
            *[self.while_loop] * 2,
            *[self.leaving] * 3,
        ]
        return self.draw.choice(kinds)(depth)

    def assignment(self, depth: int) -> Lines:
        e, element = self.expression, f"xs[{self.expression(2)} % 3]"
        forms = (
            f"{self.name()}, {self.name()} = {e()}, {e()}",
            f"{self.name()}, *rest, {self.name()} = [*xs, {e()}]",
            f"{self.name()} {self.draw.choice('+-*')}= {e()}",
            f"{element} = {e()}",
            f"{element} += {e()}",
            f"{element}, {self.name()} = {e()}, {e(1)}",
            f"{self.name()} = {element} = {self.name()} = {e()}",
        )
        return [self.draw.choice(forms)]

    def condition(self, depth: int) -> Lines:
        lines = [f"if {self.expression()}:", *self.inside(depth)]
        if self.maybe(0.3):
            lines += [f"elif {self.expression()}:", *self.inside(depth)]
        return [*lines, "else:", *self.inside(depth)] if self.maybe(0.5) else lines

    def for_loop(self, depth: int) -> Lines:
        bounds = [f"{self.expression(1)} % 5" for _ in range(self.draw.randint(1, 2))]
        if len(bounds) == 2 and self.maybe(0.5):
            bounds.append(self.draw.choice(["-1", "2", f"{self.expression(1)} % 4 - 2"]))
        return self.loop([f"for {self.name()} in range({', '.join(bounds)}):"], depth)

    def for_each(self, depth: int) -> Lines:
        e, name = self.expression, self.name
        forms = (
            f"for {name()} in ({e()}, {e()}, {e(1)}):",
            f"for {name()} in (2, -1):",
            f"for {name()}, {name()} in enumerate([*xs], {e()}):",
            f"for {name()}, ({name()}, {name()}) in zip((1, {e()}), reversed([({e()}, {e()}), (3, 4)])):",
            f"for {name()} in reversed(range({e()} % 5, {e()} % 7)):",
        )
        return self.loop([self.draw.choice(forms)], depth)

    def match(self, depth: int) -> Lines:
        e, name = self.expression, self.name
        first, second = self.draw.sample("abc", 2)
        pair = self.maybe(0.5)
        subject = f"{e()}, {e()}" if pair else e()
        patterns = ("0, _", f"(1 | 2 as {first}), {second}", f"{name()}, True", f"({name()}, -1)", "_, (0 | 7)")
        if not pair:
            patterns = ("0 | 1", "-3", "True", f"_ as {name()}", f"2 | 3 as {name()}", "7")
        lines = [f"match {subject}:"]
        for pattern in self.draw.sample(patterns, self.draw.randint(1, 3)):
            guard = f" if {e()}" if "_ as" in pattern or self.maybe(0.4) else ""
            lines += [f"    case {pattern}{guard}:", *(f"    {line}" for line in self.inside(depth))]
        return [*lines, "    case _:", *(f"    {line}" for line in self.inside(depth))] if self.maybe(0.4) else lines

    def while_loop(self, depth: int) -> Lines:
        self.counters += 1
        counter = f"k{self.counters}"
        start = [f"{counter} = 0", f"while {counter} < 3 and {self.expression()}:", f"    {counter} += 1"]
        return self.loop(start, depth)

    def loop(self, start: Lines, depth: int) -> Lines:
        self.loops += 1
        lines = [*start, *self.inside(depth)]
        self.loops -= 1
        return [*lines, "else:", *self.inside(depth)] if self.maybe(0.3) else lines

    def inside(self, depth: int) -> Lines:
        return [f"    {line}" for line in self.block(depth + 1)]

    def leaving(self, depth: int) -> Lines:
        forms = [
            [f"if {self.expression()} == 5:", f"    return {self.expression()}, 0, 0, xs"],
            [f"if {self.expression()} == 77:", f'    raise ValueError(f"bad {{{self.name()}}}")'],
            [f'assert {self.expression()} != 88, f"{{{self.name()}}} {{{self.expression(2)}:d}}"'],
        ]
        if self.loops:
            forms += [[f"if {self.expression()}:", f"    {self.draw.choice(['break', 'continue'])}"]] * 2
        return self.draw.choice(forms)
