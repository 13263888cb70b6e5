"""Python text inside the IR: `Code` is one statement, parsed and scope-analysed once, and the only thing that renames.

Python's rules of scope are here and nowhere else: lambdas and comprehensions have variables of their own, what a
statement has bound itself it reads no more from outside, and lambdas and generators read later than they are made.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pcbatch.syntax import parse

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Role = Literal["outer", "own", "either", "store", "inner"]
"""What a name in a statement is: read from outside, read after the statement bound it, perhaps one and perhaps the
other (behind an assignment that a conditional operand may leave out), assigned, or a variable of an inner scope."""


class CaptureError(ValueError):
    """A renaming would make a name mean something else: a bug of a pass."""


@dataclass(frozen=True)
class Code:
    """One statement, as `ast.unparse` prints it; equal if the text is. SyntaxError where it is asked and no Python.

    The trees that it gives out belong to all who ask: nobody changes them.
    """

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def body(self) -> list[ast.stmt]:
        """The statements of the text: one, unless the program is wrong."""
        return _analysis(self.text).body

    @property
    def reads(self) -> tuple[str, ...]:
        """The names that it reads from outside, in the order of first appearance in evaluation."""
        return _analysis(self.text).reads

    @property
    def writes(self) -> tuple[str, ...]:
        """The names that it assigns in its own scope, in that order."""
        return _analysis(self.text).writes

    @property
    def late(self) -> frozenset[str]:
        """The names of its own scope that its lambdas and generators read, when they run: perhaps after it."""
        return _analysis(self.text).late

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters of its lambdas, by which these may be called."""
        return _analysis(self.text).parameters

    @property
    def words(self) -> frozenset[str]:
        """Every name in it, of whatever scope."""
        return _analysis(self.text).words

    @property
    def is_separable(self) -> bool:
        """Whether what it reads and what it assigns under one name can be told apart, and so be renamed apart."""
        return _analysis(self.text).is_separable

    @property
    def assignment(self) -> tuple[ast.expr, ast.expr] | None:
        """Target and value if it is `target = value`."""
        match self.body:
            case [ast.Assign(targets=[target], value=value)]:
                return target, value
        return None

    @property
    def value(self) -> ast.expr | None:
        """The right side if it is `name = value`."""
        match self.assignment:
            case (ast.Name(), value):
                return value
        return None

    def renamed(self, reads: Mapping[str, str], writes: Mapping[str, str] | None = None) -> Code:
        """The statement with what it reads from outside renamed by `reads` and what it assigns by `writes`.

        Without `writes` a name is renamed wherever it stands, by `reads`. A variable of an inner scope that has the
        new name of something that is read there gets another name. CaptureError where a name that is read would mean
        what the statement assigns.
        """
        stores = reads if writes is None else writes
        return _renamed(self.text, _items(self, reads), _items(self, stores))


def assign(target: str, value: ast.expr) -> Code:
    """`target = value`."""
    return Code(f"{target} = {ast.unparse(value)}")


def _items(code: Code, mapping: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, mapping[name]) for name in sorted(code.words) if mapping.get(name, name) != name)


# -- analysis ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Analysis:
    """What `Code` says about a text."""

    body: list[ast.stmt]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    late: frozenset[str]
    parameters: frozenset[str]
    words: frozenset[str]
    is_separable: bool


@lru_cache(maxsize=16384)
def _analysis(text: str) -> _Analysis:
    tree = parse(text)
    found: list[tuple[str, Role, bool]] = []
    walk = _Walk(lambda node, role, late: found.append((node.id, role, late)))
    walk.visit(tree)
    every = list(ast.walk(tree))
    roles = {role for _, role, _ in found}
    return _Analysis(
        tree.body,
        tuple(dict.fromkeys(name for name, role, _ in found if role in ("outer", "either"))),
        tuple(dict.fromkeys(name for name, role, _ in found if role == "store")),
        frozenset(name for name, role, late in found if late and role != "inner"),
        frozenset(each.arg for each in every if isinstance(each, ast.arg)),
        frozenset(each.id for each in every if isinstance(each, ast.Name))
        | frozenset(each.arg for each in every if isinstance(each, ast.arg)),
        "either" not in roles and not any(isinstance(each, ast.AugAssign) for each in every),
    )


Found = Callable[[ast.Name, Role, bool], None]
"""Told of a name: its node, what it is, and whether it is read when a lambda or a generator runs."""


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
        self.bound += (bound_in(node),)
        node.body = self.visit(node.body)
        self.bound = self.bound[:-1]
        return node

    def visit_iterable(self, node: ast.expr) -> ast.expr:
        """Visit what a comprehension goes over."""
        return self.visit(node)

    def _comprehension(self, node: Comprehension) -> ast.AST:
        first = node.generators[0]
        first.iter = self.visit_iterable(first.iter)  # it belongs to the outer scope
        self.bound += (bound_in(node),)
        for generator in node.generators:
            if generator is not first:
                generator.iter = self.visit_iterable(generator.iter)
            generator.target = self.visit(generator.target)
            generator.ifs = [self.visit(test) for test in generator.ifs]
        for part in ("key", "value", "elt"):
            if hasattr(node, part):
                setattr(node, part, self.visit(getattr(node, part)))
        self.bound = self.bound[:-1]
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def bound_in(scope: ast.Lambda | Comprehension) -> frozenset[str]:
    """The variables of an inner scope: parameters of a lambda, targets of a comprehension."""
    if isinstance(scope, ast.Lambda):
        return frozenset(argument.arg for argument in _parameters(scope))
    targets = (node for generator in scope.generators for node in ast.walk(generator.target))
    return frozenset(node.id for node in targets if isinstance(node, ast.Name))


def _parameters(scope: ast.Lambda) -> list[ast.arg]:
    arguments = scope.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [argument for argument in every if argument is not None]


class _Walk(Scoped):
    """Tells `found` of every name, in the order in which Python evaluates: values before targets.

    `settled` holds what the statement itself has surely bound so far, `perhaps` what it may have bound.
    """

    def __init__(self, found: Found):
        super().__init__()
        self.found = found
        self.settled: frozenset[str] = frozenset()
        self.perhaps: frozenset[str] = frozenset()
        self.late = 0

    def _value_first(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> ast.AST:
        if node.value is not None:
            self.visit(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.visit(target)
        return node

    visit_Assign = visit_AnnAssign = visit_NamedExpr = _value_first

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if isinstance(node.target, ast.Name):
            self._read(node.target)
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

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        before = self.settled
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self.late += 1
        self.bound += (bound_in(node),)
        self.visit(node.body)
        self.bound = self.bound[:-1]
        self.late -= 1
        self.settled = before
        return node

    def _comprehension(self, node: Comprehension) -> ast.AST:
        self.visit(node.generators[0].iter)
        before = self.settled
        self.late += isinstance(node, ast.GeneratorExp)
        self.bound += (bound_in(node),)
        for index, generator in enumerate(node.generators):
            for part in [*([generator.iter] if index else []), generator.target, *generator.ifs]:
                self.visit(part)
        for part in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
            self.visit(part)
        self.bound = self.bound[:-1]
        self.late -= isinstance(node, ast.GeneratorExp)
        self.settled = before  # there may be no element
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self.hidden(node.id):
            self.found(node, "inner", self.late > 0)
        elif isinstance(node.ctx, ast.Load):
            self._read(node)
        else:
            self.settled |= {node.id}
            self.perhaps |= {node.id}
            self.found(node, "store", self.late > 0)
        return node

    def _read(self, node: ast.Name) -> None:
        role: Role = "own" if node.id in self.settled else "either" if node.id in self.perhaps else "outer"
        self.found(node, role, self.late > 0)


# -- renaming ----------------------------------------------------------------------------------------------------------

_Pairs = tuple[tuple[str, str], ...]


@lru_cache(maxsize=16384)
def _renamed(text: str, reads: _Pairs, writes: _Pairs) -> Code:
    if not reads and not writes:
        return Code(text)
    tree = parse(text)
    _make_room(tree, dict(reads), dict(writes))
    loads, stores = dict(reads), dict(writes)

    def rename(node: ast.Name, role: Role, late: bool) -> None:
        outer, own = loads.get(node.id, node.id), stores.get(node.id, node.id)
        if role == "either" and outer != own:
            raise CaptureError(f"{node.id} in {text!r} may be {outer} or {own}")
        changes.append((node, {"inner": node.id, "outer": outer, "either": own}.get(role, own)))

    changes: list[tuple[ast.Name, str]] = []
    _Walk(rename).visit(tree)
    for node, name in changes:  # an augmented assignment is told of twice
        node.id = name
    after = Code(ast.unparse(tree))
    given = {loads.get(name, name) for name in Code(text).reads}
    if set(after.reads) != given:
        raise CaptureError(f"{text!r} renamed is {after.text!r}: it reads {after.reads}")
    return after


def _make_room(tree: ast.AST, reads: Mapping[str, str], writes: Mapping[str, str]) -> None:
    """Give variables of inner scopes other names where they hide what names that are read there are renamed to."""
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {*reads.values(), *writes.values()}
    for scope in [node for node in ast.walk(tree) if isinstance(node, ast.Lambda | Comprehension)]:
        inside = {node.id for node in ast.walk(scope) if isinstance(node, ast.Name)} - bound_in(scope)
        arriving = {new[name] for new in (reads, writes) for name in inside if name in new}
        for name in sorted(bound_in(scope) & arriving):
            own = f"{name}_"
            while own in taken:
                own += "_"
            taken.add(own)
            _InnerRenamer(scope, name, own).visit(scope)


class _InnerRenamer(Scoped):
    """Renames a variable of one inner scope; scopes inside it that bind the same name have one of their own.

    So have scopes in what the scope itself does not see: a lambda's defaults, what a comprehension goes over first.
    """

    def __init__(self, scope: ast.Lambda | Comprehension, old: str, new: str):
        super().__init__()
        self.scope, self.old, self.new = scope, old, new

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        if node is not self.scope:
            return super().visit_Lambda(node)
        outside = node.args.defaults, node.args.kw_defaults
        node.args.defaults, node.args.kw_defaults = [], []
        super().visit_Lambda(node)
        node.args.defaults, node.args.kw_defaults = outside
        for argument in _parameters(node):
            argument.arg = self.new if argument.arg == self.old else argument.arg
        return node

    def visit_iterable(self, node: ast.expr) -> ast.expr:
        outside = None if isinstance(self.scope, ast.Lambda) else self.scope.generators[0].iter
        return node if node is outside else super().visit_iterable(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == self.old and sum(self.old in scope for scope in self.bound) == 1:
            return ast.copy_location(ast.Name(self.new, node.ctx), node)
        return node


def names_read(codes: Iterable[Code]) -> frozenset[str]:
    """The names that some of `codes` read from outside."""
    return frozenset(name for code in codes for name in code.reads)
