"""The reading of a definition, live or parsed, to its source with every construct in it allowed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FunctionType, MethodType
from typing import Any

from pcbatch.errors import raise_all
from pcbatch.frontend.check.syntax import check_syntax
from pcbatch.frontend.source.scope import Scope
from pcbatch.frontend.source.source import FunctionSource, from_tree
from pcbatch.frontend.source.source_capture import capture


def read_function(function: Any) -> FunctionSource:
    """Capture the source of a live Python function or bound method and check its syntax.

    Raises UnsupportedSyntaxError with everything in it that pcbatch does not translate, or with the reason why there is
    no source to be had.
    """
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        return read_function(function.__func__).bound()
    if isinstance(function, staticmethod | classmethod):
        return read_function(function.__func__)
    return _checked(capture(function))


def read_definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], file: str, qualname: str, scope: Scope
) -> FunctionSource:
    """The source of a parsed definition; raises UnsupportedSyntaxError with every refusal in it."""
    return _checked(from_tree(node, lines, file, qualname, scope))


def _checked(source: FunctionSource) -> FunctionSource:
    raise_all(check_syntax(source.tree, source.file))
    return source
