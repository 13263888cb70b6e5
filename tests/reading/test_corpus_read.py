"""The corpus, read by the interpreter over abstract values, judged as everywhere."""

import pytest

from pcbatch.function import readings
from tests.harness import BATCH, NAMES, NATIVE, Mode, check, expected
from tests.test_corpus import WITHOUT_NATIVE

CFG, LOCKSTEP = Mode("interpret cfg"), Mode("graph", "busiest")
AS_PYTHON = {
    "row_then_store": "a row of an array is a view, which sees what is stored into the array",
    "saved_slices": "a slice of an array is a view, which sees what is stored into the array",
}
"""Programs of which the answer changes with the reading, since Python's is another one than today's."""
GAPS = {"widened_tail_call": "a tail call of a function that gives a narrower number is no tail call yet"}
READ = [name for name in NAMES if name not in AS_PYTHON and name not in GAPS]
QUICK = READ[5::20]


def some(names, quick):
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.fixture(autouse=True)
def read_by_the_interpreter(request):
    for name in [request.node.callspec.params["name"]] if hasattr(request.node, "callspec") else []:
        expected(name, BATCH)  # by `f.single`, which knows nothing of readings
    with readings.switched():
        yield


@pytest.mark.parametrize("name", some(READ, QUICK))
def test_as_typed_program(name):
    check(name, CFG, BATCH)


@pytest.mark.parametrize("name", some(READ, QUICK[1::5]))
def test_in_lockstep(name):
    check(name, LOCKSTEP, BATCH)


@pytest.mark.parametrize("name", some([name for name in READ if name not in WITHOUT_NATIVE], QUICK[2::5]))
def test_in_native_form(name):
    check(name, NATIVE, BATCH)


@pytest.mark.parametrize("name", GAPS)
def test_gaps_are_gaps(name):
    """What is not read as it should be yet; a program that is now leaves the list."""
    with pytest.raises(AssertionError):
        check(name, CFG, BATCH)
