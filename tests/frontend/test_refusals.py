"""What is refused, and how it is said: one bad program and its message for every code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import gast
import pytest

from pcbatch.errors import CompileError, Diagnostic, Span
from pcbatch.frontend import CODES, Built, read_module
from pcbatch.frontend.check.syntax import RULES, check_syntax
from pcbatch.frontend.source.refusal import Refusal
from pcbatch.frontend.source.scope import StaticScope
from pcbatch.frontend.translate.build import build
from tests.frontend.helpers import FOLDER, programs
from tests.goldens import check_golden

REFUSED = programs("refusals")


def refuse(path: Path) -> CompileError:
    """The error that reading the file at `path` and building its last function give."""
    with pytest.raises(CompileError) as caught:
        build_last(path)
    return caught.value


def build_last(path: Path) -> Built:
    module = read_module(path)
    return build(list(module.functions.values())[-1], module.resolve)


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_message(path: Path) -> None:
    text = str(refuse(path)).replace(str(path), path.name)
    check_golden(path.with_suffix(".txt"), text + "\n")


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_every_message_is_complete(path: Path) -> None:
    for diagnostic in refuse(path).diagnostics:
        assert diagnostic.code in CODES
        assert diagnostic.label
        assert diagnostic.help
        assert diagnostic.span is not None
        assert diagnostic.span.text[diagnostic.span.column :].strip()


# What needs no file, or a file that not every Python can parse.
ELSEWHERE = {"PCB100", "PCB123", "PCB124", "PCB125", "PCB150", "PCB151", "PCB152"}


def test_every_code_has_a_bad_program() -> None:
    seen = {diagnostic.code for path in REFUSED for diagnostic in refuse(path).diagnostics}
    assert seen | ELSEWHERE == set(CODES)


# -- every node type of gast is either translated by a program or refused by a message ---------------------------------


def concrete(kind: type) -> Iterator[type]:
    if kind.__module__.startswith("gast") and "_field_types" in vars(kind):  # the rest are abstract
        yield kind
    for each in kind.__subclasses__():
        yield from concrete(each)


NODE_TYPES = sorted(set(concrete(gast.AST)), key=lambda kind: kind.__name__)
# Nodes that no source text inside a function gives on some Python or on any, by what refuses them.
NEVER_IN_A_FUNCTION = {"Module", "Interactive", "Expression", "FunctionType", "type_ignore"}
NO_PLACE_IN_A_FILE = {"Nonlocal"}  # it needs an enclosing function
ONLY_NEW_PYTHON = {"TryStar", "TypeAlias", "TypeVar", "TypeVarTuple", "ParamSpec", "TemplateStr", "Interpolation"}
ONLY_OLD_PYTHON = {"Print", "Exec", "Repr", "Suite", "AugLoad", "AugStore"}


def nodes_in(paths: Iterable[Path], *, batched: bool = False) -> set[type]:
    """The types of nodes inside the functions of some files, or inside the batched ones only."""
    found: set[type] = set()
    for path in paths:
        for node in gast.walk(gast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, gast.FunctionDef | gast.AsyncFunctionDef) and (node.decorator_list or not batched):
                found.update(type(inside) for part in [node.args, *node.body] for inside in gast.walk(part))
                found.update({gast.AsyncFunctionDef} & {type(node)})
    return found


def test_every_node_type_has_a_rule() -> None:
    assert len(NODE_TYPES) > 100
    assert [kind.__name__ for kind in NODE_TYPES if kind not in RULES] == []


def test_every_supported_node_type_is_in_a_program() -> None:
    supported = {kind for kind in NODE_TYPES if not isinstance(RULES[kind], Refusal)}
    missing = {kind.__name__ for kind in supported - nodes_in((FOLDER.parent / "corpus").glob("*.py"), batched=True)}
    assert missing == {"AugLoad", "AugStore"}


def test_every_refused_node_type_is_in_a_bad_program() -> None:
    refused = {kind for kind in NODE_TYPES if isinstance(RULES[kind], Refusal)}
    missing = {kind.__name__ for kind in refused - nodes_in(REFUSED)}
    by_hand = ONLY_NEW_PYTHON | ONLY_OLD_PYTHON | NO_PLACE_IN_A_FILE
    assert missing == (NEVER_IN_A_FUNCTION | by_hand) & {kind.__name__ for kind in refused}


@pytest.mark.parametrize("name", sorted(ONLY_NEW_PYTHON | {"Print", "Exec", "Repr", "Nonlocal"}))
def test_nodes_without_a_file(name: str) -> None:
    node = getattr(gast, name)()
    node.lineno = node.end_lineno = 2
    node.col_offset, node.end_col_offset = 4, 9
    node.body = node.handlers = node.orelse = node.finalbody = []
    function = gast.parse("def f(x):\n    pass").body[0]
    function.body = [node]
    (found,) = check_syntax(function, "f.py", {"x"}, StaticScope({}))
    assert isinstance(found, Diagnostic)
    assert found.code == RULES[type(node)].code
    assert found.span is not None
    assert (found.span.line, found.span.column) == (2, 4)


def test_spans_are_characters() -> None:
    (path,) = (path for path in REFUSED if path.stem == "unicode")
    identity, printed, *_ = refuse(path).diagnostics
    assert identity.span == Span(str(path), 8, 17, 8, 23)
    assert printed.span == Span(str(path), 9, 12, 9, 27)
