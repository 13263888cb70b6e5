"""Types that nobody writes: what a program's values have, and what is said where there is none.

Each file of `programs` and `refusals` is one lesson: a function named like its file, called with BATCH; functions that
are refused when they are called with ARGUMENTS. `golden` has the typed IR of the first and the messages about the
second; UPDATE_GOLDENS=1 rewrites them.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

import keras
import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError, Diagnostic
from pcbatch.ir.printer import print_program
from pcbatch.ir.verifier import verify
from tests.frontend.refused import refusals
from tests.goldens import check_golden
from tests.ir.parser import parse_program

pytestmark = pytest.mark.xdist_group("types")  # each program is refused once, for all that is said of it
FOLDER = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in (FOLDER / "programs").glob("*.py"))
REFUSALS = sorted(path.stem for path in (FOLDER / "refusals").glob("*.py"))


@functools.cache
def refused(name: str) -> list[CompileError]:
    """What is raised for the functions of a file of `refusals`."""
    return refusals(FOLDER / "refusals" / f"{name}.py")


def diagnostics(name: str) -> list[Diagnostic]:
    return [each for error in refused(name) for each in error.diagnostics]


@pytest.mark.parametrize("name", PROGRAMS)
def test_types(name):
    module = importlib.import_module(f"tests.lowering.programs.{name}")
    function = getattr(module, name)
    function.check(*module.BATCH)
    typed = function.program("cfg", *module.BATCH)
    verify(typed)
    assert parse_program(print_program(typed)) == typed
    check_golden(FOLDER / "golden" / f"{name}.ir.txt", function.ir("cfg", *module.BATCH))


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name):
    text = "\n\n".join(map(str, refused(name))).replace(str(FOLDER / "refusals") + "/", "")
    check_golden(FOLDER / "golden" / f"{name}.error.txt", text + "\n")


def test_a_layer_of_keras_without_its_batch_axis():
    """In Keras's words, which are others in each version."""
    layer = keras.layers.Dense(2)

    @pcbatch.autobatch
    def layered(row):
        return layer(row)

    with pytest.raises(CompileError, match=r"(?s)PCB401: .*min_ndim=2.*layer\(row\).*layers of Keras expect"):
        layered.check(np.ones((2, 2), np.float32))


@pytest.mark.parametrize("name", REFUSALS)
def test_every_message_points_at_the_users_source_and_offers_a_way_out(name):
    assert refused(name), "ARGUMENTS names the functions that are called"
    for diagnostic in diagnostics(name):
        assert diagnostic.span is not None
        assert diagnostic.span.file == str(FOLDER / "refusals" / f"{name}.py")
        assert diagnostic.span.text[diagnostic.span.column :].strip()


def test_every_code_of_the_types_of_values_has_a_refusal():
    seen = {diagnostic.code for name in REFUSALS for diagnostic in diagnostics(name)}
    assert seen >= {f"PCB30{number}" for number in (1, 2, 3, 5, 6, 7)} | {f"PCB40{number}" for number in (1, 2, 4, 5)}


def test_goldens_belong_to_programs():
    """No golden outlives the program that it was made from."""
    expected = {f"{name}.ir.txt" for name in PROGRAMS} | {f"{name}.error.txt" for name in REFUSALS}
    assert {path.name for path in (FOLDER / "golden").iterdir()} == expected
