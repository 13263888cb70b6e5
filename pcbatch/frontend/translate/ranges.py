"""`for i in range(..)`: a hidden counter, as the iterator is in Python.

The target keeps its last value after the loop, assigning it in the body does not disturb the iteration, and the
arguments are evaluated once. Where the body leaves the target alone the counter is derived from it (`t0 = i + 1`) at
the end of a turn, so that only the target has to be kept while the body runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from pcbatch.frontend.source.changes import changed_in
from pcbatch.frontend.source.nodes import assigned_in, call, constant, literal, load, names_in
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.ir.program import Fault

INDEX = "__index__"
"""The pseudo-builtin that turns a scalar integer tensor into a weak int."""


class RangeLoop:
    """The parts of one loop, emitted through `code` in the order start, test, begin_turn, advance."""

    def __init__(self, code: Expressions, node: Any, arguments: Sequence[Any], backwards: bool):
        self.code = code
        self.node = node
        self.arguments = arguments
        self.backwards = backwards
        self.span = code.span(node)
        inside = [*node.body, node.iter]
        self.changed = assigned_in(inside) | changed_in(inside)
        self.counter = ""
        self.first: Any = None
        self.stop: Any = None
        self.step: Any = None

    def start(self, *, is_tested: bool = False) -> None:
        """Evaluate the arguments, from left to right, and set the counter; where the loop begins is kept if tested."""
        arguments = self.arguments
        first = arguments[0] if len(arguments) > 1 else self._number(0)
        self.counter = self.code.temporary()
        if self.backwards:
            self._start_backwards(first, arguments[-1], is_tested=is_tested)
            return
        self.first = self._bound(first, kept=is_tested)
        self.code.assign(self.counter, self.first, self.code.span(first))
        self.stop = self._bound(arguments[1] if len(arguments) > 1 else arguments[0])
        self.step = self._bound(arguments[2]) if len(arguments) > 2 else self._number(1)
        if literal(self.step) is None:
            refuse_zero_step(self.code, self.step, arguments[2])

    def _start_backwards(self, low: Any, high: Any, *, is_tested: bool) -> None:
        """From `high - 1` down to `low`."""
        low = self._bound(low)
        number = literal(low)
        self.stop = self._placed(gast.BinOp(low, gast.Sub(), self._number(1)) if number is None else signed(number - 1))
        self.first = self._placed(gast.BinOp(self._bound(high, kept=is_tested), gast.Sub(), self._number(1)))
        self.code.assign(self.counter, self.first, self.code.span(high))
        self.step = self._placed(signed(-1))

    def test(self, body: str, otherwise: str) -> None:
        """Go to `body` while the counter has not reached the end."""
        self.code.condition(self._goes_on(load(self.counter)), body, otherwise)

    def has_turns(self) -> Any:
        """The condition that there is a turn: known where the arguments are."""
        numbers = [each for each in map(literal, self.arguments) if each is not None]
        if len(numbers) == len(self.arguments):
            return self._placed(constant(len(range(*numbers)) > 0))
        return self._goes_on(self.first)

    def _goes_on(self, counter: Any) -> Any:
        step = literal(self.step)
        below, above = self._compared(counter, gast.Lt()), self._compared(counter, gast.Gt())
        if step is None:
            upward = self._placed(gast.Compare(self.step, [gast.Gt()], [self._number(0)]))
            return self._placed(gast.IfExp(upward, below, above))
        return below if step > 0 else above

    def begin_turn(self) -> None:
        """Give the target the counter's value."""
        self.code.assign(self.node.target.id, self._placed(load(self.counter)), self.code.span(self.node.target))

    def advance(self) -> None:
        """Move the counter on."""
        target = self.node.target.id
        base = self._placed(load(self.counter if target in self.changed else target))
        step = literal(self.step)
        if step is not None and step < 0:
            following = gast.BinOp(base, gast.Sub(), self._number(-step))
        else:
            following = gast.BinOp(base, gast.Add(), self.step)
        self.code.assign(self.counter, self._placed(following), self.span)

    def _bound(self, node: Any, *, kept: bool = True) -> Any:
        """An expression for an argument of the range that has the same value in every turn, if it is to be `kept`."""
        if literal(node) is not None:
            return node
        if kept and not self._is_fixed(node):
            value = call(INDEX, self.code.rewrite(node))
            name = self.code.temporary()
            self.code.assign(name, value, self.code.span(node))
            return self._placed(load(name))
        return call(INDEX, node if kept else self.code.rewrite(node))

    def _is_fixed(self, node: Any) -> bool:
        """Whether `node` is a name, a length or a part of a shape that the loop does not change: no need to keep it."""
        match node:
            case (
                gast.Name()
                | gast.Subscript(value=gast.Attribute(value=gast.Name(), attr="shape"), slice=gast.Constant())
            ):
                pass
            case gast.Call(func=gast.Name(id="len"), args=[gast.Name()]) if self.code.is_builtin("len"):
                pass
            case _:
                return False
        return not names_in(node) & (self.changed | {self.node.target.id})

    def _compared(self, counter: Any, op: Any) -> Any:
        return self._placed(gast.Compare(counter, [op], [self.stop]))

    def _number(self, value: int) -> Any:
        return self._placed(constant(value))

    def _placed(self, node: Any) -> Any:
        return gast.copy_location(node, self.node.iter)


def refuse_zero_step(code: Expressions, step: Any, node: Any) -> None:
    """Emit the fault of a lane whose `step`, the value of `node`, is 0."""
    fine, zero = code.draft.label(), code.draft.label()
    none = gast.copy_location(constant(0), node)
    code.condition(gast.copy_location(gast.Compare(step, [gast.Eq()], [none]), node), zero, fine)
    code.draft.open(zero)
    code.draft.end(Fault("ValueError: range() arg 3 must not be zero", (), "raise", code.span(node)))
    code.draft.open(fine)


def signed(value: int) -> Any:
    """The literal of an int, placed nowhere yet."""
    return gast.UnaryOp(gast.USub(), constant(-value)) if value < 0 else constant(value)
