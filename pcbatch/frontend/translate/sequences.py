"""`for x in xs`, with `enumerate`, `zip` and `reversed`: over the leading axis of arrays and over fixed structures.

A hidden counter runs up to a length that is known at compile time; the sequence is evaluated once. A path around the
function (`W`, `model.w`) is read where it is used, so that it stays one value for all lanes. A range that stands inside
one of the three is as long as it is for each lane, `zip(range(n), xs)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gast

from pcbatch.frontend.source.calls import is_literal
from pcbatch.frontend.source.changes import changed_in
from pcbatch.frontend.source.iteration import range_arguments, wrapper
from pcbatch.frontend.source.nodes import assigned_in, call, constant, dotted, literal, load
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.ranges import INDEX, refuse_zero_step
from pcbatch.ir.pseudo_builtins import COUNT

LENGTH = "__length__"
"""The pseudo-builtin that gives the static length of the shortest of some sequences."""
ELEMENT = "__element__"
"""The pseudo-builtin that gives an element of a sequence at a position that is in range."""
SEQUENCE = "__sequence__"
"""The pseudo-builtin that gives a value on, if a loop can go over it."""


@dataclass(frozen=True)
class _Sequence:
    """The sequences that end a loop when the first of them ends, and the element for a position.

    With `strict` the sequences must be of one length.
    """

    ends: tuple[Any, ...]
    element: Callable[[Any], Any]
    strict: bool = False


class SequenceLoop:
    """The parts of one loop, emitted through `code` in the order start, test, begin_turn, advance."""

    def __init__(self, code: Expressions, node: Any):
        self.code = code
        self.node = node
        self.span = code.span(node)
        self.changed = assigned_in([node.target, *node.body, node.iter]) | changed_in([*node.body, node.iter])
        self.counter = ""
        self.sequence = _Sequence((), load)

    def start(self, *, is_tested: bool = False) -> None:
        """Evaluate what the loop goes over, from left to right, and set the counter."""
        self.sequence = self.sequence_of(self.node.iter)
        self.counter = self.code.temporary()
        self.code.assign(self.counter, self._placed(constant(0)), self.span)

    def test(self, body: str, otherwise: str) -> None:
        """Go to `body` while there is an element."""
        self.code.condition(
            self._placed(gast.Compare(load(self.counter), [gast.Lt()], [self.length_of(self.sequence)])),
            body,
            otherwise,
        )

    def has_turns(self) -> Any:
        """The condition that there is an element."""
        return self._placed(gast.Compare(self.length_of(self.sequence), [gast.Gt()], [self._placed(constant(0))]))

    def has_elements(self) -> Any:
        """The condition that there is an element of each sequence, ranges apart: it is known with the types."""
        fixed = [end for end in self.sequence.ends if not (isinstance(end, gast.Call) and end.func.id == COUNT)]
        length = call(LENGTH, *fixed)
        return self._placed(gast.Compare(length, [gast.Gt()], [self._placed(constant(0))]))

    def begin_turn(self) -> None:
        """Give the targets the element."""
        value = self.sequence.element(self._placed(load(self.counter)))
        self.code.primitive([self.node.target], value, self.code.span(self.node.target))

    def advance(self) -> None:
        """Move the counter on."""
        following = gast.BinOp(self._placed(load(self.counter)), gast.Add(), self._placed(constant(1)))
        self.code.assign(self.counter, self._placed(following), self.span)

    # -- sequences -----------------------------------------------------------------------------------------------------

    def sequence_of(self, node: Any) -> _Sequence:
        """What the loop goes over, evaluated once."""
        found = range_arguments(node, self.code.is_builtin)
        if found is not None and not found[1]:
            return self._range(found[0])
        name = wrapper(node, self.code.is_builtin)
        if name is None:
            kept = self._kept(node)
            return _Sequence((kept,), lambda position: call(ELEMENT, kept, position))
        inner = [self.sequence_of(each) for each in (node.args if name == "zip" else node.args[:1])]
        ends = tuple(end for each in inner for end in each.ends)
        strict = any(each.strict for each in inner)
        if name == "zip":
            strict |= any(keyword.value.value for keyword in node.keywords)
            return _Sequence(ends, lambda position: self._tuple(*(each.element(position) for each in inner)), strict)
        (only,) = inner
        if name == "reversed":
            return _Sequence(ends, lambda position: only.element(self._mirrored(only, position)))
        start = self._start([*node.args[1:], *(keyword.value for keyword in node.keywords)])
        return _Sequence(ends, lambda position: self._tuple(self._sum(start, position), only.element(position)), strict)

    def _range(self, arguments: list[Any]) -> _Sequence:
        """A range: something that is as long for each lane, and the number at a position."""
        bounds = [each if literal(each) is not None else self._held_index(each) for each in arguments]
        if len(bounds) == 1:
            return _Sequence((call(COUNT, *bounds),), lambda position: position)
        first, step = bounds[0], bounds[2] if len(bounds) > 2 else self._placed(constant(1))
        if literal(step) is None:
            refuse_zero_step(self.code, step, arguments[2])
        numbers = [each for each in map(literal, bounds) if each is not None]
        if len(numbers) == len(bounds):
            count = self._placed(constant(len(range(*numbers))))
        else:
            count = self._held(call(LENGTH, call(COUNT, *bounds)), arguments[0])

        def element(position: Any) -> Any:
            moved = position if literal(step) == 1 else self._placed(gast.BinOp(position, gast.Mult(), step))
            return self._placed(gast.BinOp(first, gast.Add(), moved))

        return _Sequence((call(COUNT, count),), element)

    def _kept(self, node: Any) -> Any:
        """An expression that gives the sequence in every turn."""
        if is_literal(node):
            return node
        path = dotted(node)
        if path is not None:
            root = path.partition(".")[0]
            is_free = root not in self.code.source.locals
            if is_free or (isinstance(node, gast.Name) and root not in self.changed):
                return node
        value = self.code.rewrite(node)
        makes = isinstance(value, gast.Call | gast.Constant | gast.Dict | gast.DictComp | gast.GeneratorExp)
        return self._held(call(SEQUENCE, value) if makes else value, node)

    def _held(self, value: Any, node: Any) -> Any:
        """A hidden variable with the value of `node`."""
        name = self.code.temporary()
        self.code.assign(name, value, self.code.span(node))
        return self._placed(load(name))

    def _start(self, arguments: list[Any]) -> Any:
        """The number that `enumerate` begins with, evaluated once."""
        if not arguments or literal(arguments[0]) is not None:
            return arguments[0] if arguments else constant(0)
        return self._held_index(arguments[0])

    def _held_index(self, node: Any) -> Any:
        return self._held(call(INDEX, self.code.rewrite(node)), node)

    def _sum(self, start: Any, position: Any) -> Any:
        return position if literal(start) == 0 else self._placed(gast.BinOp(start, gast.Add(), position))

    def _mirrored(self, sequence: _Sequence, position: Any) -> Any:
        last = self._placed(gast.BinOp(self.length_of(sequence), gast.Sub(), constant(1)))
        return self._placed(gast.BinOp(last, gast.Sub(), position))

    def length_of(self, sequence: _Sequence) -> Any:
        """The length of a sequence."""
        length = call(LENGTH, *sequence.ends)
        length.keywords = [gast.keyword("strict", constant(True))] if sequence.strict else []
        return length

    def _tuple(self, *parts: Any) -> Any:
        return self._placed(gast.Tuple(list(parts), gast.Load()))

    def _placed(self, node: Any) -> Any:
        return gast.copy_location(node, self.node.iter)
