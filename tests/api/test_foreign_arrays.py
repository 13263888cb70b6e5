"""Arrays of other libraries as arguments, such as JAX's and PyTorch's: by the protocols that arrays share."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError
from tests.stand_ins import Other, Recorded, Unknown

X, N = np.array([1.0, -2.0, 3.0], np.float32), np.array([2, 0, 1], np.int32)


@pytest.fixture(autouse=True)
def taken_as_a_whole():
    Other.taken = 0
    yield
    assert Other.taken == 0


@pytest.fixture(scope="module")
def doubled():
    @pcbatch.autobatch(jit=False)
    def doubled(x, n):
        while n > 0:
            x = x * 2
            n -= 1
        return x

    return doubled


def test_in_every_place(doubled):
    """By position and name, more than once, beside others, in one example, as lists of lanes; elements of the call."""
    for _ in range(3):
        np.testing.assert_array_equal(doubled(Other(X), Other(N)), [4, -2, 6])
        np.testing.assert_array_equal(doubled(Other(X + 1), N), [8, -1, 8])
        np.testing.assert_array_equal(doubled(x=Other(X), n=tf.constant(N)), [4, -2, 6])
    lanes = [Other(np.asarray(x)) for x in X]
    np.testing.assert_array_equal(doubled(lanes, [2, 0, 1]), [4, -2, 6])
    assert float(doubled.single(Other(np.asarray(X[0])), Other(np.asarray(N[0])))) == 4
    assert doubled(Other(X.astype(np.float64)), N).dtype == tf.float64
    np.testing.assert_array_equal(doubled(Other(X[:2]), Other(N[:2])), [4, -2])


def test_the_call_after_the_second_is_warm(doubled, monkeypatch):
    for _ in range(3):
        doubled(Other(X), Other(N))
    monkeypatch.setattr(doubled.session, "run_at_once", None)
    np.testing.assert_array_equal(doubled(Other(X + 1), Other(N)), [8, -1, 8])


def test_in_structures_and_shared():
    @pcbatch.autobatch(jit=False, in_axes=(0, None))
    def weighed(p, w):
        return p["a"] * w["w"] + sum(p["b"])

    given = {"a": Other(X), "b": [Other(X), X, Other(X)]}
    np.testing.assert_array_equal(weighed(given, {"w": Other(np.array(2, np.float32))}), 5 * X)


def test_a_dtype_that_numpy_has_not(doubled):
    """It goes by DLPack, and is not the other library's memory."""
    half = Unknown(tf.constant([1.0, 2.0], tf.bfloat16))
    assert doubled(half, N[:2]).dtype == tf.bfloat16
    np.testing.assert_array_equal(tf.cast(doubled(half, N[:2]), tf.float32), [4, 2])


def test_what_the_other_library_refuses_is_said(doubled):
    with pytest.raises(UsageError, match=r"PCB511: argument 'x': .*requires grad.*detach"):
        doubled(Recorded(X), N)


def test_it_is_the_elements_of_the_call_that_count(doubled):
    """An array that its owner changes afterwards has not changed a result."""
    mine = X.copy()
    result = doubled(Other(mine), Other(N * 0))
    mine[:] = 7
    np.testing.assert_array_equal(result, X)
