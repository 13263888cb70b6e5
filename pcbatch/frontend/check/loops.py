"""The rules of the syntax check for `for` loops."""

from __future__ import annotations

from typing import Any

import gast

from pcbatch.frontend.check import refusals
from pcbatch.frontend.check.checker import Checker
from pcbatch.frontend.source.iteration import range_arguments, wrapper


def for_loop(checker: Checker, node: Any) -> None:
    """`for name in range(..)`, `for targets in sequence`."""
    found = range_arguments(node.iter, checker.is_builtin_name)
    if found is None:
        _iterated(checker, node.iter)
        _loop_target(checker, node.target)
    else:
        _range(checker, node.iter.args[0] if found[1] else node.iter)
        if not isinstance(node.target, gast.Name):
            checker.refuse(node.target, refusals.FOR_TARGET)
    checker.all([*node.body, *node.orelse])


def _range(checker: Checker, node: Any) -> None:
    checker.all(node.args)
    starred = any(isinstance(argument, gast.Starred) for argument in node.args)
    if node.keywords or starred or not 1 <= len(node.args) <= 3:
        checker.refuse(node, refusals.RANGE_ARGUMENTS)
    elif len(node.args) == 3 and isinstance(node.args[2], gast.Constant) and node.args[2].value == 0:
        checker.refuse(node.args[2], refusals.RANGE_ZERO)


def _iterated(checker: Checker, node: Any) -> None:
    """What a loop goes over: a sequence, or `enumerate`, `zip` and `reversed` of sequences and ranges."""
    name, found = wrapper(node, checker.is_builtin_name), range_arguments(node, checker.is_builtin_name)
    if found is not None and not found[1]:
        _range(checker, node)
    elif name is None:
        checker.visit(node)
    elif not _fits(name, node):
        checker.refuse(node, refusals.SEQUENCE_ARGUMENTS)
    elif name == "reversed" and wrapper(node.args[0], checker.is_builtin_name) in ("enumerate", "zip"):
        checker.refuse(node, refusals.REVERSED)
    else:
        sequences = node.args if name == "zip" else node.args[:1]
        for argument in sequences:
            _iterated(checker, argument)
        checker.all([*node.args[len(sequences) :], *(keyword.value for keyword in node.keywords)])


def _fits(name: str, node: Any) -> bool:
    """Whether the arguments of an `enumerate`, `zip` or `reversed` are understood."""
    if not node.args or any(isinstance(argument, gast.Starred) for argument in node.args):
        return False
    if name == "enumerate":
        return len(node.args) + len(node.keywords) <= 2 and all(each.arg == "start" for each in node.keywords)
    if name == "zip":
        return all(each.arg == "strict" and _is_flag(each.value) for each in node.keywords)
    return not node.keywords and len(node.args) == 1


def _is_flag(node: Any) -> bool:
    return isinstance(node, gast.Constant) and isinstance(node.value, bool)


def _loop_target(checker: Checker, node: Any) -> None:
    match node:
        case gast.Name():
            pass
        case gast.Tuple(elts=parts) | gast.List(elts=parts):
            for part in parts:
                _loop_target(checker, part)
        case _:
            checker.refuse(node, refusals.LOOP_TARGET)
