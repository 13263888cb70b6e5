"""The rules of the syntax check for `match`: literals, names, `|`, and sequences of a fixed number of patterns."""

from __future__ import annotations

from typing import Any

import gast

from pcbatch.frontend.check import refusals
from pcbatch.frontend.check.checker import Checker
from pcbatch.frontend.source.nodes import assigned_in, dotted


def match_statement(checker: Checker, node: Any) -> None:
    """Subject, patterns, guards and bodies."""
    checker.visit(node.subject)
    for case in node.cases:
        checker.visit(case)


def match_case(checker: Checker, node: Any) -> None:
    """One case."""
    checker.visit(node.pattern)
    if node.guard is not None:
        checker.visit(node.guard)
    checker.all(node.body)


def value_pattern(checker: Checker, node: Any) -> None:
    """A literal, or a dotted name of another scope."""
    value = node.value
    if isinstance(value, gast.Attribute):
        if (dotted(value) or "").partition(".")[0] in checker.local_names:
            checker.refuse(node, refusals.PATTERN_LOCAL)
    else:
        checker.visit(value)


def alternatives(checker: Checker, node: Any) -> None:
    """`1 | 2`: values only, since the alternatives become one condition."""
    if assigned_in([node]):
        checker.refuse(node, refusals.PATTERN_ALTERNATIVES)
    else:
        checker.all(node.patterns)
