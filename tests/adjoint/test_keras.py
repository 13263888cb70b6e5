"""`model.fit`, Keras' optimizers and training loops of one's own, through batched functions."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.adjoint import keras_models as models

slow = pytest.mark.slow


def assert_like_padded(found, expected):
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
    for ours, theirs in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.05),
    "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "adagrad": lambda: keras.optimizers.Adagrad(0.05),
    "clipped": lambda: keras.optimizers.RMSprop(0.01, clipnorm=0.1),
}


@pytest.mark.parametrize(
    ("optimizer", "jit", "eagerly"),
    [
        ("adam", False, False),
        *(pytest.param(*each, marks=slow) for each in [("momentum", True, False), ("adam", False, True)]),
        *(pytest.param(*each, marks=slow) for each in [("adagrad", False, False), ("clipped", False, True)]),
    ],
)
def test_fit(optimizer, jit, eagerly):
    make = OPTIMIZERS[optimizer]
    found = models.fitted(models.Batched(jit), make(), run_eagerly=eagerly)
    assert_like_padded(found, models.fitted(models.Padded(), make(), run_eagerly=eagerly))


def test_what_keras_would_compile_as_a_whole_is_refused_with_what_to_write():
    with pytest.raises(Exception, match=r"PCB532(.|\n)*supports_jit = False"):
        models.fitted(models.Batched(), "sgd", jit_compile=True)


@slow
def test_a_layer_that_says_so_is_not_compiled():
    layer = models.Batched()
    layer.supports_jit = False
    with pytest.warns(UserWarning, match="jit_compile"):
        found = models.fitted(layer, "sgd", jit_compile=True)
    assert_like_padded(found, models.fitted(models.Padded(), "sgd"))


@slow
@pytest.mark.parametrize("eagerly", [False, True])
def test_a_loss_that_is_batched(eagerly):
    def padded(truth, guess):
        error = tf.reduce_sum((truth - guess) ** 2, axis=-1)
        turns = tf.math.ceil(tf.math.log(tf.maximum(error, 0.1) / 0.1) / tf.math.log(2.0))
        return tf.stop_gradient(0.5**turns) * error

    found = []
    for loss in (models.halvings, padded):
        trained = models.model(models.Padded())
        trained.compile(keras.optimizers.SGD(0.1), lambda truth, guess, loss=loss: loss(truth, guess))
        if eagerly:
            trained.run_eagerly = True
        given = [models.TOKENS, models.LENGTHS]
        history = trained.fit(given, models.HAS_THREE, batch_size=8, epochs=2, shuffle=False, verbose=0)
        found.append((history.history["loss"], trained.get_weights()))
    assert_like_padded(*found)


def trained_by_hand(layer, traced):
    model, optimizer = models.model(layer), keras.optimizers.Adam(0.05)
    given = [tf.constant(models.TOKENS), tf.constant(models.LENGTHS)]

    def step():
        with tf.GradientTape() as tape:
            logits = model(given, training=True)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.constant(models.HAS_THREE), logits))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    step = tf.function(step) if traced else step
    return [float(step()) for _ in range(3)], model.get_weights()


@slow
@pytest.mark.parametrize("traced", [False, True])
def test_a_loop_of_ones_own(traced):
    assert_like_padded(trained_by_hand(models.Batched(), traced), trained_by_hand(models.Padded(), traced))


def test_a_weight_is_indexed_by_what_a_lane_computes():
    weight = keras.Variable([[1.0, 2.0], [3.0, 4.0]])

    @pcbatch.autobatch(jit=False)
    def row(i):
        return weight[i]

    with tf.GradientTape() as tape:
        found = row(np.array([1, 1, 0], np.int32))
    np.testing.assert_array_equal(found, [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]])
    np.testing.assert_array_equal(tf.convert_to_tensor(tape.gradient(found, weight.value)), [[1.0, 1.0], [2.0, 2.0]])
