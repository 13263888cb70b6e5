"""Recurrent layers of Keras in a body, and loops in operations that collect their turns: values and gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = tf.constant(np.random.default_rng(0).normal(size=(3, 7, 4)).astype(np.float32))
LENGTHS = tf.constant([7, 2, 5])
L = keras.layers
LAYERS = {
    "LSTM": lambda: L.LSTM(5),
    "GRU": lambda: L.GRU(5, return_sequences=True),
    "SimpleRNN": lambda: L.SimpleRNN(5, go_backwards=True),
    "Bidirectional": lambda: L.Bidirectional(L.LSTM(5, return_sequences=True)),
    "masked": lambda: L.LSTM(3, return_sequences=True),
    "stacked cells": lambda: L.RNN([L.LSTMCell(3), L.GRUCell(2)]),
}


def compared(function, one, weights, arguments):
    """Values and gradients of a batch, and those of `one` for a lane after another on one tape."""
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        found = function(*arguments)
        loss = tf.reduce_sum(found**2)
    ours = tape.gradient(loss, [arguments[0], *weights])
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        rows = tf.stack([one(*(each[lane] for each in arguments)) for lane in range(len(found))])
        loss = tf.reduce_sum(rows**2)
    wanted = tape.gradient(loss, [arguments[0], *weights])
    np.testing.assert_allclose(found, rows, rtol=1e-4, atol=1e-5)
    for got, true in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(got, true, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_in_a_body(name):
    layer = LAYERS[name]()
    layer.build((1, 7, 4))

    if name == "masked":

        def read(x, n):
            return layer(x[None], mask=(tf.range(7) < n)[None])[0]
    else:

        def read(x, n):
            return layer(x[None])[0]

    compared(pcbatch.autobatch(read), read, layer.trainable_weights, [X, LENGTHS])


@pytest.mark.slow
def test_a_layer_in_a_loop_trains_and_is_saved(tmp_path):
    layer, head = L.LSTM(4), L.Dense(1)
    layer.build((1, 7, 4))
    head.build((1, 4))

    @pcbatch.autobatch
    def read(x, n):
        state = tf.zeros([4])
        for _ in range(n):
            state = layer(x[None] + state)[0]
        return head(state[None])[0, 0]

    weights = [*layer.trainable_weights, *head.trainable_weights]
    counts = tf.constant([2, 0, 1])
    compared(read, read.single, weights, [X, counts])
    optimizer, losses = keras.optimizers.Adam(0.1), []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((read(X, counts) - [1.0, 0.0, -1.0]) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        losses.append(float(loss))
    assert losses[-1] < losses[0]
    module = tf.Module()
    module.weights = weights
    module.read = tf.function(
        lambda x, n: read.run(x, n).value,
        input_signature=[tf.TensorSpec([None, 7, 4]), tf.TensorSpec([None], tf.int32)],
    )
    wanted = read(X, counts)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.read(X, counts), wanted, rtol=1e-5)


W = tf.Variable([0.9, 0.8])
LONG = tf.constant(np.random.default_rng(1).normal(size=(3, 80, 2)).astype(np.float32))


def scanned(x):
    return tf.scan(lambda a, r: tf.tanh(W * a + r), x)


def test_shared_values_get_what_comes_back_through_a_list_of_turns():
    """Without XLA, of more turns than are written out: the gradient by `W` once was zero."""
    compared(pcbatch.autobatch(scanned, jit=False), scanned, [W], [LONG])
