"""Python text inside the IR: which names a statement reads and assigns, and renaming them, scopes respected."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache


@lru_cache(maxsize=4096)
def names(code: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`(loaded, stored)`: names that `code` reads from and assigns in its own scope, each in order of first appearance.

    Parameters of lambdas and targets of comprehensions belong to inner scopes and are left out; so are loads of what
    the code itself has bound before (`tape` in the body of `with GradientTape() as tape:`).
    """
    visitor = _Names()
    visitor.visit(ast.parse(code))
    return tuple(dict.fromkeys(visitor.loaded)), tuple(dict.fromkeys(visitor.stored))


@lru_cache(maxsize=4096)
def _rename(code: str, mapping: tuple[tuple[str, str], ...]) -> str:
    return ast.unparse(_Renamer(dict(mapping), dict(mapping)).visit(ast.parse(code)))


def rename(code: str, mapping: Mapping[str, str]) -> str:
    """`code` with the names of its own scope renamed by `mapping`."""
    return _rename(code, tuple(sorted(mapping.items())))


@lru_cache(maxsize=4096)
def _rename_apart(code: str, loads: tuple[tuple[str, str], ...], stores: tuple[tuple[str, str], ...]) -> str:
    return ast.unparse(_Renamer(dict(loads), dict(stores)).visit(ast.parse(code)))


def rename_apart(code: str, loads: Mapping[str, str], stores: Mapping[str, str]) -> str:
    """`code` with the names that it reads renamed by `loads` and those that it assigns by `stores`."""
    return _rename_apart(code, tuple(sorted(loads.items())), tuple(sorted(stores.items())))


class Scoped(ast.NodeTransformer):
    """Visits every Name with the set of names that inner scopes (lambdas, comprehensions) bind around it."""

    def __init__(self) -> None:
        self.bound: tuple[frozenset[str], ...] = ()

    def hidden(self, name: str) -> bool:
        return any(name in scope for scope in self.bound)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        arguments = node.args
        arguments.defaults = [self.visit(d) for d in arguments.defaults]
        arguments.kw_defaults = [d and self.visit(d) for d in arguments.kw_defaults]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        self.bound += (frozenset(a.arg for a in every if a is not None),)
        node.body = self.visit(node.body)
        self.bound = self.bound[:-1]
        return node

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.AST:
        node.generators[0].iter = self.visit(node.generators[0].iter)  # the first iterable belongs to the outer scope
        targets = (n for g in node.generators for n in ast.walk(g.target))
        self.bound += (frozenset(n.id for n in targets if isinstance(n, ast.Name)),)
        for index, generator in enumerate(node.generators):
            if index:
                generator.iter = self.visit(generator.iter)
            generator.ifs = [self.visit(test) for test in generator.ifs]
        for part in ("key", "value", "elt"):
            if hasattr(node, part):
                setattr(node, part, self.visit(getattr(node, part)))
        self.bound = self.bound[:-1]
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


class _Names(Scoped):
    """Collects names in the order in which Python evaluates: values before targets.

    `settled` holds what the statement itself has surely bound so far (`tape` inside `with .. as tape:`): loading such a
    name is no read of an outer value.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.stored: list[str] = []
        self.settled: frozenset[str] = frozenset()

    def _value_first(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> ast.AST:
        if node.value is not None:
            self.visit(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.visit(target)
        return node

    visit_Assign = visit_AnnAssign = visit_NamedExpr = _value_first

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if isinstance(node.target, ast.Name):
            self.visit(ast.Name(node.target.id, ast.Load()))
        self.visit(node.value)
        self.visit(node.target)
        return node

    def _maybe(self, *chains: list[ast.expr]) -> None:
        """Visit operands that may not be evaluated: what one binds is settled only for those after it in its chain."""
        before = self.settled
        for chain in chains:
            self.settled = before
            for operand in chain:
                self.visit(operand)
        self.settled = before

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.visit(node.values[0])
        self._maybe(node.values[1:])
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.visit(node.left)
        self.visit(node.comparators[0])
        self._maybe(node.comparators[1:])
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.visit(node.test)
        self._maybe([node.body], [node.orelse])
        return node

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.AST:
        before = self.settled
        super()._comprehension(node)
        self.settled = before  # there may be no element
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self.hidden(node.id):
            return node
        if not isinstance(node.ctx, ast.Load):
            self.stored.append(node.id)
            self.settled |= {node.id}
        elif node.id not in self.settled:
            self.loaded.append(node.id)
        return node


class _Renamer(Scoped):
    def __init__(self, loads: dict[str, str], stores: dict[str, str]):
        super().__init__()
        self.loads, self.stores = loads, stores

    def visit_Name(self, node: ast.Name) -> ast.AST:
        mapping = self.loads if isinstance(node.ctx, ast.Load) else self.stores
        if not self.hidden(node.id) and node.id in mapping:
            return ast.copy_location(ast.Name(mapping[node.id], node.ctx), node)
        return node
