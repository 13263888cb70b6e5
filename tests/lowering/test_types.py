"""Types that nobody writes: what inference finds, and what it says where there is nothing to find.

Each file of `programs` and `refusals` is one lesson: a function named like its file, called with BATCH.
`golden` has the typed IR of the first and the message about the second; UPDATE_GOLDENS=1 rewrites them.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

import keras
import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError
from pcbatch.ir.text.parser import parse_program
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verify.verifier import verify
from tests.goldens import check_golden

pytestmark = pytest.mark.xdist_group("types")  # each program is refused once, for all that is said of it
FOLDER = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in (FOLDER / "programs").glob("*.py"))
REFUSALS = sorted(path.stem for path in (FOLDER / "refusals").glob("*.py"))


def checked(kind: str, name: str):
    """The batched function of a file, compiled for the file's batch."""
    module = importlib.import_module(f"tests.lowering.{kind}.{name}")
    function = getattr(module, name)
    function.check(*module.BATCH)
    return function, module.BATCH


@functools.cache
def refused(name: str) -> CompileError:
    """The error about a file of `refusals`: some faults are found at decoration, some need the types of a call."""
    with pytest.raises(CompileError) as caught:
        checked("refusals", name)
    return caught.value


@pytest.mark.parametrize("name", PROGRAMS)
def test_inferred_types(name):
    function, batch = checked("programs", name)
    typed = function.program("cfg", *batch)
    verify(typed)
    assert parse_program(print_program(typed)) == typed
    check_golden(FOLDER / "golden" / f"{name}.ir.txt", function.ir("cfg", *batch))


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name):
    text = str(refused(name)).replace(str(FOLDER / "refusals") + "/", "")
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
    for diagnostic in refused(name).diagnostics:
        assert diagnostic.span is not None
        assert diagnostic.span.file == str(FOLDER / "refusals" / f"{name}.py")
        assert diagnostic.span.text[diagnostic.span.column :].strip()


def test_every_code_of_type_inference_has_a_refusal():
    seen = {diagnostic.code for name in REFUSALS for diagnostic in refused(name).diagnostics}
    assert seen >= {f"PCB30{number}" for number in range(1, 9)} | {f"PCB40{number}" for number in range(1, 6)}


def test_goldens_belong_to_programs():
    """No golden outlives the program that it was made from."""
    expected = {f"{name}.ir.txt" for name in PROGRAMS} | {f"{name}.error.txt" for name in REFUSALS}
    assert {path.name for path in (FOLDER / "golden").iterdir()} == expected
