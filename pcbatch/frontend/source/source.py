"""A function as its author wrote it: its tree, with the real lines and character columns of the file it stands in."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import gast

from pcbatch.errors import Span
from pcbatch.frontend.source.nodes import assigned_in, check_nesting, span_of
from pcbatch.frontend.source.scope import Scope

ParameterKind = Literal["positional", "either", "rest", "keyword"]


@dataclass(frozen=True)
class Parameter:
    """A parameter: "positional" only, "keyword" only or "either"; `default` is the expression of its default.

    `*xs` is the "rest": the tuple of all further positional arguments.
    """

    name: str
    kind: ParameterKind
    default: Any = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function as its author wrote it. Compared by identity: one value for each batched function.

    `tree` is a gast.FunctionDef without decorators, positions being those in `file`, in characters. `locals` are the
    names that are local by Python's rule (assigned anywhere in it, parameters included). The `receiver` is the first
    parameter of a bound method (`self`), which is static and no parameter of the program. `cost` is what `pcbatch.cost`
    says of it.
    """

    name: str
    qualname: str
    file: str
    tree: Any = field(repr=False)
    parameters: tuple[Parameter, ...]
    span: Span
    locals: frozenset[str] = field(repr=False)
    scope: Scope = field(repr=False)
    receiver: str | None = None
    cost: float | None = None

    def bound(self) -> FunctionSource:
        """The same function as a method bound to its first parameter."""
        if not self.parameters or self.receiver is not None:
            return self
        receiver = self.parameters[0].name
        return replace(self, parameters=self.parameters[1:], locals=self.locals - {receiver}, receiver=receiver)


def from_tree(
    node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], file: str, qualname: str, scope: Scope
) -> FunctionSource:
    """The FunctionSource of a parsed definition; its syntax is not checked here."""
    check_nesting(node, file)
    tree = converted(node, lines)
    arguments = tree.args
    stars = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    parameters = parameters_of(arguments)
    locals_ = assigned_in(tree.body) | {p.name for p in parameters} | {each.id for each in stars}
    return FunctionSource(
        name=node.name,
        qualname=qualname,
        file=file,
        tree=tree,
        parameters=parameters,
        span=span_of(tree, file),
        locals=locals_,
        scope=scope,
    )


def parameters_of(arguments: Any) -> tuple[Parameter, ...]:
    """The parameters of a definition, `**options` apart."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults

    def kind(index: int) -> ParameterKind:
        return "positional" if index < len(arguments.posonlyargs) else "either"

    return (
        *(Parameter(a.id, kind(i), d) for i, (a, d) in enumerate(zip(positional, defaults, strict=True))),
        *([] if arguments.vararg is None else [Parameter(arguments.vararg.id, "rest", gast.Tuple([], gast.Load()))]),
        *(Parameter(a.id, "keyword", d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)),
    )


def converted(node: ast.AST, lines: Sequence[str]) -> Any:
    """The gast tree of a definition or a lambda of Python's parser, with columns in characters: the same each time."""
    if not hasattr(node, _CONVERTED):
        tree = gast.ast_to_gast(node)
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        if not all(map(str.isascii, lines[first - 1 : last])):
            _use_character_columns(tree, lines)
        if isinstance(tree, gast.FunctionDef | gast.AsyncFunctionDef):
            tree.decorator_list = []
        setattr(node, _CONVERTED, tree)
    return getattr(node, _CONVERTED)


_CONVERTED = "pcbatch_tree"
"""The attribute of a tree of Python's that has its gast tree."""


def _use_character_columns(tree: Any, lines: Sequence[str]) -> None:
    """Turn the columns of Python's parser, which count UTF-8 bytes, into characters."""
    for node in gast.walk(tree):
        for line, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
            number = getattr(node, line, None)
            if number is not None and not lines[number - 1].isascii():
                prefix = lines[number - 1].encode()[: getattr(node, column)]
                setattr(node, column, len(prefix.decode()))
