"""Lists, dicts and objects with several names: a change under one is seen under all, as Python's shows it.

The programs were found by writing what might break an analysis of names. A change that Python would show and a batch
would not, as a batched function gets values, is refused.
"""

from __future__ import annotations

import numpy as np
import pytest

from pcbatch.errors import CompileError
from tests.lowering import shared_objects
from tests.stand_ins import plain_functions

X, K = np.array([1.5, -2.0], np.float32), np.array([1, 2], np.int32)
REFUSED = sorted(name for name in vars(shared_objects) if name.startswith("refused_"))
TAKEN = sorted(name for name in vars(shared_objects) if name.startswith("taken_"))
PYTHON = plain_functions(shared_objects)


def arguments(function):
    given = {"x": X, "k": K, "v": np.stack([X, X + 1.0], 1)}
    return [given[name] for name in function.__signature__.parameters]


@pytest.mark.parametrize("name", REFUSED)
def test_what_python_shows_elsewhere_is_refused(name):
    function = getattr(shared_objects, name)
    with pytest.raises(CompileError, match=r"PCB(119|204|205|211)"):
        function.check(*arguments(function))


@pytest.mark.parametrize("name", TAKEN)
def test_answers_are_pythons(name):
    function = getattr(shared_objects, name).options(backend="reference")
    given = arguments(function)
    found = function(*given)
    for lane in range(len(X)):
        example = [each[lane].copy() if each[lane].ndim else each[lane].item() for each in given]
        np.testing.assert_allclose(found[lane], PYTHON[name](*example), rtol=1e-6)
        np.testing.assert_allclose(found[lane], function.single(*(each[lane] for each in given)), rtol=1e-6)
