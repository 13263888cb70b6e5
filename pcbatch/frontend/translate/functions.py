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
from pcbatch.frontend.source.nested import free_names, is_expression, is_straight
from pcbatch.frontend.source.nodes import assigned_in, constant, load, names_in, unparse, walk
from pcbatch.frontend.source.scopes import Scoped, bound_in, bound_inside, make_room, renamed
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
    """Names, in `callee`, for the variables that a function is handed; such that the function has none of them."""
    found: dict[str, str] = {}
    for name in function.given:
        fresh = f"{parameter}_{name}"
        while fresh in callee.names or fresh in function.source.names:
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
    can_stand = callee.is_nested and is_straight(callee) and callee not in code.standing
    return can_stand and _means_the_same(closure, code.source)


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
    for name in sorted(_caught(callee, names)):
        held = code.temporary()
        code.assign(held, load(names[name], last), code.span(last))
        names[name] = held
    code.standing = (*code.standing, callee)
    for statement in before:
        code.statement(renamed(statement, names))
    code.into(renamed(last.value, names), target)
    code.standing = code.standing[:-1]


def _caught(callee: FunctionSource, names: Mapping[str, str]) -> frozenset[str]:
    """Those of the `names` of a function's variables that would go by a name of a scope inside the function."""
    inside = bound_inside(callee.tree)
    return frozenset(name for name, new in names.items() if new != name and new in inside)


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


class _Values(Scoped):
    def __init__(self, code: Expressions):
        self.code = code
        self.hidden: frozenset[str] = frozenset()
        self.standing: tuple[FunctionSource, ...] = ()

    def visit_Name(self, node: Any) -> Any:
        closure = None if node.id in self.hidden else self.code.source.functions.get(node.id)
        if closure is None or not isinstance(node.ctx, gast.Load):
            return node
        if closure.source in self.standing:
            self.code.report(_calls_itself(node, self.code))
            return gast.copy_location(constant(0), node)
        if not is_value(closure, self.code.source):
            self.code.report(_no_value(node, closure, self.code))
            return gast.copy_location(constant(0), node)
        (statement,) = closure.source.tree.body
        arguments = copy.deepcopy(closure.source.tree.args)
        parameters = closure.source.own_parameters
        for kinds, given in ((("positional", "either"), arguments.defaults), (("keyword",), arguments.kw_defaults)):
            kept = iter([renamed(p.default, closure.given) for p in parameters if p.kind in kinds and p.default])
            given[:] = [None if each is None else next(kept) for each in given]
        own = {each.name for each in parameters}
        names = {old: new for old, new in closure.given.items() if old not in own}
        standing = gast.Lambda(arguments, renamed(statement.value, names))
        self.standing = (*self.standing, closure.source)
        self.inside(standing)
        self.standing = self.standing[:-1]
        return gast.copy_location(standing, node)

    def inside(self, scope: Any) -> None:
        make_room(scope, self._read_in(names_in(scope) - self.hidden - bound_in(scope)))
        outer, self.hidden = self.hidden, self.hidden | bound_in(scope)
        self.generic_visit(scope)
        self.hidden = outer

    def _read_in(self, names: frozenset[str]) -> frozenset[str]:
        """What is read in the lambdas that stand for those of the `names` that are functions."""
        found: set[str] = set()
        work, seen = [*names], {*names}
        while work:
            closure = self.code.source.functions.get(work.pop())
            if closure is not None:
                read = {closure.given.get(name, name) for name in free_names(closure.source.tree)}
                found |= read
                work += read - seen
                seen |= read
        return frozenset(found)


def is_value(closure: Closure, source: FunctionSource) -> bool:
    """Whether a lambda may stand for a function: it is one expression, whose names mean the same in `source`."""
    return is_expression(closure.source) and _means_the_same(closure, source)


def _means_the_same(closure: Closure, source: FunctionSource) -> bool:
    """Whether what a function reads but is not handed, and the functions that it calls, are the same in `source`."""
    callee = closure.source
    if callee.root is not source.root or _hidden(callee, source):
        return False
    for name in free_names(callee.tree) & callee.functions.keys():
        there, here = callee.functions[name], source.functions.get(name)
        given = {each: closure.given.get(of, of) for each, of in there.given.items()}
        if here is None or here.source is not there.source or here.given != given:
            return False
    return True


def _hidden(callee: FunctionSource, source: FunctionSource) -> frozenset[str]:
    """What a function reads that it is not handed, and what is a variable of its own in `source`."""
    return source.locals & (free_names(callee.tree) - callee.captured)


def _calls_itself(node: Any, code: Expressions) -> Diagnostic:
    return Diagnostic(
        "PCB206",
        f"the function `{node.id}` calls itself, and is used in a comprehension, in a lambda or as a value",
        code.span(node),
        "called here, by itself",
        f"call it in a statement, where its value is needed: `y = {node.id}(..)`",
    )


def _no_value(node: Any, closure: Closure, code: Expressions) -> Diagnostic:
    hidden, here = sorted(_hidden(closure.source, code.source)), code.source.qualname.rpartition(".")[2]
    if is_expression(closure.source) and hidden:
        return Diagnostic(
            "PCB206",
            f"the function `{node.id}` reads `{hidden[0]}` from around, of which `{here}` has its own",
            code.span(node),
            "used in a comprehension, in a lambda or as a value",
            f"give the variable of `{here}` another name",
        )
    return Diagnostic(
        "PCB206",
        f"the function `{node.id}` is used as a value",
        code.span(node),
        "not called here",
        f"call it: `{node.id}(..)`, or hand it to a batched function; what is not batched takes a lambda",
    )
