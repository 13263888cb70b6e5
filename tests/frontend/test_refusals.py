"""What is refused, and how it is said: bad programs and the messages about them, for every code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import gast
import pytest

from pcbatch.errors import CompileError, Diagnostic, Span
from pcbatch.frontend import CODES
from pcbatch.frontend.syntax import REFUSED, check_syntax
from tests.frontend.refused import refusals
from tests.goldens import check_golden

FOLDER = Path(__file__).parent
REFUSED_PROGRAMS = sorted((FOLDER / "refusals").glob("*.py"))


@cache
def refused(path: Path) -> list[CompileError]:
    return refusals(path)


def diagnostics(path: Path) -> list[Diagnostic]:
    return [each for error in refused(path) for each in error.diagnostics]


@pytest.mark.parametrize("path", REFUSED_PROGRAMS, ids=lambda path: path.stem)
def test_messages(path: Path) -> None:
    text = "\n\n".join(map(str, refused(path))).replace(str(path), path.name)
    check_golden(path.with_suffix(".txt"), text + "\n")


@pytest.mark.parametrize("path", REFUSED_PROGRAMS, ids=lambda path: path.stem)
def test_every_message_is_complete(path: Path) -> None:
    assert refused(path)
    for diagnostic in diagnostics(path):
        assert diagnostic.help
        assert diagnostic.span is not None
        assert diagnostic.span.file == str(path)
        assert diagnostic.span.text[diagnostic.span.column :].strip()


ELSEWHERE = {"PCB100", "PCB123", "PCB124", "PCB125", "PCB127", "PCB128", "PCB150", "PCB151", "PCB152"}
"""What needs no file, a file that not every Python can parse, or one that is not imported."""


def test_every_code_has_a_bad_program() -> None:
    seen = {diagnostic.code for path in REFUSED_PROGRAMS for diagnostic in diagnostics(path)}
    assert {code for code in seen if code < "PCB300"} | ELSEWHERE == set(CODES)


# -- every node type of gast is in a program, or refused by a message --------------------------------------------------


def concrete(kind: type) -> Iterator[type]:
    if kind.__module__.startswith("gast") and "_field_types" in vars(kind):  # the rest are abstract
        yield kind
    for each in kind.__subclasses__():
        yield from concrete(each)


NODE_TYPES = sorted(set(concrete(gast.AST)), key=lambda kind: kind.__name__)
ONLY_NEW_PYTHON = {"TryStar", "TypeAlias", "TypeVar", "TypeVarTuple", "ParamSpec", "TemplateStr", "Interpolation"}
ONLY_OLD_PYTHON = {"Print", "Exec", "Repr", "Suite", "AugLoad", "AugStore", "Param"}
NEVER_IN_A_FUNCTION = {"Module", "Interactive", "Expression", "FunctionType", "TypeIgnore", "type_ignore"}


def nodes_in(paths: Iterable[Path], *, batched: bool = False) -> set[type]:
    """The types of nodes inside the functions of some files, or inside the batched ones only."""
    found: set[type] = set()
    for path in paths:
        for node in gast.walk(gast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, gast.FunctionDef | gast.AsyncFunctionDef) and (node.decorator_list or not batched):
                found.update(type(inside) for part in [node.args, *node.body] for inside in gast.walk(part))
                found.update({gast.AsyncFunctionDef} & {type(node)})
    return found


def test_every_node_type_is_in_a_program_or_a_bad_one() -> None:
    good = [*(FOLDER.parent / "corpus").glob("*.py"), *(FOLDER / "accepted").glob("*.py")]
    refused = {*REFUSED, gast.ExceptHandler, gast.alias}
    known = nodes_in(good, batched=True) | nodes_in(REFUSED_PROGRAMS) & refused
    missing = {kind.__name__ for kind in set(NODE_TYPES) - known}
    elsewhere = ONLY_NEW_PYTHON | ONLY_OLD_PYTHON | NEVER_IN_A_FUNCTION
    assert missing <= elsewhere
    assert not {kind.__name__ for kind in set(REFUSED) - known} - elsewhere


@pytest.mark.parametrize("name", sorted((ONLY_NEW_PYTHON | {"Print", "Exec", "Repr"}) & set(dir(gast))))
def test_nodes_without_a_file(name: str) -> None:
    node = getattr(gast, name)()
    node.lineno = node.end_lineno = 2
    node.col_offset, node.end_col_offset = 4, 9
    node.body = node.handlers = node.orelse = node.finalbody = []
    function = gast.parse("def f(x):\n    pass").body[0]
    function.body = [node]
    (found,) = check_syntax(function, "f.py")
    assert found.code == REFUSED[type(node)].code
    assert found.span is not None
    assert (found.span.line, found.span.column) == (2, 4)


def test_spans_are_characters() -> None:
    (path,) = (path for path in REFUSED_PROGRAMS if path.stem == "unicode")
    found = diagnostics(path)
    assert [each.span for each in found] == [Span(str(path), 8, 13, 8, 21), Span(str(path), 9, 12, 9, 28)]
