"""Parameters of any structure as one vector and back."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.nuts.parameters.parameters import by_name, dtype_of, layout_of, leaves, ravel, unravel


class Line(NamedTuple):
    slope: object
    offsets: object


STRUCTURES = {
    "array": np.arange(6.0).reshape(2, 3),
    "scalar": np.float64(2.0),
    "dict in written order": {"z": np.float64(1.0), "a": np.arange(3.0)},
    "nested": (np.arange(2.0), [np.float64(7.0), {"c": np.ones((2, 1))}]),
    "named tuple": Line(np.float64(3.0), np.arange(4.0)),
    "empty array": {"none": np.zeros((0,)), "one": np.float64(1.0)},
}


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_there_and_back(structure):
    layout = layout_of(structure)
    vector = ravel(structure)
    assert vector.shape == (layout.size,)
    back = unravel(layout, tf.constant(vector))
    assert type(back) is type(structure) or isinstance(back, tf.Tensor)
    tf.nest.map_structure(np.testing.assert_array_equal, back, structure)


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_layouts_of_equal_structures_are_equal_and_hashable(structure):
    assert {layout_of(structure)} == {layout_of(tf.nest.map_structure(lambda leaf: leaf + 1, structure))}


def test_names_follow_the_structure():
    assert [name for name, _ in leaves(layout_of({"z": 0.0, "a": (0.0, Line(0.0, 0.0))}))] == [
        "z",
        "a.0",
        "a.1.slope",
        "a.1.offsets",
    ]
    assert [name for name, _ in leaves(layout_of(0.0))] == ["x"]


def test_draws_by_name_keep_their_leading_axes():
    layout = layout_of({"scale": 0.0, "weights": np.zeros((2, 3))})
    draws = np.arange(4 * 5 * 7).reshape(4, 5, 7)
    named = by_name(layout, draws)
    assert {name: array.shape for name, array in named.items()} == {"scale": (4, 5), "weights": (4, 5, 2, 3)}
    assert named["weights"][1, 2].tolist() == draws[1, 2, 1:].reshape(2, 3).tolist()


def test_batches_of_structures():
    points = {"scale": np.arange(4.0), "weights": np.arange(24.0).reshape(4, 2, 3)}
    flat = ravel(points, batch=1)
    assert flat.shape == (4, 7)
    assert flat[2].tolist() == [2.0, *range(12, 18)]


def test_dtype_is_float64_only_where_an_array_is():
    assert dtype_of({"a": 1.0, "b": np.zeros(2, np.float32)}) == tf.float32
    assert dtype_of({"a": 1.0, "b": np.zeros(2)}) == tf.float64
