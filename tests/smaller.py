"""Makes a failing program smaller, whatever shows that it fails: statements go, blocks are opened, parts stand alone.

Hypothesis shrinks what it has drawn itself; this works on the text, so also for programs by number and for files.
"""

from __future__ import annotations

import ast
import copy
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

OPENED = (ast.With, ast.If, ast.For, ast.While)


def smaller(source: str, fails: Callable[[str], bool], tries: int = 400, seconds: float = 2.0) -> str:
    """The smallest program found with at most `tries` runs for which `fails` still holds, as it does for `source`.

    A smaller program may run for ever: one that takes more than `seconds` is left (POSIX, main thread).
    """
    tree = ast.parse(source)
    tried: set[str] = set()
    progress = True
    while progress and tries > 0:
        progress = False
        position = 0
        while tries > 0 and (change := _change(tree, position)) is not None:
            text = ast.unparse(ast.fix_missing_locations(change))
            if text in tried:
                position += 1
                continue
            tried.add(text)
            tries -= 1
            if _in_time(fails, text, seconds):
                tree, progress = ast.parse(text), True
            else:
                position += 1
    return ast.unparse(tree)


def _in_time(fails: Callable[[str], bool], text: str, seconds: float) -> bool:
    try:
        with _limit(seconds):
            return fails(text)
    except TimeoutError:
        return False


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _change(tree: ast.Module, number: int) -> ast.Module | None:
    """The module with its change of this number made; None if there are not so many."""
    changed = copy.deepcopy(tree)
    for at, change in enumerate(_changes(changed)):
        if at == number:
            change()
            return changed
    return None


def _changes(tree: ast.Module) -> Iterator[Callable[[], Any]]:
    """All that can be made smaller in functions and classes: results, statements, big ones first, then expressions."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            yield from (_setter(node, "value", part) for part in node.value.elts)
    yield from (lambda function=function: tree.body.remove(function) for function in functions[:-1])
    nodes = [node for function in functions for node in ast.walk(function) if node not in function.decorator_list]
    for node in nodes:
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                yield from _of_statements(statements, required=field == "body" and len(statements) == 1)
    for node in nodes:
        for field, value in ast.iter_fields(node):
            if field in ("func", "decorator_list"):
                continue
            if isinstance(value, ast.expr) and not isinstance(value, ast.Name | ast.Constant):
                yield from (_setter(node, field, part) for part in _parts(value))
            elif isinstance(value, list):
                for at, each in enumerate(value):
                    if isinstance(each, ast.expr) and not isinstance(each, ast.Name | ast.Constant):
                        yield from (_list_setter(value, at, part) for part in _parts(each))


def _of_statements(statements: list[ast.stmt], required: bool) -> Iterator[Callable[[], Any]]:
    for at, statement in enumerate(statements):
        if not required and not isinstance(statement, ast.Return):
            yield lambda at=at: statements.pop(at)
        if isinstance(statement, OPENED):
            yield lambda at=at, inside=statement.body: statements.__setitem__(slice(at, at + 1), inside)


def _parts(node: ast.expr) -> list[ast.expr]:
    """What may stand for an expression: a number, or one of its operands."""
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return []
    inside = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return [ast.Constant(1), *(child for child in inside if not isinstance(child, ast.Starred))]


def _setter(node: ast.AST, field: str, value: ast.expr) -> Callable[[], Any]:
    return lambda: setattr(node, field, value)


def _list_setter(values: list[Any], at: int, value: ast.expr) -> Callable[[], Any]:
    return lambda: values.__setitem__(at, value)
