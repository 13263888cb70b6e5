"""Lists, dicts and objects with several names: where Python would show a change under another one, it is refused.

The programs were found by writing what might break the analysis in `frontend.translate.aliases`: without a refusal
each would give another number than Python. Those that are taken give Python's.
"""

from __future__ import annotations

import numpy as np
import pytest

from pcbatch.errors import CompileError
from tests.lowering import shared_objects

X, K = np.array([1.5, -2.0], np.float32), np.array([1, 2], np.int32)
REFUSED = sorted(name for name in vars(shared_objects) if name.startswith("refused_"))
TAKEN = sorted(name for name in vars(shared_objects) if name.startswith("taken_"))


def arguments(function):
    given = {"x": X, "k": K, "v": np.stack([X, X + 1.0], 1)}
    return [given[name] for name in function.__signature__.parameters]


@pytest.mark.parametrize("name", REFUSED)
def test_what_python_shows_elsewhere_is_refused(name):
    function = getattr(shared_objects, name)
    with pytest.raises(CompileError, match=r"PCB(204|205|211|420)"):
        function.check(*arguments(function))


@pytest.mark.parametrize("name", TAKEN)
def test_what_python_shows_nowhere_else_is_taken(name):
    function = getattr(shared_objects, name).options(backend="reference")
    given = arguments(function)
    found = function(*given)
    for lane in range(len(X)):
        np.testing.assert_allclose(found[lane], function.single(*(each[lane] for each in given)), rtol=1e-6)
