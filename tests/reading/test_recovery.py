"""Faults that are put into right programs are told, and nothing else is: a reading goes on behind what it refuses."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pcbatch
from tests.frontend.refused import loaded
from tests.programs import cases
from tests.programs.table import MODULES, Case
from tests.programs.table import cases as all_cases
from tests.programs.test_cases import KNOWN

SMALL = MODULES[:9]
"""The modules whose programs are small."""
RIGHT = [name for name in all_cases() if KNOWN[name] == "right" and name.partition(".")[0] in SMALL]
QUICK = 24
"""The quick tests take one program of this many."""
FIELDS = {"value": (ast.Assign, ast.AugAssign, ast.Return), "test": (ast.If, ast.While), "iter": (ast.For,)}
"""The expressions of statements in whose place a fault is put."""


def statements(function: ast.FunctionDef) -> Iterator[tuple[list[ast.stmt], int]]:
    """The places of the statements of a function."""
    for each in ast.walk(function):
        for rows in (getattr(each, "body", None), getattr(each, "orelse", None)):
            if isinstance(rows, list):
                yield from ((rows, place) for place in range(len(rows)))


def programs(name: str, folder: Path) -> Iterator[Case]:
    """A program with a fault in front of each of its statements, and with one in each."""
    module, _, function = name.partition(".")
    text = (Path(next(iter(cases.__path__))) / f"{module}.py").read_text(encoding="utf-8")
    number = 0
    while True:
        for is_inside in (False, True):
            tree = ast.parse(text)
            own = next(each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function)
            places = list(statements(own))
            if number >= len(places):
                return
            rows, place = places[number]
            fault = ast.Name("nowhere", ast.Load())
            field = next((field for field, kinds in FIELDS.items() if isinstance(rows[place], kinds)), None)
            if not is_inside:
                rows.insert(place, ast.Assign([ast.Name("unused", ast.Store())], fault))
            elif field is None or getattr(rows[place], field) is None:
                continue
            else:
                setattr(rows[place], field, fault)
            path = folder / f"{name}_{number}_{is_inside}.py"
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
            found: Any = loaded(path, pcbatch.autobatch)["program"]
            yield next(each for each in found if each.function.__name__ == function)
        number += 1


def check(name: str, folder: Path) -> None:
    for program in programs(name, folder):
        batched = pcbatch.autobatch(program.function).options(backend="reference")
        with pytest.raises(pcbatch.CompileError) as caught:
            batched.run(*copy.deepcopy(program.arguments))
        (found,) = caught.value.diagnostics
        assert found.message == "`nowhere` is not defined"


@pytest.mark.parametrize("name", RIGHT[::QUICK])
def test_some_faults_are_told_alone(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_faults_are_told_alone(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)
