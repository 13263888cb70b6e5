"""Programs of one lane with a `tf.GradientTape` in the body, as source text, judged by TensorFlow's eager tape.

A program is a module with an entry `main(n, k, x, y, a, b)`: two ints from 0 to 3, two floats, two arrays of 4, all
float32. Its tape stands around loops, branches, recursive helpers and batched calls, perhaps in a loop itself or in
another tape. Values stay small, so that rounding does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from tests.programs.generator import arguments as with_matrix
from tests.programs.generator import function_of

HEAD = """import tensorflow as tf

import pcbatch

W = tf.Variable([[0.5, -0.25, 0.0, 0.25], [0.25, 0.5, -0.5, 0.0], [-0.75, 0.0, 0.5, 0.25], [0.0, 0.25, 0.25, -0.5]])


def turned(v, s, c):
    v = v * 1.0  # two names for one tensor are two tensors to a tape behind a loop
    while c > 0:
        v = tf.tanh(v * s) + 0.25
        c = c - 1
    return v


def folded(v, s, c):
    if c < 1:
        return tf.reduce_sum(v) * s
    return tf.sin(folded(v * 0.5, s, c - 1)) + folded(tf.cos(v), s, c - 2) * 0.5


@pcbatch.autobatch
def swung(v, s, c):
    v = v * 1.0
    for _ in range(c):
        if s > 0.6:
            v = tf.reverse(v, [0]) * s
        else:
            v = tf.sin(v) - s
    return v
"""
DECORATOR = "@pcbatch.autobatch\n"


class Writer:
    """Writes the body of `main`."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth, self.names = 1, 0
        self.scalars, self.vectors, self.counts = ["x", "y"], ["a", "b"], ["n", "k"]

    def pick(self, choices: Sequence[Any]) -> Any:
        """One of some choices."""
        return self.random.choice(choices)

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"{'    ' * self.depth}{text}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write lines under a head; names that begin there are not known behind it."""
        known = [*self.scalars], [*self.vectors], [*self.counts]
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.scalars, self.vectors, self.counts = known

    def fresh(self, names: list[str], stem: str) -> str:
        """Another name, or one of `names` that is no parameter."""
        if len(names) > 2 and self.random.random() < 0.5:
            return self.pick(names[2:])
        self.names += 1
        return f"{stem}{self.names}"

    def scalar(self) -> str:
        """An expression for a number."""
        s, v, c = self.pick(self.scalars), self.pick(self.vectors), self.pick(self.counts)
        forms = [f"{s} * {self.pick(self.scalars)}", f"tf.sin({s}) + 0.5", f"tf.reduce_sum({v} * {v}) * 0.25"]
        forms += [f"{v}[{c}] * {s}", f"folded({v}, {s}, {c})", f"tf.reduce_max(tf.tanh({v})) - {s}"]
        forms += [f"tf.stop_gradient({s}) * {self.pick(self.scalars)}", f"{s} * tf.cast({c}, tf.float32)"]
        forms += [f"({s} * 2.0 if {self.condition()} else {self.pick(self.scalars)} * 0.5)"]
        return self.pick(forms)

    def vector(self) -> str:
        """An expression for an array of 4."""
        s, v, c = self.pick(self.scalars), self.pick(self.vectors), self.pick(self.counts)
        forms = [f"tf.tanh({v}) * {s}", f"{v} * 0.5 + {self.pick(self.vectors)}", f"tf.linalg.matvec(W, {v})"]
        forms += [f"turned({v}, {s}, {c})", f"swung({v}, {s}, {c})", f"tf.concat([{v}[2:], {v}[:2]], 0) - {s}"]
        return self.pick(forms)

    def condition(self) -> str:
        """A condition on values of the lane."""
        s, v, c = self.pick(self.scalars), self.pick(self.vectors), self.pick(self.counts)
        return self.pick([f"{c} > 1", f"{s} > 0.37", f"tf.reduce_sum({v}) < 0.13", f"{c} != 2 and {s} < 0.61"])

    def statement(self, depth: int) -> None:
        """Write any statement."""
        kind = self.random.randrange(8 if depth else 5)
        if kind < 2:
            text, name = self.scalar(), self.fresh(self.scalars, "s")
            self.line(f"{name} = {text}")
            self.scalars += [name] * (name not in self.scalars)
        elif kind < 5:
            text, name = self.vector(), self.fresh(self.vectors, "v")
            self.line(f"{name} = {text}")
            self.vectors += [name] * (name not in self.vectors)
        elif kind == 5:
            with self.block(f"if {self.condition()}:"):
                self.statement(depth - 1)
            if self.random.random() < 0.6:
                with self.block("else:"):
                    self.statement(depth - 1)
        else:
            self.names += 1
            counter = f"t{self.names}"
            if kind == 6:
                with self.block(f"for {counter} in range({self.pick(self.counts)}):"):
                    self.counts.append(counter)
                    self.some(depth - 1)
                    if self.random.random() < 0.3:
                        self.line(f"if {self.condition()}:")
                        self.line(f"    {self.pick(['break', 'continue'])}")
                        self.statement(0)
            else:
                self.line(f"{counter} = {self.pick(self.counts)}")
                with self.block(f"while {counter} > 0:"):
                    self.line(f"{counter} = {counter} - 1")
                    self.some(depth - 1)

    def some(self, depth: int) -> None:
        """Write one to three statements."""
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth)

    def taped(self, nested: bool) -> None:
        """Write a tape, its gradients, and a name for each of these."""
        sources = self.random.sample(["x", "y", "a", "b"], 2) + ["W"] * (self.random.random() < 0.4)
        self.names += 1
        tape = f"tape{self.names}"
        persistent = self.random.random() < 0.3
        self.line(f"with tf.GradientTape({'persistent=True' * persistent}) as {tape}:")
        self.depth += 1
        for name in sources:
            if name != "W":
                self.line(f"{tape}.watch({name})")
        self.some(2)
        if nested:
            self.taped(False)
            self.some(1)
        z, own = f"z{self.names}", [name for name in self.scalars if name not in "xy"]
        parts = [f"tf.reduce_sum({self.pick(self.vectors)})", self.pick(own or self.scalars)]
        parts.append(f"tf.reduce_sum({self.vector()})")
        is_zero = self.random.random() < 0.5
        if not is_zero:  # so that none is None
            parts += [f"0.1 * {name}" if name in "xy" else f"0.1 * tf.reduce_sum({name})" for name in sources]
        self.line(f"{z} = {' + '.join(parts)}")
        self.depth -= 1
        zero = ", unconnected_gradients=tf.UnconnectedGradients.ZERO" * is_zero
        found = [f"d{name}{self.names}" for name in sources]
        if persistent:
            for name, each in zip(found, sources, strict=True):
                self.line(f"{name} = {tape}.gradient({z}, {each}{zero})")
        else:
            self.line(f"{', '.join(found)} = {tape}.gradient({z}, [{', '.join(sources)}]{zero})")
        self.scalars += [z, *(name for name in found if name[1] in "xy")]
        self.vectors += [name for name in found if name[1] in "ab"]

    def main(self) -> str:
        """The text of the entry."""
        form = self.random.randrange(4)
        if form == 0:  # steps of a descent
            with self.block(f"for _ in range({self.pick(self.counts)}):"):
                self.taped(False)
                for name in ("x", "a"):
                    found = [each for each in (*self.scalars, *self.vectors) if re.fullmatch(f"d{name}\\d+", each)]
                    if found:
                        self.line(f"{name} = {name} - 0.125 * tf.tanh({found[-1]})")
        elif form == 1:
            with self.block(f"if {self.condition()}:"):
                self.taped(False)
                self.line(f"x, a = {self.pick(self.scalars)}, {self.pick(self.vectors)}")
        else:
            self.some(1)
            self.taped(form == 3)
        found = dict.fromkeys(re.findall(r"\bd[xyabW]\d+", "\n".join(self.lines))) if form > 1 else []
        results = ", ".join([*self.scalars, *self.vectors, *(each for each in found if each[1] == "W")])
        return "\n".join(["def main(n, k, x, y, a, b):", *self.lines, f"    return {results}", ""])


def program_of(seed: int) -> str:
    """Source of the program of this number, the same one every time."""
    return f"{HEAD}\n\n{Writer(seed).main()}"


def arguments() -> tuple[np.ndarray, ...]:
    """Arguments of some lanes, the same ones for all programs."""
    *given, _ = with_matrix()
    return (*given[:2], *(each / 2 for each in given[2:]))


def eagerly(source: str) -> Callable[..., Any]:
    """The entry of a program, undecorated, on tensors."""
    main = function_of(source.replace(DECORATOR, ""))

    def run(*example: Any) -> Any:
        return main(*(each if isinstance(each, int) else tf.constant(each) for each in example))

    return run
