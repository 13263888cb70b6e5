"""Before Python 3.11 only the line of a call is known: `f.single` finds there what it asks of the source."""

import ast
import inspect

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import Span, UsageError
from pcbatch.function import examples
from pcbatch.single import indexing


@pcbatch.autobatch
def window(a, i):
    return a[i : i + 3] * 1.0


@pcbatch.autobatch
def two_windows(a, i):
    return a[i : i + 2] + a[i + 1 : i + 3]


@pcbatch.autobatch
def of_any_length(a):
    return a[1:9]


@pytest.fixture
def no_columns(monkeypatch):
    monkeypatch.setattr(indexing, "_at_place", indexing._on_line)


@pytest.mark.parametrize("function", [window, two_windows], ids=str)
def test_slices_that_leave_their_array(function, no_columns):
    a = np.arange(5.0, dtype=np.float32)
    assert np.asarray(function.single(a, np.int32(1))).shape in ((3,), (2,))
    with pytest.raises(IndexError, match="the slice leaves the array"):
        function.single(a, np.int32(3))


def test_slices_that_python_cuts_short(no_columns):
    assert np.asarray(of_any_length.single(np.arange(5.0, dtype=np.float32))).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_the_line_of_a_frame():
    def here(a, b):
        return indexing._on_line(inspect.currentframe()), a[0], b[1:3]

    found = here([0], [1, 2, 3])[0]
    assert [ast.unparse(each) for each in found] == ["b[1:3]"]


def test_maps_over_no_elements(monkeypatch):
    known = {Span("f.py", 3, 4, 4, 9): "float32", Span("f.py", 9, 4, 9, 9): "int32"}
    with examples.asking(lambda: known):
        assert examples._type(Span("f.py", 4, 0, 4, 0)) == "float32"
        for place in (Span("f.py", 5, 0, 5, 0), Span("f.py", 4, 1, 4, 9), Span("g.py", 4, 0, 4, 0)):
            with pytest.raises(UsageError, match="PCB556"):
                examples._type(place)
        known[Span("f.py", 4, 20, 4, 29)] = "int32"
        with pytest.raises(UsageError, match="PCB556"):
            examples._type(Span("f.py", 4, 0, 4, 0))
