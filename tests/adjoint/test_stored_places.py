"""Stores at a list of places: the last value of a place is the one that it keeps, and the one that has a gradient."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.adjoint.truth import assert_alike, batched, singly


@pcbatch.autobatch
def listed(x, i, j):
    """Two places of a list, the same one in some lanes; a tuple of values, and one of an array."""
    a = x.copy()
    a[[i, j]] = x[1] * 2.0, x[2] * 3.0
    a[[j, -1, i]] = x * x
    return a


@pcbatch.autobatch
def rows(x, i, j):
    """Rows of a matrix, which change places."""
    a = x[:, None] * x
    a[[i, j]] = a[[j, i]]
    a[[0, i], 1:] = x[:2] + x[1], x[1:]
    return a


@pcbatch.autobatch
def computed(x, i, j):
    """Places in an array that is computed."""
    places = np.array([i, j, i])
    a = x.copy()
    a[places] = x * 5.0
    return a


@pcbatch.autobatch
def points(x, i, j):
    """`math` of numbers in a list."""
    return math.dist([x[0], x[1]], [x[i], 2.0]) + math.dist(x, x * 0.5)


ARGUMENTS = (
    tf.constant(np.random.default_rng(0).normal(size=(4, 3))),
    np.array([0, 1, 2, 2], np.int32),
    np.array([0, 2, -1, 0], np.int32),
)


@pytest.mark.parametrize("function", [listed, rows, computed, points], ids=lambda f: f.__name__)
@pytest.mark.parametrize("form", ["lockstep", "native"])
def test_the_last_value_of_a_place_has_the_gradient(function, form):
    options = {"jit": False} if form == "lockstep" else {}
    ours = function.options(form=form, **options)
    for lane, value in enumerate(ours(*ARGUMENTS).numpy()):
        given = (ARGUMENTS[0][lane].numpy(), *(each[lane] for each in ARGUMENTS[1:]))
        np.testing.assert_allclose(value, function.__wrapped__(*given), rtol=1e-12)
    assert_alike(batched(ours, ARGUMENTS), singly(function, ARGUMENTS))


def test_places_that_are_known():
    """Places that differ are one store, others one after another: it costs the elements and not the array."""

    @pcbatch.autobatch
    def swapped(x):
        x[[0, 2]] = x[[2, 0]]
        return x

    @pcbatch.autobatch
    def twice(x):
        x[[0, -3]] = x[[1, 2]]
        return x

    x = np.arange(3.0, dtype=np.float32)[None]
    assert swapped.source(x).count("_pcb.Store(") == 1
    assert twice.source(x).count("_pcb.Store(") == 2
    assert swapped(x).numpy().tolist() == [[2.0, 1.0, 0.0]]
    assert twice(x).numpy().tolist() == [[2.0, 1.0, 2.0]]


@pcbatch.autobatch
def exchanged(x, i, j):
    x[[i, j]] = x[[j, i]]
    x[(j,)] = 7.0
    return x


def test_places_of_lanes_are_stored_one_after_another():
    """So that a store costs the elements, and not the array."""
    assert exchanged.source(*ARGUMENTS).count("_pcb.Store(") == 3
    for lane, found in enumerate(exchanged(*ARGUMENTS).numpy()):
        x, i, j = (np.array(each)[lane] for each in ARGUMENTS)
        np.testing.assert_array_equal(found, exchanged.__wrapped__(x.copy(), i, j))


@pcbatch.autobatch
def forms(a, i, j):
    a[[i, j]] = a[[j, i], :1] * 2.0
    a[[i, j, 0]] += 1.0
    a[[j]] = a[0]
    a[[i, j]] = 5
    b = a[:, 0].copy()
    b[[i, j]] = b[1]
    v = a[1:]
    v[[0, j - 1]] = a[0], a[2] + 1.0
    return a, b


@pytest.mark.parametrize("form", ["lockstep", "native"])
def test_values_that_are_spread_and_views(form):
    a = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    i, j = np.array([0, 1, 2, 2], np.int32), np.array([0, 2, 1, 2], np.int32)
    found = forms.options(form=form)(a, i, j)
    for lane in range(4):
        for ours, theirs in zip(found, forms.__wrapped__(a[lane].copy(), i[lane], j[lane]), strict=True):
            np.testing.assert_allclose(ours[lane], theirs, rtol=1e-6)
