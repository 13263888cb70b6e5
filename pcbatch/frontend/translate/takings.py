"""Methods that change their object and give a value, `y = account.withdraw(5.0)`: both count, as in `xs.pop()`.

Which methods these are is known when they are traced: until then a method that is called for its value changes nothing.
Where that is wrong, the program is built anew with the calls at that place marked.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import gast

from pcbatch.errors import Span
from pcbatch.frontend.source.changes import called_part, is_one_part, mark_taking, root_of, steps_of, takes
from pcbatch.frontend.source.nodes import span_of, walk_scope
from pcbatch.frontend.source.source import FunctionSource


class Marked:
    """Trees in which such calls are marked; one for each function, whatever versions of it there are.

    `takings` are places, and the variables that methods change there which are called for their value.
    """

    def __init__(self, takings: Collection[tuple[Span, str]]):
        self._takings = takings
        self._trees: dict[int, Any] = {}

    def source(self, source: FunctionSource) -> FunctionSource:
        """`source` with its calls marked; functions inside it are parts of its tree."""
        if source.is_nested or not any(span.file == source.file for span, _ in self._takings):
            return source
        known = id(source.tree)
        if known not in self._trees:
            tree = copy.deepcopy(source.tree)
            for node in _calls(tree):
                if self._is_taking(node, source):
                    mark_taking(node)
            self._trees[known] = tree
        return replace(source, tree=self._trees[known], root_source=source.root)

    def _is_taking(self, node: Any, source: FunctionSource) -> bool:
        root = root_of(called_part(node))
        here = span_of(node, source.file)
        fits = root is not None and not takes(node) and all(map(is_one_part, steps_of(node.func.value)))
        return fits and any(
            (root == name or name not in source.names) and _is_within(here, span) for span, name in self._takings
        )  # the variables of functions that stand where they are called have other names there


def _calls(tree: Any) -> Iterator[Any]:
    """The calls of methods in a function and in functions inside it; nothing can change in a lambda."""
    for statement in tree.body:
        for node in walk_scope(statement):
            if isinstance(node, gast.FunctionDef):
                yield from _calls(node)
            elif called_part(node) is not None:
                yield node


def _is_within(span: Span, around: Span) -> bool:
    start, end = (around.line, around.column), (around.end_line, around.end_column)
    same = span.file == around.file
    return same and start <= (span.line, span.column) and (span.end_line, span.end_column) <= end
