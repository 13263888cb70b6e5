"""`sum(..)`, `any(..)`, `all(..)`, `min(..)`, `max(..)` of a generator, `len([..])`, as the loops that they are.

    y = sum(f(a) for a in v if a > 0)        t0 = 0
                                             for t1 in v:
                                                 if t1 > 0:
                                                     t0 = t0 + f(t1)
                                             y = t0

So a generator may go over arrays and over ranges that differ by lane, and leave out what a lane says. What can be
traced as it stands stays as it is: this is for what cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast

from pcbatch.frontend.source.iteration import key_of, reduced
from pcbatch.frontend.source.nodes import call, constant, dotted, load, store, target_leaves, walk
from pcbatch.frontend.source.scopes import renamed
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.sequences import ELEMENT, SEQUENCE


def as_loop(code: Expressions, node: Any) -> Any:
    """Emit the loop that the call `node` is; gives what reads its value."""
    name, given = node.func.id, reduced(node, code.is_builtin)
    total = code.temporary()
    more = [*node.args[1:], *(each.value for each in node.keywords if each.arg != "key")]
    if name in ("any", "all"):
        _set(code, total, constant(name == "all"), node)
        # What Python does not look at any more need not be looked at; of a list it looks at all.
        stops = isinstance(given, gast.GeneratorExp)
        _emit(code, given, lambda value: _decided(total, value, name == "any", stops), total, name == "any", stops)
        return load(total, node)
    if name in ("sum", "len"):
        _set(code, total, more[0] if more else constant(0), node)
        counted = code.temporary()

        def added(value: Any) -> list[Any]:
            if name == "sum":
                return [gast.Assign([store(total)], gast.BinOp(load(total), gast.Add(), value), None)]
            one = gast.BinOp(load(total), gast.Add(), constant(1))
            return [gast.Assign([store(counted)], value, None), gast.Assign([store(total)], one, None)]

        _emit(code, given, added)
        return load(total, node)
    return _extreme(code, node, given, total, more)


def _extreme(code: Expressions, node: Any, given: Any, total: str, default: Sequence[Any]) -> Any:
    """`min(..)` and `max(..)`: the first of the smallest, or largest, elements."""
    value, found, key = code.temporary(), code.temporary(), key_of(node)
    compared, best = (value, total) if key is None else (code.temporary(), code.temporary())
    _set(code, total, default[0] if default else _of_such(given), node)
    _set(code, found, constant(False), node)
    if key is not None:
        _set(code, best, _zeros(key.body if isinstance(key, gast.Lambda) else key), node)
    order = gast.Lt() if node.func.id == "min" else gast.Gt()

    def taken(element: Any) -> list[Any]:
        better = gast.Compare(load(compared), [order], [load(best)])
        test = gast.BoolOp(gast.Or(), [gast.UnaryOp(gast.Not(), load(found)), better])
        body = [
            gast.Assign([store(total)], load(value), None),
            gast.Assign([store(found)], constant(True), None),
        ]
        first = [gast.Assign([store(value)], element, None)]
        if key is not None:
            first.append(gast.Assign([store(compared)], _called(key, value), None))
            body.append(gast.Assign([store(best)], load(compared), None))
        return [*first, gast.If(test, body, [])]

    _emit(code, given, taken)
    if not default:
        text = gast.Constant(f"{node.func.id}() iterable argument is empty", None)
        error = gast.Raise(gast.Call(load("ValueError"), [text], []), None)
        code.statement(_placed(gast.If(gast.UnaryOp(gast.Not(), load(found)), [error], []), node))
    return load(total, node)


def _of_such(given: Any) -> Any:
    """Something of the type of the elements of a comprehension, as far as it is known here; nobody reads it."""
    first, *others = given.generators
    match first.target, given.elt:
        case gast.Name(id=target), gast.Name(id=name) if target == name and not others and dotted(first.iter):
            return call(ELEMENT, call(SEQUENCE, first.iter), constant(0))
    return _zeros(given.elt)


def _zeros(node: Any) -> Any:
    """A number, or a bool where `node` is a comparison; a tuple of such where it is a tuple."""
    if isinstance(node, gast.Tuple):
        return gast.Tuple(list(map(_zeros, node.elts)), gast.Load())
    is_bool = isinstance(node, gast.Compare) or (isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not))
    return constant(False if is_bool else 0)


def _called(key: Any, name: str) -> Any:
    """`key` of a variable; the body of a lambda of one parameter."""
    match key:
        case gast.Lambda(args=arguments, body=body) if len(arguments.args) == 1 and not arguments.defaults:
            return renamed(body, {arguments.args[0].id: name})
    return gast.Call(key, [load(name)], [])


def _decided(total: str, value: Any, is_any: bool, stops: bool) -> list[Any]:
    """The statements for one element of `any(..)` or `all(..)`."""
    test = value if is_any else gast.UnaryOp(gast.Not(), value)
    body: list[Any] = [gast.Assign([store(total)], constant(is_any), None)]
    return [gast.If(test, [*body, gast.Break()] if stops else body, [])]


def _emit(
    code: Expressions,
    given: Any,
    inside: Callable[[Any], list[Any]],
    total: str = "",
    is_any: bool = False,
    stops: bool = False,
) -> None:
    """Emit the loops of a comprehension, with the statements `inside` for an element; what stops one stops all."""
    names: dict[str, str] = {}
    loops: list[tuple[Any, Any, list[Any]]] = []
    for generator in given.generators:
        iterable = renamed(generator.iter, names)
        names |= {leaf.id: code.temporary() for leaf in target_leaves(generator.target)}
        loops.append((renamed(generator.target, names), iterable, [renamed(test, names) for test in generator.ifs]))
    body = inside(renamed(given.elt, names))
    for at, (target, iterable, tests) in enumerate(reversed(loops)):
        if at and stops:
            decided = load(total) if is_any else gast.UnaryOp(gast.Not(), load(total))
            body = [*body, gast.If(decided, [gast.Break()], [])]
        for test in reversed(tests):
            body = [gast.If(test, body, [])]
        loop = gast.For(target, iterable, body, [], None)
        loop.of_comprehension = True
        body = [loop]
    code.statement(_placed(body[0], given))


def _set(code: Expressions, name: str, value: Any, node: Any) -> None:
    code.into(_placed(value, node), name, code.span(node))


def _placed(node: Any, place: Any) -> Any:
    """`node`, what has no place in it standing where `place` does."""
    for each in walk(node):
        if isinstance(each, gast.expr | gast.stmt) and not hasattr(each, "lineno"):
            gast.copy_location(each, place)
    return node
