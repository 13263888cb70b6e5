"""Trees and their text: spans, children and names of nodes; a file as Python's own tree, or why it has none."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Span, UnsupportedSyntaxError
from pcbatch.threads import parse

INNER_SCOPES = (gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
_SCOPES = (gast.FunctionDef, *INNER_SCOPES)


def span_of(node: Any, file: str) -> Span:
    """The source that `node` covers; for a compound statement its header only."""
    end = node
    match node:
        case gast.If(test=test) | gast.While(test=test):
            end = test
        case gast.For(iter=iterable):
            end = iterable
        case gast.With(items=items):
            end = items[-1].optional_vars or items[-1].context_expr
        case gast.Try() | gast.TryStar():
            return Span(file, node.lineno, node.col_offset, node.lineno, node.col_offset + len("try"))
        case gast.Match(subject=subject):
            end = subject
        case gast.FunctionDef(name=name):
            width = len("def ") + len(name)
            return Span(file, node.lineno, node.col_offset, node.lineno, node.col_offset + width)
        case gast.ClassDef(name=name):
            width = len("class ") + len(name)
            return Span(file, node.lineno, node.col_offset, node.lineno, node.col_offset + width)
        case gast.AsyncFunctionDef() | gast.AsyncFor() | gast.AsyncWith():
            return Span(file, node.lineno, node.col_offset, node.lineno, node.col_offset + len("async"))
    return Span(file, node.lineno, node.col_offset, end.end_lineno, end.end_col_offset)


def dotted(node: Any) -> str | None:
    """`"a.b.c"` for a name or a chain of attributes of a name, else None."""
    match node:
        case gast.Name(id=name):
            return name
        case gast.Attribute(value=value, attr=attr):
            base = dotted(value)
            return None if base is None else f"{base}.{attr}"
    return None


def unparse(node: Any) -> str:
    """Python text of an expression or a statement, an assignment as Python 3.11 and later print it.

    (Python 3.10 puts parentheses around the targets of `a, b = b, a`.)
    """
    if not isinstance(node, gast.Assign):
        return ast.unparse(gast.gast_to_ast(node))
    targets = [unparse(target) for target in node.targets]
    bare = [
        text[1:-1] if isinstance(target, gast.Tuple) and target.elts and text.startswith("(") else text
        for target, text in zip(node.targets, targets, strict=True)
    ]
    return " = ".join([*bare, unparse(node.value)])


def children(node: Any) -> list[Any]:
    """Return the children of a node, in order, without mere marks: operators, and the contexts of names."""
    found: list[Any] = []
    kind: Any = type(node)
    for name in _parts(kind):
        value = getattr(node, name, None)
        if type(value) is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif value is not None and isinstance(value, ast.AST):
            found.append(value)
    return found


_NO_PARTS = frozenset({"ctx", "op", "ops", "id", "attr", "type_comment", "kind"})
"""Fields with marks and with texts."""


@functools.cache
def _parts(kind: Any) -> tuple[str, ...]:
    """The fields of a class of nodes that may have nodes in them."""
    if issubclass(kind, (gast.Constant, ast.Constant)):
        return ()
    return tuple(name for name in kind._fields if name not in _NO_PARTS)


def walk(node: Any) -> Iterator[Any]:
    """A node and all inside of it, outermost and leftmost first; see `children`."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(children(found))


def walk_scope(node: Any) -> Iterator[Any]:
    """`node` and everything inside it that belongs to the same scope, outermost and leftmost first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        is_scope = isinstance(found, _SCOPES)
        waiting += reversed(evaluated_around(found) if is_scope else children(found))


def evaluated_around(scope: Any) -> list[Any]:
    """Return the parts evaluated around a function or a comprehension: defaults, a comprehension's first iterable."""
    if isinstance(scope, gast.Lambda | gast.FunctionDef):
        return [*scope.args.defaults, *(each for each in scope.args.kw_defaults if each is not None)]
    return [scope.generators[0].iter]


def assigned_name(node: Any) -> str | None:
    """The name that a single node assigns: a target, or a pattern of `match` that captures."""
    if isinstance(node, gast.Name):
        return str(node.id) if isinstance(node.ctx, gast.Store) else None
    return str(node.name) if _captures(node) else None


def _captures(node: Any) -> bool:
    return isinstance(node, gast.MatchAs | gast.MatchStar) and node.name is not None


def assigned_in(nodes: Sequence[Any]) -> frozenset[str]:
    """The names that `nodes` assign in their own scope (element stores apart)."""
    found = (assigned_name(each) for node in nodes for each in walk_scope(node))
    return frozenset(name for name in found if name is not None)


def parameters(arguments: Any) -> list[Any]:
    """The Name nodes of all parameters of a definition."""
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [each for each in every if each is not None]


@dataclass(frozen=True)
class Refusal:
    """The fault of a construct, a label for its carets and the help."""

    code: str
    message: str
    label: str
    help: str

    def at(self, span: Span) -> Diagnostic:
        """The diagnostic that shows it at `span`."""
        return Diagnostic(self.code, self.message, span, self.label, self.help)


PYTHON_2 = Refusal("PCB125", "this is syntax of Python 2", "here", "write Python 3")


EXPRESSIONS, STATEMENTS = 200, 150
"""Maximal nesting of a definition: every pass recurses by calls, of which Python allows 1,000. Python's own parser
takes 200 parentheses and 100 blocks, but any number of operators and `elif`s."""


@lru_cache(maxsize=64)
def parse_lines(lines: tuple[str, ...], file: str) -> ast.Module:
    """The tree of a file's text; UnsupportedSyntaxError if it is not Python."""
    try:
        return parse("".join(lines), filename=file)
    except SyntaxError as error:
        line, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
        width = error.end_offset - (error.offset or 1) if error.end_lineno == line and error.end_offset else 1
        span = Span(file, line, column, line, column + max(1, width))
        if (error.msg or "").startswith("Missing parentheses in call to"):
            old = replace(PYTHON_2, message=f"{PYTHON_2.message}: {error.msg}")
            raise UnsupportedSyntaxError([old.at(span)]) from None
        raise UnsupportedSyntaxError([Diagnostic("PCB152", f"not valid Python: {error.msg}", span)]) from None
    except ValueError as error:  # a null byte
        message = f"{file} is not valid Python: {error}"
        raise UnsupportedSyntaxError([Diagnostic("PCB152", message, None, help="save it as text")]) from None


def check_nesting(definition: ast.AST, file: str) -> None:
    """UnsupportedSyntaxError where a definition is nested deeper than the passes can go."""
    waiting: list[tuple[ast.AST, float]] = [(definition, 0.0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > 1.0 and isinstance(node, ast.expr | ast.stmt):
            message = "this is nested too deep: each operator in a row and each elif is a level"
            advice = (
                f"give parts of it names; at most {EXPRESSIONS} levels of expressions or {STATEMENTS} of statements"
            )
            raise UnsupportedSyntaxError([Diagnostic("PCB152", message, Span.of_line(file, node.lineno), help=advice)])
        depth += 1.0 / (STATEMENTS if isinstance(node, ast.stmt) else EXPRESSIONS)
        waiting += [(child, depth) for child in children(node)]
