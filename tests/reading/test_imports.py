"""Imports inside of functions: of packages around them, of what is not there, of what changes."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError
from pcbatch.reading.static_module import read_file

MODEL = """
import pcbatch

@pcbatch.autobatch
def scaled(x, n):
    from . import tables
    from .. import top
    from .tables import RATES, twice
    from ..top import offset as shift
    return twice(x) * RATES[n] + tables.SCALE + shift + top.offset

@pcbatch.autobatch
def missing(x):
    import nothing.of_this_name
    return x

@pcbatch.autobatch
def without_that(x):
    from math import nothing
    return x

@pcbatch.autobatch
def too_early(x):
    y = math.sqrt(x)
    import math
    return y
"""
TABLES = """
import numpy as np

RATES = np.array([1.0, 10.0])
SCALE = 3.0

def twice(x):
    import math
    return 2.0 * math.floor(x)
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "above" / "inner").mkdir(parents=True)
    files = {"__init__": "", "top": "offset = 0.5", "inner/__init__": "", "inner/tables": TABLES, "inner/model": MODEL}
    for path, text in files.items():
        (tmp_path / "above" / f"{path}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("above.inner.model")
    for name in [each for each in sys.modules if each.partition(".")[0] == "above"]:
        del sys.modules[name]


def test_modules_of_the_package_around(model):
    x, n = np.array([1.5, 2.5]), [0, 1]
    np.testing.assert_allclose(model.scaled(x, n), [6.0, 44.0])
    assert float(model.scaled.single(2.5, 1)) == 44.0
    tables = sys.modules["above.inner.tables"]
    tables.SCALE, tables.RATES = 4.0, np.array([2.0, 20.0])
    np.testing.assert_allclose(model.scaled(x, n), [9.0, 85.0])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "PCB208: ModuleNotFoundError: No module named 'nothing'"),
        ("without_that", "PCB208: ImportError: cannot import name 'nothing' from 'math'"),
        ("too_early", "PCB201: `math` may be read before it is assigned"),
    ],
)
def test_what_is_not_there(model, name, message):
    with pytest.raises(CompileError) as caught:
        getattr(model, name)(np.array([1.0]))
    assert str(caught.value).startswith(message)


def test_a_file_that_is_not_imported(model, tmp_path):
    program = read_file(tmp_path / "above" / "inner" / "model.py", "scaled").program
    assert {"tables", "top"} <= {*program.entry.externs}


def test_one_module_that_is_replaced(monkeypatch):
    @pcbatch.autobatch
    def rate(x):
        import rates_of_a_test

        return x * rates_of_a_test.RATE

    for number in (2.0, 3.0):
        module = type(sys)("rates_of_a_test")
        module.RATE = number
        monkeypatch.setitem(sys.modules, "rates_of_a_test", module)
        assert float(rate(np.array([1.0]))[0]) == number
