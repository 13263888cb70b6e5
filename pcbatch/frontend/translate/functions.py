"""Calls of functions that are defined in a function or handed to it: which version is called, or what stands for it.

A function that is assignments and a `return` stands where it is called, its variables renamed; all others are called.
Where nobody calls it, in `tf.map_fn(g, xs)`, the lambda that it is stands for its name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import gast

from pcbatch.errors import Diagnostic, Span
from pcbatch.frontend.source.nested import bound_in, is_expression, is_straight, renamed
from pcbatch.frontend.source.nodes import assigned_in, load, names_in, unparse, walk
from pcbatch.frontend.source.source import Closure, FunctionSource, Parameter

MOST = 32
"""How many versions of one function there may be: a recursion could hand itself another function each time."""
Key = tuple[FunctionSource, tuple[tuple[str, FunctionSource, tuple[str, ...]], ...]]


class Expressions(Protocol):
    """What is asked of the translation of a function; see `expressions.Expressions`."""

    source: FunctionSource
    standing: tuple[FunctionSource, ...]
    report: Callable[[Diagnostic], None]

    def temporary(self) -> str: ...
    def span(self, node: Any) -> Span: ...
    def assign(self, name: str, value: Any, span: Span) -> None: ...
    def into(self, node: Any, target: str, span: Span | None = None) -> None: ...
    def statement(self, node: Any) -> None: ...


class Versions:
    """The versions of functions for the functions that are handed to them; each is made once."""

    def __init__(self) -> None:
        self._known: dict[Key, FunctionSource] = {}

    def version(self, closure: Closure, functions: Mapping[str, Closure]) -> tuple[FunctionSource, dict[str, str]]:
        """The function to call, and the variables to hand to its parameters beside what the call itself gives."""
        callee = closure.source
        given = {name: closure.given[name] for name in callee.captured if name in closure.given}
        if not functions:
            return callee, given
        fresh = {param: _fresh(param, function, callee) for param, function in functions.items()}
        key = (callee, tuple((p, each.source, tuple(each.given)) for p, each in functions.items()))
        if key not in self._known:
            self._known[key] = _version(callee, functions, fresh)
        for param, function in functions.items():
            given |= {fresh[param][name]: variable for name, variable in function.given.items()}
        return self._known[key], given

    def are_many(self, callee: FunctionSource) -> bool:
        """Whether there are as many versions of a function as there may be."""
        return sum(each.tree is callee.tree for each in self._known.values()) >= MOST


def _fresh(parameter: str, function: Closure, callee: FunctionSource) -> dict[str, str]:
    """Names, in `callee`, for the variables that a function is handed."""
    found: dict[str, str] = {}
    for name in function.given:
        fresh = f"{parameter}_{name}"
        while fresh in callee.names:
            fresh += "_"
        found[name] = fresh
    return found


def _version(
    callee: FunctionSource, functions: Mapping[str, Closure], fresh: Mapping[str, Mapping[str, str]]
) -> FunctionSource:
    more = [name for names in fresh.values() for name in names.values()]
    own = [each for each in callee.parameters if each.name not in functions]
    inside = {param: replace(each, given=dict(fresh[param]), defaults={}) for param, each in functions.items()}
    return replace(
        callee,
        parameters=(*own, *(Parameter(each, "keyword") for each in more)),
        locals=(callee.locals - functions.keys()) | frozenset(more),
        names=callee.names | frozenset(more),
        functions={**callee.functions, **inside},
        captured=callee.captured | frozenset(more),
        root_source=callee.root,
    )


# -- bodies that stand where they are called ---------------------------------------------------------------------------


def stands_here(code: Expressions, closure: Closure) -> bool:
    """Whether the body of a function may stand where it is called: its names mean the same there."""
    callee = closure.source
    if not (callee.is_nested and callee.root is code.source.root and is_straight(callee)):
        return False
    known = code.source.functions
    inside = (name for name in names_in(callee.tree) if name in callee.functions)
    return callee not in code.standing and all(known.get(name) is callee.functions[name] for name in inside)


def stand_here(code: Expressions, closure: Closure, operands: Mapping[str, str], target: str) -> None:
    """Emit the body of a function for these arguments, its value in `target`."""
    callee = closure.source
    *before, last = callee.tree.body
    own = assigned_in(callee.tree.body)
    names = {name: closure.given[name] for name in callee.captured}
    names |= {each: code.temporary() for each in own}
    for parameter, operand in operands.items():
        if parameter in own:
            code.assign(names[parameter], load(operand, last), code.span(last))
        else:
            names[parameter] = operand
    code.standing = (*code.standing, callee)
    for statement in before:
        code.statement(renamed(statement, names))
    code.into(renamed(last.value, names), target)
    code.standing = code.standing[:-1]


def too_many(node: Any, span: Span) -> Diagnostic:
    """That a recursion hands itself another function each time, or that there are very many."""
    name = unparse(node.func)
    return Diagnostic(
        "PCB206",
        f"`{name}` would be translated for more than {MOST} functions",
        span,
        "it is handed another function here",
        f"hand on the function that `{name}` was given; what changes from call to call may be an argument beside it",
    )


# -- functions as values -----------------------------------------------------------------------------------------------


def as_values(code: Expressions, node: Any) -> Any:
    """An expression in which lambdas stand for the names of functions that are not called there."""
    known = code.source.functions
    if not any(isinstance(each, gast.Name) and each.id in known for each in walk(node)):
        return node
    return _Values(code).visit(copy.deepcopy(node))


class _Values(gast.NodeTransformer):  # type: ignore[misc]  # gast has no types
    def __init__(self, code: Expressions):
        self.code = code
        self.hidden: frozenset[str] = frozenset()

    def visit_Name(self, node: Any) -> Any:
        closure = None if node.id in self.hidden else self.code.source.functions.get(node.id)
        if closure is None or not isinstance(node.ctx, gast.Load):
            return node
        if not is_value(closure, self.code.source):
            self.code.report(_no_value(node, closure, self.code))
            return node
        (statement,) = closure.source.tree.body
        arguments = copy.deepcopy(closure.source.tree.args)
        parameters = closure.source.own_parameters
        for kinds, given in ((("positional", "either"), arguments.defaults), (("keyword",), arguments.kw_defaults)):
            kept = iter([renamed(p.default, closure.given) for p in parameters if p.kind in kinds and p.default])
            given[:] = [None if each is None else next(kept) for each in given]
        own = {each.name for each in parameters}
        names = {old: new for old, new in closure.given.items() if old not in own}
        return gast.copy_location(gast.Lambda(arguments, self.visit(renamed(statement.value, names))), node)

    def _inner(self, node: Any) -> Any:
        outer, self.hidden = self.hidden, self.hidden | bound_in(node)
        node = self.generic_visit(node)
        self.hidden = outer
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _inner


def is_value(closure: Closure, source: FunctionSource) -> bool:
    """Whether a lambda may stand for a function: it is one expression, whose names mean the same in `source`."""
    return closure.source.root is source.root and is_expression(closure.source)


def _no_value(node: Any, closure: Closure, code: Expressions) -> Diagnostic:
    return Diagnostic(
        "PCB206",
        f"the function `{node.id}` is used as a value",
        code.span(node),
        "not called here",
        f"call it: `{node.id}(..)`, or hand it to a batched function; what is not batched takes a lambda",
    )
