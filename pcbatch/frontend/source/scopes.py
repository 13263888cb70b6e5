"""Scopes inside expressions: lambdas and comprehensions, what they bind, and copies in which names are others.

Not all that stands in such a scope is of it: a lambda's defaults and what a comprehension goes over first are evaluated
around it, where its own variables are not known.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

import gast

from pcbatch.frontend.source.nodes import INNER_SCOPES, names_in, walk


def bound_in(scope: Any) -> frozenset[str]:
    """The names that an inner scope binds for itself."""
    if isinstance(scope, gast.Lambda):
        return frozenset(each.id for each in parameters(scope.args))
    targets = (each for generator in scope.generators for each in gast.walk(generator.target))
    return frozenset(each.id for each in targets if isinstance(each, gast.Name))


def parameters(arguments: Any) -> list[Any]:
    """The Name nodes of all parameters of a definition."""
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [each for each in every if each is not None]


def bound_inside(node: Any) -> frozenset[str]:
    """The names that any of the scopes in `node` binds."""
    return frozenset(name for each in walk(node) if isinstance(each, INNER_SCOPES) for name in bound_in(each))


def inside_of(scope: Any) -> list[Any]:
    """What of an inner scope is evaluated in it."""
    if isinstance(scope, gast.Lambda):
        return [scope.body]
    first, *others = scope.generators
    results = [getattr(scope, name) for name in ("key", "value", "elt") if hasattr(scope, name)]
    return [first.target, *first.ifs, *others, *results]


class Scoped(gast.NodeTransformer, ABC):  # type: ignore[misc]  # gast has no types
    """Changes a tree in place; `inside` is asked to change what is evaluated in an inner scope."""

    @abstractmethod
    def inside(self, scope: Any) -> None:
        """Change an inner scope, of which what is evaluated around it has been taken away."""

    def _lambda(self, node: Any) -> Any:
        arguments = node.args
        defaults = [self.visit(each) for each in arguments.defaults]
        by_keyword = [each and self.visit(each) for each in arguments.kw_defaults]
        arguments.defaults, arguments.kw_defaults = [], []
        self.inside(node)
        arguments.defaults, arguments.kw_defaults = defaults, by_keyword
        return node

    def _comprehension(self, node: Any) -> Any:
        first = node.generators[0]
        around = self.visit(first.iter)
        first.iter = gast.Constant(None, None)
        self.inside(node)
        first.iter = around
        return node

    visit_Lambda = _lambda
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A copy of a statement or an expression in which variables go by other names, those of inner scopes apart.

    No scope in `node` may bind a name that one of its variables is to go by (`bound_inside` has them).
    """
    return _Renamer(names).visit(copy.deepcopy(node))


class _Renamer(Scoped):
    def __init__(self, names: Mapping[str, str]):
        self.names = names

    def visit_Name(self, node: Any) -> Any:
        node.id = self.names.get(node.id, node.id)
        return node

    def inside(self, scope: Any) -> None:
        hidden = bound_in(scope)
        outer, self.names = self.names, {old: new for old, new in self.names.items() if old not in hidden}
        read = frozenset().union(*map(names_in, inside_of(scope)))
        caught = hidden & {new for old, new in self.names.items() if new != old and old in read}
        if caught:
            raise AssertionError(f"in {gast.unparse(scope)!r} {sorted(caught)} would mean something else")
        self.generic_visit(scope)
        self.names = outer


def make_room(scope: Any, arriving: Collection[str]) -> None:
    """Give variables of an inner scope other names where they have those of what is `arriving`, to be read there."""
    clashes = sorted(bound_in(scope) & {*arriving})
    taken = {*arriving, *names_in(scope)}
    own: dict[str, str] = {}
    for name in clashes:
        fresh = name
        while fresh in taken:
            fresh += "_"
        own[name] = fresh
        taken.add(fresh)
    renamer = _Renamer(own)
    for part in [*inside_of(scope), *(parameters(scope.args) if isinstance(scope, gast.Lambda) else [])]:
        renamer.visit(part)
