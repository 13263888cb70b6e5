"""Comprehensions with batched calls, `[f(x) for x in xs]`: written out, element after element, in Python's order.

The length must be known, since a list has one structure: by literals, or once types have been inferred, in which case
the program is built again (`__unrolled__` says so, and asks for that). `any(..)` and `all(..)` of a generator stop at
the first element that decides, as Python does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Span
from pcbatch.frontend.source.iteration import range_arguments
from pcbatch.frontend.source.nodes import call, constant, literal, load, store, target_leaves, unparse
from pcbatch.frontend.source.scopes import renamed
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.ranges import INDEX
from pcbatch.frontend.translate.sequences import LENGTH, SequenceLoop

MOST = 64
"""So many elements are written out; more would make programs that take long to compile."""
UNROLLED = "__unrolled__"
"""The pseudo-builtin `__unrolled__(length, known)`, which refuses a length that is not the one known, None at first."""


def as_list(code: Expressions, node: Any) -> Any:
    """The list of the elements of a comprehension, each computed by what has been emitted."""
    if any(each.ifs for each in node.generators):
        code.report(_varies(node, code.span(node)))
    names = [code.operand(element) for element in _elements(code, node.generators, node.elt, {}, hold=True)]
    return gast.copy_location(gast.List([load(name, node) for name in names], gast.Load()), node)


def as_chain(code: Expressions, node: Any, *, stops_if_true: bool) -> Any:
    """`any(..)` or `all(..)` of a generator as a chain of `or` or `and`."""
    elements = list(_elements(code, node.generators, node.elt, {}, hold=False))
    values = [gast.copy_location(call("bool", each), node) for each in elements]
    if len(values) < 2:
        return values[0] if values else gast.copy_location(constant(not stops_if_true), node)
    return gast.copy_location(gast.BoolOp(gast.Or() if stops_if_true else gast.And(), values), node)


def _elements(
    code: Expressions, generators: list[Any], element: Any, names: dict[str, str], *, hold: bool
) -> Iterator[Any]:
    """The element for each turn, the targets of the turn being set; a variable that has it, if it is to be held."""
    if not generators:
        value = renamed(element, names)
        yield load(code.held(value), element) if hold else value
        return
    first, *rest = generators
    count, position = _sequence(code, gast.comprehension(first.target, renamed(first.iter, names), [], 0), first.iter)
    for turn in range(count):
        inside = names | {leaf.id: code.temporary() for leaf in target_leaves(first.target)}
        target = renamed(first.target, inside)
        code.primitive([target], position(turn), code.span(first.iter))
        yield from _elements(code, rest, element, inside, hold=hold)


def _sequence(code: Expressions, generator: Any, place: Any) -> tuple[int, Callable[[int], Any]]:
    """How many elements there are, and the element for a position."""
    found = range_arguments(generator.iter, code.is_builtin)
    if found is not None:
        return _range(code, *found, place)
    node = gast.copy_location(gast.For(generator.target, generator.iter, [], [], None), place)
    loop = SequenceLoop(code, node)
    sequence = loop.sequence_of(generator.iter)
    count = _count(code, loop.length_of(sequence), place)
    return count, lambda turn: sequence.element(gast.copy_location(constant(turn), place))


def _range(code: Expressions, arguments: list[Any], backwards: bool, place: Any) -> tuple[int, Callable[[int], Any]]:
    known = [literal(each) for each in arguments]
    if None not in known:
        numbers = range(*(each for each in known if each is not None))
        numbers = numbers[::-1] if backwards else numbers
        _limit(code, len(numbers), place)
        return min(len(numbers), MOST), lambda turn: gast.copy_location(constant(numbers[turn]), place)
    held = [_bound(code, each) for each in arguments]
    length = _count(code, call(LENGTH, gast.copy_location(call("range", *held), place)), place)
    start = held[0] if len(held) > 1 else constant(0)
    step = held[2] if len(held) > 2 else constant(1)

    def element(turn: int) -> Any:
        offset = gast.BinOp(constant(length - 1 - turn if backwards else turn), gast.Mult(), step)
        return gast.copy_location(gast.BinOp(start, gast.Add(), offset), place)

    return length, element


def _bound(code: Expressions, node: Any) -> Any:
    if literal(node) is not None:
        return node
    name = code.temporary()
    code.assign(name, call(INDEX, code.rewrite(node)), code.span(node))
    return load(name, node)


def _count(code: Expressions, length: Any, place: Any) -> int:
    """The length, if it is known; else it is asked for, and 0."""
    known = code.unrolling.length(code.span(place), code.turns)
    target = store(code.temporary())
    turns = [gast.Tuple([constant(each) for each in code.turns], gast.Load())] if code.turns else []
    question = gast.copy_location(call(UNROLLED, length, constant(known), *turns), place)
    code.primitive([target], question, code.span(place))
    _limit(code, known or 0, place)
    return min(known or 0, MOST)


def _varies(node: Any, span: Span) -> Diagnostic:
    return Diagnostic(
        "PCB130",
        "which elements this list has may differ from lane to lane",
        span,
        "a list has one length in all lanes",
        "`sum`, `len`, `any`, `all`, `min` and `max` of it are fine, as `sum(.. for .. in .. if ..)`; else append to a "
        "`pcbatch.bounded(shape, dtype, capacity)` in a loop",
    )


def _limit(code: Expressions, count: int, place: Any) -> None:
    if count > MOST:
        code.report(
            Diagnostic(
                "PCB130",
                f"a comprehension with a batched call over {count} elements",
                code.span(place),
                f"each is written out, up to {MOST}",
                f"write a loop, `for .. in {unparse(place)}:`, that adds to a total or stores into an array",
            )
        )
