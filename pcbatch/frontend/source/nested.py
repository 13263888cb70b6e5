"""Functions inside functions: a `def` or a lambda becomes a function of its own, handed what it reads around it.

    def f(m, e):                         def f(m, e):
        def g(t):                            return bisect_g(m, e, 0.0, 3.0)
            return t - e * tf.sin(t) - m
        return bisect(g, 0.0, 3.0)       def f_g(t, e, m): ..
                                         def bisect_g(h_e, h_m, lo, hi): ..  `h(x)` is `f_g(x, h_e, h_m)`

(Lambda lifting: Johnsson, "Lambda Lifting", FPCA 1985.) A function is no value of a lane: which one a name means is
known at every place, and functions that take one are translated once for each. What is read around a function is handed
over when it is called, as Python looks it up then.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gast

from pcbatch.errors import Diagnostic
from pcbatch.frontend.source.changes import takes
from pcbatch.frontend.source.nodes import (
    INNER_SCOPES,
    assigned_in,
    evaluated_around,
    load,
    names_in,
    span_of,
    walk,
    walk_scope,
)
from pcbatch.frontend.source.scopes import bound_in, inside_of, parameters
from pcbatch.frontend.source.source import Closure, FunctionSource, Parameter, parameters_of

DEFINITIONS = (gast.FunctionDef, gast.Lambda)


def definition(statement: Any) -> tuple[str, Any] | None:
    """The name and the function of `def g(..): ..` and of `g = lambda ..: ..`."""
    match statement:
        case gast.FunctionDef(name=name):
            return name, statement
        case gast.Assign(targets=[gast.Name(id=name)], value=gast.Lambda() as function):
            return name, function
    return None


def with_nested(source: FunctionSource) -> tuple[FunctionSource, list[Diagnostic]]:
    """`source` with the functions that are defined in it among its `functions`, and what is wrong with these."""
    found = {name: (function, rest) for name, function, rest in _definitions(source.tree.body)}
    if not found:
        return source, []
    counts = Counter(each.id for node in source.tree.body for each in walk_scope(node) if _is_stored(each))
    counts.update(name for name, _, _ in _definitions(source.tree.body))
    counts.update(parameter.name for parameter in source.parameters)
    faults: list[Diagnostic] = []
    kept: dict[str, Any] = {}
    for name, (function, _) in found.items():
        is_lambda = isinstance(function, gast.Lambda)
        if counts[name] - is_lambda > 1:  # the assignment of a lambda counts twice
            faults += [] if is_lambda else [_several(name, function, source)]
        elif not _is_before_all_uses(name, found, source):
            faults += [] if is_lambda else [_late(name, function, source)]
        else:
            kept[name] = function
    return _defining(source, kept), faults


def of_lambda(source: FunctionSource, node: Any) -> Closure:
    """The function that a lambda in an expression of `source` is."""
    return _defining(source, {"lambda": node}).functions["lambda"]


def own_names(node: Any) -> frozenset[str]:
    """The variables of a function that is defined by `def`."""
    return frozenset(each.name for each in parameters_of(node.args)) | assigned_in(node.body)


def is_straight(source: FunctionSource) -> bool:
    """Whether a function is assignments of names and then one `return`, so that it may stand where it is called.

    It changes no objects, which have to be variables of its own.
    """
    *before, last = source.tree.body
    is_one = isinstance(last, gast.Return) and last.value is not None and all(map(_is_plain, before))
    return is_one and not any(takes(each) for each in walk(source.tree))


def is_expression(source: FunctionSource) -> bool:
    """Whether a function is nothing but one `return`."""
    return len(source.tree.body) == 1 and is_straight(source)


def _is_plain(node: Any) -> bool:
    match node:
        case gast.Expr(value=gast.Constant()) | gast.Pass():
            return True
        case gast.Assign(value=value):
            return definition(node) is None and not any(isinstance(t, gast.Subscript) for t in _targets(node)) and value
        case gast.AugAssign(target=gast.Name()) | gast.AnnAssign(target=gast.Name(), value=gast.AST()):
            return True
    return False


def _targets(node: Any) -> Iterator[Any]:
    return (each for target in node.targets for each in gast.walk(target))


# -- finding definitions -----------------------------------------------------------------------------------------------


def _definitions(statements: Sequence[Any]) -> Iterator[tuple[str, Any, Sequence[Any]]]:
    """The functions that statements define, each with the statements behind it in its block."""
    for place, statement in enumerate(statements):
        found = definition(statement)
        if found is not None:
            yield (*found, statements[place + 1 :])
        elif not isinstance(statement, gast.ClassDef):
            for _, value in gast.iter_fields(statement):
                if isinstance(value, list) and value and isinstance(value[0], gast.stmt):
                    yield from _definitions(value)


def _is_stored(node: Any) -> bool:
    return isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store)


def _is_before_all_uses(name: str, found: Mapping[str, tuple[Any, Sequence[Any]]], source: FunctionSource) -> bool:
    """Whether a function is used behind its definition only, in the same block or in blocks inside that.

    A function in which it is read before may be defined there, if it is used behind the definition only, in turn.
    """
    function, rest = found[name]
    inside = {id(each) for node in (*rest, function) for each in walk(node)}
    holders = {each: {id(node) for node in walk(found[each][0])} for each in found}
    every = [each for node in source.tree.body for each in walk(node) if isinstance(each, gast.Name) and _reads(each)]
    work, known = [name], {name}
    while work:
        used = work.pop()
        for each in every:
            if each.id != used or id(each) in inside or id(each) in holders[used]:
                continue
            around = [other for other, held in holders.items() if id(each) in held]
            if not around:
                return False
            work += [other for other in around if other not in known]
            known.update(around)
    return True


def _reads(node: Any) -> bool:
    return isinstance(node.ctx, gast.Load)


def _several(name: str, function: Any, source: FunctionSource) -> Diagnostic:
    return Diagnostic(
        "PCB102",
        f"`{name}` is a function here, and assigned elsewhere in `{source.name}`, too",
        span_of(function, source.file),
        "which of these is called must be known when it is compiled",
        "give each its own name, and choose where they are called: `y = f(x) if .. else g(x)`",
    )


def _late(name: str, function: Any, source: FunctionSource) -> Diagnostic:
    return Diagnostic(
        "PCB102",
        f"`{name}` is used where it may not have been defined",
        span_of(function, source.file),
        "defined here, behind a use of it, or on one path only",
        "define it at the beginning of the function, before the branch or the loop",
    )


# -- making functions of them ------------------------------------------------------------------------------------------


def _defining(source: FunctionSource, nodes: Mapping[str, Any]) -> FunctionSource:
    """`source` with functions of these names."""
    functions: dict[str, Closure] = dict(source.functions)
    locals_ = source.locals - nodes.keys()
    free = {name: free_names(node) for name, node in nodes.items()}
    defaults = {name: _defaults(name, node, source) for name, node in nodes.items()}
    own = {name: free[name] & locals_ | _of_others(free[name], source.functions) for name in nodes}
    captured = own
    while True:  # what a function calls is handed what it captures by it
        called = {name: [each for each in nodes if each in free[name]] for name in nodes}
        more = {
            name: own[name].union(*(captured[each] | defaults[each].keys() for each in called[name])) for name in nodes
        }
        if more == captured:
            break
        captured = more
    for name, node in nodes.items():
        functions[name] = _closure(source, name, node, captured[name], defaults[name], functions)
    return replace(source, locals=locals_, functions=functions, root_source=source.root)


def _of_others(free: frozenset[str], known: Mapping[str, Closure]) -> frozenset[str]:
    """The variables that are handed to functions known already."""
    return frozenset(variable for name in free if name in known for variable in known[name].given.values())


def _defaults(name: str, node: Any, source: FunctionSource) -> dict[str, Any]:
    """The defaults that are no literals, by the variables that keep them: they are evaluated at the definition."""
    found: dict[str, Any] = {}
    for parameter in parameters_of(node.args):
        if parameter.default is not None and not isinstance(parameter.default, gast.Constant):
            names = map(f"{name}_{parameter.name}_{{}}".format, itertools.count())
            found[next(each for each in names if each not in source.names)] = parameter.default
    return found


def _closure(
    source: FunctionSource,
    name: str,
    node: Any,
    captured: frozenset[str],
    defaults: Mapping[str, Any],
    functions: Mapping[str, Closure],
) -> Closure:
    tree = node if isinstance(node, gast.FunctionDef) else _as_definition(node)
    kept = {id(value): load(variable, value) for variable, value in defaults.items()}
    own = [replace(each, default=kept.get(id(each.default), each.default)) for each in parameters_of(tree.args)]
    locals_ = own_names(tree)
    inside = _names_inside(captured, locals_, names_in(tree) | captured | source.names)
    inner = replace(
        source,
        name=f"{source.name}_{name}",
        qualname=f"{source.qualname}.<locals>.{name}",
        tree=tree,
        parameters=(*own, *(Parameter(inside[each], "keyword") for each in sorted(captured))),
        span=span_of(node, source.file),
        locals=locals_ | {*inside.values()},
        names=names_in(tree) | {*inside.values()} | captured | source.names,
        functions=_Visible(functions, locals_, inside),
        captured=frozenset(inside.values()),
        root_source=source.root,
        is_nested=True,
        cost=None,
    )
    given = {inside[each]: each for each in sorted(captured)}
    return Closure(inner, given | {each: each for each in defaults}, defaults)


def _names_inside(captured: frozenset[str], own: frozenset[str], taken: frozenset[str]) -> dict[str, str]:
    """What variables of around are called inside: other names where they are for functions that are called there only.

    For the function itself such a name is a variable of its own.
    """
    inside: dict[str, str] = {}
    for name in sorted(captured):
        fresh = name
        while name in own and (fresh in taken or fresh in inside.values()):
            fresh += "_"
        inside[name] = fresh
    return inside


class _Visible(Mapping[str, Closure]):
    """The functions that are known inside another one: those known around it, whose names it does not use itself.

    `inside` has what the variables that these are handed are called there.
    """

    def __init__(self, around: Mapping[str, Closure], own: Collection[str], inside: Mapping[str, str]):
        self._around, self._own, self._inside = around, own, inside

    def __getitem__(self, name: str) -> Closure:
        if name in self._own:
            raise KeyError(name)
        found = self._around[name]
        return replace(found, given={each: self._inside.get(of, of) for each, of in found.given.items()})

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._around if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _as_definition(node: Any) -> Any:
    body = gast.copy_location(gast.Return(node.body), node.body)
    tree = gast.FunctionDef("lambda", node.args, [body], [], None, None, [])
    return gast.copy_location(tree, node)


def free_names(function: Any) -> frozenset[str]:
    """The names that a function reads from around it when it is called."""
    own = frozenset(each.id for each in parameters(function.args))
    body = function.body if isinstance(function.body, list) else [function.body]
    own |= assigned_in(body) if isinstance(function, gast.FunctionDef) else frozenset()
    return frozenset(name for node in body for name in _read(node, own))


def _read(node: Any, hidden: frozenset[str]) -> Iterator[str]:
    """The names that are read in `node`, `hidden` ones apart."""
    if isinstance(node, gast.Name):
        if node.id not in hidden and _reads(node):
            yield node.id
        return
    around, inside, own = list(gast.iter_child_nodes(node)), list[Any](), hidden
    if isinstance(node, gast.FunctionDef):
        yield from free_names(node) - hidden
        around = evaluated_around(node)
    elif isinstance(node, INNER_SCOPES):
        around, inside, own = evaluated_around(node), inside_of(node), hidden | bound_in(node)
    for each in around:
        yield from _read(each, hidden)
    for each in inside:
        yield from _read(each, own)
