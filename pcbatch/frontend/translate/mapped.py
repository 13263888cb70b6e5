"""`pcbatch.map` over many elements, or over as many as each lane says: a loop that stores what each call gives.

    y = pcbatch.map(f, xs, count=n)          t1 = 0
                                             while t1 < n:
                                                 t2 = f(xs[t1])
                                                 y[t1] = t2           (y: zeros, of as many rows as `xs` has)
                                                 t1 = t1 + 1

Its turns count as no steps, as they do not where the calls are written out. What `f` gives is not known when this is
emitted, so at first there is only a question, `__mapped__`; then the program is built again. Where calls are to be made
at the same time, a turn makes several, each but the first if there are so many elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gast

from pcbatch.errors import Span
from pcbatch.frontend.source.iteration import range_arguments
from pcbatch.frontend.source.nodes import call, constant, literal, load, store, target_leaves
from pcbatch.frontend.source.scopes import renamed
from pcbatch.frontend.translate.comprehensions import MOST, as_list
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.ranges import INDEX
from pcbatch.frontend.translate.sequences import LENGTH, SequenceLoop
from pcbatch.ir.program import Store
from pcbatch.ir.pseudo_builtins import BLANK, MAPPED
from pcbatch.ir.types import StructType, TensorType, Type, leaves, returned

AT_ONCE = 16
"""So many calls are made at the same time, where there are more: each is written out, and compiled, for that."""
WHY = "as each that is to be made at the same time as others is written out"


def as_map(code: Expressions, node: Any) -> Any:
    """Emit what a call of `pcbatch.map` does; gives what reads its value."""
    listed, counts = node.args[0], node.args[1:]
    if not counts and not _is_long(code, listed.generators[0].iter):
        return gast.copy_location(gast.Call(node.func, [as_list(code, listed)], []), node)
    return _Map(code, node, listed, counts[0] if counts else None).emitted()


def _is_long(code: Expressions, over: Any) -> bool:
    """Whether there are more elements than are written out."""
    known = code.unrolling.length(code.span(over), code.turns)
    found = range_arguments(over, code.is_builtin)
    if found is not None:
        numbers = [each for each in map(literal, found[0]) if each is not None]
        known = len(range(*numbers)) if len(numbers) == len(found[0]) else known
    return known is not None and known > MOST


@dataclass
class _Over:
    """What a map goes over: how many elements there are, and the one at a position."""

    length: Any
    element: Callable[[Any], Any]


class _Map:
    """One map, emitted through `code`."""

    def __init__(self, code: Expressions, node: Any, listed: Any, count: Any):
        self.code, self.node, self.listed, self.count = code, node, listed, count
        self.generator = listed.generators[0]
        self.span: Span = code.span(node)

    def emitted(self) -> Any:
        """Emit all of it; gives what reads the value."""
        code = self.code
        over = self._over()
        given = "" if self.count is None else code.operand(self.count)
        count = code.held(self._placed(call(INDEX, load(given)))) if given else None
        known = code.unrolling.mapped.get((self.span, code.turns))
        if known is None:
            value = self._value(over, constant(0))
            self._ask(value, over, None)
            return load(value, self.node)
        length, type_ = known
        if count is not None:
            self._check(count, given, length)
        rows = [self._blank(leaf, length) for leaf in leaves(type_)]
        self._calls(over, count, length, type_, rows)
        return self._placed(_structure(type_, iter(rows)))

    def _calls(self, over: _Over, count: str | None, length: int, type_: Type, rows: Sequence[str]) -> None:
        """The loop, or no loop where its first turn does everything."""
        code, place, wanted = self.code, self.code.temporary(), constant(length) if count is None else load(count)
        turn = self._at_once(length)
        code.assign(place, self._placed(constant(0)), self.span)
        head, body, done = (code.draft.label() for _ in range(3))
        if turn < length:
            code.jump(head, self.span)
            code.draft.open(head)
            code.condition(self._placed(gast.Compare(load(place), [gast.Lt()], [wanted])), body, done)
            code.draft.open(body)
        for number in range(turn):
            at = self._placed(gast.BinOp(load(place), gast.Add(), constant(number)) if number else load(place))
            if (turn < length and number == 0) or (count is None and length % turn == 0):
                self._call(over, at, length, type_, rows)
                continue
            then, after = code.draft.label(), code.draft.label()
            code.condition(self._placed(gast.Compare(at, [gast.Lt()], [wanted])), then, after)
            code.draft.open(then)
            self._call(over, at, length, type_, rows)
            code.jump(after, self.span)
            code.draft.open(after)
        if turn < length:
            code.assign(place, self._placed(gast.BinOp(load(place), gast.Add(), constant(turn))), self.span)
            code.jump(head, self.span)  # which is no turn of a loop of the user's
            code.draft.open(done)

    def _at_once(self, length: int) -> int:
        """How many calls a turn makes."""
        unrolling = self.code.unrolling
        if not unrolling.forking or not self.code.callees.has_calls(self.listed.elt):
            return min(length, 1)
        unrolling.for_calls.append(self.span)
        if length > AT_ONCE:
            unrolling.partly[self.span] = f"{AT_ONCE} of these {length} calls are made at a time, {WHY}"
        return min(length, AT_ONCE)

    def _call(self, over: _Over, at: Any, length: int, type_: Type, rows: Sequence[str]) -> None:
        """One call, and the stores of what it gives."""
        code = self.code
        place = code.operand(at)
        value = self._value(over, load(place, self.node))
        self._ask(value, over, (length, type_))
        for path, row in zip(_paths(type_), rows, strict=True):
            part = load(value, self.node)
            for key in path:
                part = self._placed(gast.Subscript(part, constant(key), gast.Load()))
            name = code.operand(part)
            code.draft.emit(Store(row, (place,), name, self.span), {})

    def _value(self, over: _Over, position: Any) -> str:
        """A variable with what the call for the element at a position gives."""
        code, target = self.code, self.generator.target
        inside = {leaf.id: code.temporary() for leaf in target_leaves(target)}
        code.primitive([renamed(target, inside)], over.element(self._placed(position)), code.span(self.generator.iter))
        return code.held(renamed(self.listed.elt, inside))

    def _ask(self, value: str, over: _Over, known: tuple[int, Type] | None) -> None:
        """Emit the question what the calls give; refuses something else than what is `known`."""
        texts = (
            [constant(None), constant(None)]
            if known is None
            else [constant(known[0]), constant(str(returned(known[1])))]
        )
        turns = gast.Tuple([constant(each) for each in self.code.turns], gast.Load())
        question = self._placed(call(MAPPED, load(value), over.length, *texts, turns))
        self.code.primitive([store(self.code.temporary())], question, self.span)

    def _check(self, count: str, given: str, length: int) -> None:
        """Emit what fails a lane whose count, as it was given, is none."""
        compared = gast.Compare(constant(0), [gast.LtE(), gast.LtE()], [load(count), constant(length)])
        message: list[Any] = [
            gast.Constant("count=", None),
            gast.FormattedValue(load(given), -1, None),
            gast.Constant(f" of {length} elements", None),
        ]
        error = gast.Raise(gast.Call(load("ValueError"), [gast.JoinedStr(message)], []), None)
        self.code.statement(self._placed(gast.If(gast.UnaryOp(gast.Not(), compared), [error], [])))

    def _blank(self, leaf: TensorType, length: int) -> str:
        """A variable with rows of zeros."""
        name = self.code.temporary()
        shape = [constant(size) for size in (length, *leaf.shape)]
        self.code.assign(name, self._placed(call(BLANK, constant(leaf.returned), *shape)), self.span)
        return name

    def _over(self) -> _Over:
        """What the map goes over, evaluated once."""
        code, place = self.code, self.generator.iter
        found = range_arguments(place, code.is_builtin)
        if found is None:
            node = gast.copy_location(gast.For(self.generator.target, place, [], [], None), place)
            loop = SequenceLoop(code, node)
            sequence = loop.sequence_of(place)
            return _Over(loop.length_of(sequence), sequence.element)
        arguments, backwards = found
        held = [each if literal(each) is not None else self._bound(each) for each in arguments]
        length = call(LENGTH, self._placed(call("range", *held)))
        start = held[0] if len(held) > 1 else constant(0)
        step = held[2] if len(held) > 2 else constant(1)

        def element(position: Any) -> Any:
            last = gast.BinOp(length, gast.Sub(), constant(1))
            position = gast.BinOp(last, gast.Sub(), position) if backwards else position
            return self._placed(gast.BinOp(start, gast.Add(), gast.BinOp(position, gast.Mult(), step)))

        return _Over(length, element)

    def _bound(self, node: Any) -> Any:
        return load(self.code.held(call(INDEX, node)), node)

    def _placed(self, node: Any) -> Any:
        for each in gast.walk(node):
            if getattr(each, "lineno", None) is None:
                gast.copy_location(each, self.node)
        return node


def _paths(type_: Type, before: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """The ways to the arrays of a structure, in their order."""
    if isinstance(type_, StructType):
        keys: Sequence[int | str] = type_.keys if type_.kind == "dict" else range(len(type_.items))
        for key, item in zip(keys, type_.items, strict=True):
            yield from _paths(item, (*before, key))
    else:
        yield before


def _structure(type_: Type, rows: Iterator[str]) -> Any:
    """The structure of variables that a map gives."""
    if not isinstance(type_, StructType):
        return load(next(rows))
    parts = [_structure(item, rows) for item in type_.items]
    match type_.kind:
        case "tuple":
            return gast.Tuple(parts, gast.Load())
        case "list":
            return gast.List(parts, gast.Load())
        case _:
            return gast.Dict([constant(key) for key in type_.keys], parts)
