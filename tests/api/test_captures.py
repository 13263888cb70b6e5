"""Captured values: arrays are read at every call and shared by all lanes, everything else is part of the program."""

from __future__ import annotations

import types

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.api import left, right

ONES = np.ones(3, np.float32)


def value(tensor):
    return np.asarray(tensor).tolist()


def compilations(function):
    return function.stats().compilations


# -- arrays, by every way of naming them ---------------------------------------------------------------------


class Model(tf.Module):
    """What a user's model looks like: a variable, and a number that is a fact of the architecture."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([1.0, 2.0])
        self.layers = (np.float32(3.0), tf.Variable(4.0))

    def __call__(self, x):
        return tf.reduce_sum(self.w) * x


TENSOR = tf.constant(1.0)
ARRAY = np.array([1.0, 2.0], np.float32)
VARIABLE = tf.Variable(1.0)
PARAMETERS = {"w": tf.Variable([1.0, 2.0]), "b": tf.Variable(3.0)}
MODEL = Model()
OFFSETS = (np.ones(2, np.float32), tf.Variable([1.0, 1.0]))


@pcbatch.autobatch(jit=False)
def by_name(x):
    return x + TENSOR + tf.reduce_sum(ARRAY) + VARIABLE


@pcbatch.autobatch(jit=False)
def by_path(x):
    return x + tf.reduce_sum(MODEL.w) + tf.reduce_sum(PARAMETERS["w"]) + MODEL.layers[1]


@pcbatch.autobatch(jit=False)
def structures(x):
    first, second = OFFSETS
    return x + tf.reduce_sum(first + second) + sum(tf.reduce_sum(each) for each in PARAMETERS.values())


@pcbatch.autobatch(jit=False)
def by_calling(x):
    return MODEL(x)


def test_by_name(monkeypatch):
    assert value(by_name(ONES)) == [6.0, 6.0, 6.0]
    before = compilations(by_name)
    VARIABLE.assign(11.0)
    assert value(by_name(ONES)) == [16.0, 16.0, 16.0]
    monkeypatch.setitem(globals(), "TENSOR", tf.constant(101.0))  # bound anew
    assert value(by_name(ONES)) == [116.0, 116.0, 116.0]
    monkeypatch.setitem(globals(), "ARRAY", np.array([1.0, 2.0], np.float32))
    ARRAY[0] = 1001.0  # changed in place
    assert value(by_name(ONES)) == [1116.0, 1116.0, 1116.0]
    assert compilations(by_name) == before


def test_by_path():
    assert value(by_path(ONES)) == [11.0, 11.0, 11.0]
    before = compilations(by_path)
    MODEL.w.assign([11.0, 2.0])
    PARAMETERS["w"].assign([101.0, 2.0])
    MODEL.layers[1].assign(1004.0)
    assert value(by_path(ONES)) == [1121.0, 1121.0, 1121.0]
    assert compilations(by_path) == before


def test_structures_of_arrays_used_whole():
    OFFSETS[1].assign([1.0, 1.0])
    PARAMETERS["w"].assign([1.0, 2.0])
    assert value(structures(ONES)) == [11.0, 11.0, 11.0]
    before = compilations(structures)
    OFFSETS[1].assign([1.0, 11.0])
    PARAMETERS["b"].assign(103.0)
    assert value(structures(ONES)) == [121.0, 121.0, 121.0]
    assert compilations(structures) == before
    PARAMETERS["b"].assign(3.0)


def test_a_module_that_is_called():
    MODEL.w.assign([1.0, 2.0])
    assert value(by_calling(ONES)) == [3.0, 3.0, 3.0]
    before = compilations(by_calling)
    MODEL.w.assign([1.0, 4.0])
    assert value(by_calling(ONES)) == [5.0, 5.0, 5.0]
    assert compilations(by_calling) == before


def test_a_keras_layer_that_is_called():
    dense = tf.keras.layers.Dense(2)
    dense.build((None, 3))

    @pcbatch.autobatch(jit=False)
    def layered(x):
        return dense(x[None])[0]

    dense.set_weights([np.ones((3, 2)), np.array([0.0, 1.0])])
    batch = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], np.float32)
    assert value(layered(batch)) == [[6.0, 7.0], [0.0, 1.0]]
    dense.set_weights([np.zeros((3, 2)), np.array([5.0, 6.0])])
    assert value(layered(batch)) == [[5.0, 6.0], [5.0, 6.0]]
    assert compilations(layered) == 1


@pcbatch.autobatch(jit=False)
def looked_up(i):
    return tf.nn.embedding_lookup(TABLE, i) + tf.gather(TABLE, i) + TABLE[i]


TABLE = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("jit", [False, True])
def test_a_variable_gathered_by_an_index_of_each_lane(jit):
    looked = looked_up.options(jit=jit)
    assert value(looked(np.array([2, 0]))) == [[15.0, 18.0], [3.0, 6.0]]
    assert value(looked(np.array([1, 1]))) == [[9.0, 12.0], [9.0, 12.0]]
    assert compilations(looked) == 1


# -- what a change costs -------------------------------------------------------------------------------------


def scaled_by(array, factor):
    """A closure over an array and a number, both of which can be bound anew."""

    def rebind(new_array, new_factor):
        nonlocal array, factor
        array, factor = new_array, new_factor

    @pcbatch.autobatch(jit=False)
    def scaled(x):
        return factor * x * tf.reduce_sum(array)

    return scaled, rebind


def test_closures_array_of_a_new_shape_compiles_anew():
    scaled, rebind = scaled_by(np.ones(2, np.float32), 1)
    assert value(scaled(ONES)) == [2.0, 2.0, 2.0]
    rebind(np.ones(5, np.float32), 1)
    assert value(scaled(ONES)) == [5.0, 5.0, 5.0]
    assert compilations(scaled) == 2


def test_a_number_is_part_of_the_program():
    scaled, rebind = scaled_by(np.ones(2, np.float32), 1)
    assert value(scaled(ONES)) == [2.0, 2.0, 2.0]
    rebind(np.ones(2, np.float32), 10)
    assert value(scaled(ONES)) == [20.0, 20.0, 20.0]
    rebind(np.zeros(2, np.float32), 1)
    assert value(scaled(ONES)) == [0.0, 0.0, 0.0]
    assert compilations(scaled) == 2  # the first program serves again


def test_a_function_is_part_of_the_program():
    activation = tf.nn.relu

    @pcbatch.autobatch(jit=False)
    def activated(x):
        return activation(x)

    assert value(activated(-ONES)) == [0.0, 0.0, 0.0]
    activation = tf.abs
    assert value(activated(-ONES)) == [1.0, 1.0, 1.0]
    assert compilations(activated) == 2


@pytest.mark.parametrize("kind", [np.asarray, tf.constant, tf.Variable])
def test_the_program_does_not_contain_the_arrays(kind):
    """A captured array is an operand: 40 MB of it leave the traced program as small as it was."""
    large = kind(np.zeros(10_000_000, np.float32))

    @pcbatch.autobatch(jit=False)
    def picked(i):
        return large[i] + tf.reduce_max(large)

    batch = tf.constant([1, 2])
    assert value(picked(batch)) == [0.0, 0.0]
    machine = picked.pipeline(batch).machine
    assert machine.program.shared == ("large",)
    traced = machine._whole(2).get_concrete_function(batch, tf.convert_to_tensor(large))
    assert traced.graph.as_graph_def().ByteSize() < 1_000_000


# -- several namespaces --------------------------------------------------------------------------------------


def test_equal_names_in_two_modules_mean_different_things():
    """Each function reads the globals of its own module, though both end up in one program."""

    @pcbatch.autobatch(jit=False)
    def both(x):
        return left.weighted(x) - right.weighted(x)

    assert value(both(ONES)) == [2 * 3.0 - 5 * 7.0] * 3
    assert value(both(2 * ONES)) == [2 * 6.0 - 5 * 14.0] * 3


# -- names ---------------------------------------------------------------------------------------------------

PROGRAM, _pcb, _at = 3.0, 4.0, 5.0
network = types.SimpleNamespace(w=np.float32(1.0))
networks = (types.SimpleNamespace(w=np.float32(10.0)), types.SimpleNamespace(w=np.float32(20.0)))


def named_b0(x):
    return x + 1.0


@pcbatch.autobatch(jit=False)
def named(x):
    return named_b0(x) * PROGRAM + _pcb + _at


@pcbatch.autobatch(jit=False)
def hiding(x):
    inner = [network.w for network in networks]
    called = (lambda network: network.w)(networks[1])
    taken = (lambda network_w: network_w + network.w)(x)
    return inner[0] + called + taken + network.w


def test_captured_names_that_generated_code_uses_too():
    """`named_b0` would be the name of the first block's piece, `PROGRAM` that of the table."""
    assert value(named(ONES)) == [15.0] * 3


def test_inner_scopes_hide_captured_names():
    """A parameter of a lambda or a target of a comprehension is no captured value, whatever its name."""
    assert value(hiding(ONES)) == [33.0] * 3
    assert value(hiding.single(1.0)) == 33.0
