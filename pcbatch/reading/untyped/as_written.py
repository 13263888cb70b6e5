"""Expressions that cannot be interpreted without types: operations that are written as they stand in the source."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gast

from pcbatch.ir.expression_parser import expression_of as tree_expression
from pcbatch.ir.expressions import Attribute, free_names
from pcbatch.ir.operators import print_expression
from pcbatch.reading.core import RefusedError
from pcbatch.reading.operations import Named, Operation, Spelled, builtin, expression_of, lanes_in
from pcbatch.reading.recovery import Recovery
from pcbatch.reading.sources import COMPREHENSIONS, parameters_of, scope_of
from pcbatch.reading.values import Bound, Function, Generator, Host, Lane, Value
from pcbatch.threads import parse

CHANGED = builtin("__changed__")
SCOPED = (*COMPREHENSIONS, gast.Lambda, gast.JoinedStr)
"""Expressions of which not all parts can be evaluated where they stand."""


class AsWritten(Recovery):
    """Expressions as they are written."""

    # of parts above
    has_unknown: Callable[[Value], bool]
    is_counted: Callable[[Value], bool]

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self.spelled: list[Any] = []
        """The trees of lambdas of which the text is made."""

    def as_written(self, node: Any, error: RefusedError) -> Value:
        """An expression as one operation on the values of what is in it; `error` where none of these is unknown."""
        written = _Written(self)
        if isinstance(node, gast.ListComp) and self.calls_batched(node):
            return self.collected(Generator(node, self.frame, self.expression(node.generators[0].iter)))
        tree = written.scoped(node) if isinstance(node, SCOPED) else written.parts(node)
        if not any(map(self.has_unknown, written.values)) or any(map(self.is_counted, written.values)):
            raise error
        found = tree_expression(gast.gast_to_ast(tree))
        lanes = {lane.name: lane for each in written.patterns for lane in lanes_in(each)}
        operation = Operation(None, lambda given, named: found, lambda ops, given, named: ops.as_it_stands())
        return self.emit(operation, [lanes[name] for name in free_names(found) if name in lanes])

    def calls_batched(self, node: Any) -> bool:
        """Tell whether a comprehension names a batched function."""
        names = {each.id for each in gast.walk(node) if isinstance(each, gast.Name)}
        found = [self.outside_of(name) for name in names - scope_of(node).locals]
        return any(isinstance(each, Host) and self.batched(each.value) is not None for each in found)

    def outside_of(self, name: str) -> Value | None:
        """Return what a name means where a comprehension stands; None where it means nothing."""
        try:
            return self.lookup(name)
        except RefusedError:
            return None

    def collected(self, value: Generator) -> Value:
        """The items of a generator in an unknown list, which a loop makes."""
        start = self.lane(self.new("list", ()))

        def add(found: Value, item: Value) -> Value:
            return self.emit(CHANGED, [self.pattern(found), "append", self.pattern(item)])

        return self.consumed(value, start, add)

    def closure(self, value: Function | Bound) -> Any:
        if isinstance(value, Bound):
            if isinstance(value.receiver, Host) and not isinstance(value.function, str):
                return super().closure(value)
            receiver = self.pattern(value.receiver)
            name = value.function if isinstance(value.function, str) else value.function.name
            return Spelled(Attribute(expression_of(receiver), name), tuple(lanes_in(receiver)))
        if value.frame is None or value.batched is not None:
            return super().closure(value)
        if not isinstance(value.tree, gast.Lambda):
            return Named(self.names.bind(value.name, value.tree), value.tree)
        self.spelled.append(value.tree)
        try:
            written = _Written(self)
            tree = self.within_frame(value.frame, lambda: written.scoped(value.tree))
        finally:
            self.spelled.pop()
        lanes = (lane for each in written.patterns for lane in lanes_in(each))
        return Spelled(tree_expression(gast.gast_to_ast(tree)), tuple(dict.fromkeys(lanes)))


class _Written:
    """An expression in which names are those of the program."""

    def __init__(self, reader: AsWritten):
        self.reader = reader
        self.values: list[Value] = []
        self.patterns: list[Any] = []
        self.known: dict[str, Any] = {}
        self.inner: frozenset[str] = frozenset()
        """The names that the expression binds for itself."""

    def parts(self, node: Any) -> Any:
        """A copy of an expression with the values of its parts in their place."""
        return _copied(node, self._part, func=lambda each: self._part(each, is_called=True))

    def _part(self, node: Any, is_called: bool = False) -> Any:
        match node:
            case gast.keyword() | gast.Starred() | gast.Slice():
                return self.parts(node)
            case gast.Tuple(elts=elts) if any(isinstance(each, gast.Slice) for each in elts):
                return self.parts(node)
            case gast.GeneratorExp() | gast.Lambda():
                return self.scoped(node)
            case gast.expr() if is_called and isinstance(node, gast.Attribute):
                return self.parts(node)
            case gast.expr():
                return self._given(self.reader.expression(node))
        return node

    def _given(self, value: Value, bound: frozenset[str] = frozenset()) -> Any:
        """The tree of a value in a text that binds names of its own."""
        if isinstance(value, Generator):
            return self.reader.within_frame(value.frame, lambda: self.scoped(value.tree))
        pattern = self.reader.pattern(value)
        if isinstance(pattern, Lane) and pattern.name in bound:
            pattern = self._renamed(pattern, bound)
        self.values.append(value)
        self.patterns.append(pattern)
        return gast.ast_to_gast(parse(print_expression(expression_of(pattern)), mode="eval")).body

    def _renamed(self, lane: Lane, bound: frozenset[str]) -> Lane:
        """A variable that a text reads which binds its name."""
        name = lane.name
        while name in bound:
            name = self.reader.emitter.fresh(lane.type, lane.name)
        self.reader.give(name, lane, lane.type)
        return Lane(name, lane.type)

    def scoped(self, node: Any) -> Any:
        """A copy of an expression that has variables of its own, with the values of all others in their place."""
        names = [each for each in gast.walk(node) if isinstance(each, gast.Name)]
        self.inner = frozenset(each.id for each in names if not isinstance(each.ctx, gast.Load))
        return self._inside(node, frozenset())

    def _inside(self, node: Any, own: frozenset[str]) -> Any:
        """A copy of a part of such an expression, which stands where it has variables of its `own`."""
        match node:
            case gast.Name(id=name, ctx=gast.Load()):
                return node if name in own else self._named(name, node)
            case gast.Lambda(args=arguments, body=body):
                made, inside = copy.copy(node), own | {each.id for each in parameters_of(node)}
                made.args = _copied(arguments, lambda each: self._inside(each, own))
                made.body = self._inside(body, inside)
                return made
            case _ if isinstance(node, COMPREHENSIONS):
                return self._comprehension(node, own)
        return _copied(node, lambda each: self._inside(each, own))

    def _comprehension(self, node: Any, own: frozenset[str]) -> Any:
        """A comprehension: what it goes over first is evaluated around it."""
        first = self._inside(node.generators[0].iter, own)
        targets = (each for generator in node.generators for each in gast.walk(generator.target))
        inside = own | {each.id for each in targets if isinstance(each, gast.Name)}
        made = _copied(node, lambda each: self._inside(each, inside))
        made.generators[0].iter = first
        return made

    def _named(self, name: str, node: Any) -> Any:
        if name not in self.known:
            value = self.reader.lookup(name, node)
            is_itself = isinstance(value, Function) and value.tree in self.reader.spelled
            self.known[name] = node if is_itself else self._given(value, self.inner)
        return self.known[name]


def _copied(node: Any, change: Callable[[Any], Any], **others: Callable[[Any], Any]) -> Any:
    """A copy of a tree's node with its parts changed, those of some names by others."""
    made = copy.copy(node)
    for name, part in gast.iter_fields(node):
        own = others.get(name, change)
        if isinstance(part, list):
            setattr(made, name, [own(each) if isinstance(each, gast.AST) else each for each in part])
        elif isinstance(part, gast.AST):
            setattr(made, name, own(part))
    return made
