"""Draws of TensorFlow and Keras in a batch: by a seed for each lane with TensorFlow's bits, by keys inside `seeded`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import random
from pcbatch.random import seeded

SEEDS = tf.constant([[1, 2], [3, 4], [-5, 6], [2**31 - 1, -(2**31)]])
KEYS = random.keys(0, 3)
X = tf.constant(np.random.default_rng(0).normal(size=(3, 7, 4)).astype(np.float32))
COUNTS = tf.constant([3, 0, 2])
DROP, NOISE = keras.layers.Dropout(0.4), keras.layers.GaussianNoise(0.5)


def by_seed(seed):
    def uniform(*given, **options):
        return tf.random.stateless_uniform(given[0], seed, *given[1:], **options)

    first = seed[0] // 2
    return {
        "float32": uniform([7]),
        "float64": uniform([3, 3], dtype=tf.float64),
        "float16": uniform([9], dtype=tf.float16),
        "scalar": uniform([]),
        "empty": uniform([0, 2]),
        "int32": uniform([9], -5, 100, dtype=tf.int32),
        "int64": uniform([5], -5, 10**15, dtype=tf.int64),
        "all of int32": uniform([9], None, None, dtype=tf.int32),
        "all of uint64": uniform([5], None, None, dtype=tf.uint64),
        "bounds by lane": uniform([2, 5], first - 7, first + 9, dtype=tf.int32),
        "wide seed": tf.random.stateless_uniform([3], tf.cast(seed, tf.int64) * 123456789),
        "normal": tf.random.stateless_normal([301], seed),
        "same seed": tf.random.stateless_normal([31], [1, 2]) + 0.0 * tf.cast(first, tf.float32),
        "folded": tf.random.fold_in(seed, 3),
        "split": tf.random.split(seed, 3),
        "dropout": tf.nn.experimental.stateless_dropout(tf.ones([20]), 0.5, seed),
        "philox": uniform([7], alg="philox"),
        "extreme": tf.argmax(uniform([16])),
    }


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"jit": False}, marks=pytest.mark.slow),
        *(pytest.param(o, marks=pytest.mark.slow) for o in ({}, {"form": "lockstep"}, {"form": "native"})),
    ],
)
def test_a_seed_for_each_lane_draws_what_tensorflow_draws_for_that_lane_alone(options):
    found = pcbatch.autobatch(by_seed, **options)(SEEDS)
    wanted = [by_seed(seed) for seed in SEEDS]
    for name, rows in found.items():
        np.testing.assert_array_equal(rows, tf.stack([each[name] for each in wanted]), name)


@pytest.mark.parametrize("form", [pytest.param("lockstep", marks=pytest.mark.slow), "native"])
def test_normal_draws_in_a_loop_have_the_bits_of_tensorflow(form):
    @pcbatch.autobatch(form=form)
    def walk(seed, n):
        x = tf.zeros([2])
        for i in range(n):
            x = tf.maximum(x, tf.random.stateless_normal([2], seed + i))
        return x

    def one(seed, n):
        draws = [tf.random.stateless_normal([2], seed + i) for i in range(n)]
        return tf.reduce_max([tf.zeros([2]), *draws], 0)

    wanted = [one(seed, int(n)) for seed, n in zip(SEEDS[:3], COUNTS, strict=True)]
    np.testing.assert_array_equal(walk(SEEDS[:3], COUNTS), wanted)


@pytest.mark.slow
def test_a_gradient_goes_through_what_is_drawn():
    @pcbatch.autobatch
    def drawn(seed, scale):
        return tf.reduce_sum(tf.random.stateless_normal([3], seed, 0.0, scale) ** 2)

    scale = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(scale)
        total = tf.reduce_sum(drawn(SEEDS[:3], scale))
    wanted = [
        2.0 * s * tf.reduce_sum(tf.random.stateless_normal([3], k) ** 2) for k, s in zip(SEEDS, scale, strict=False)
    ]
    np.testing.assert_allclose(tape.gradient(total, scale), wanted, rtol=1e-5)


@pcbatch.autobatch
def turns(key, x, n):
    total = 0.0
    for i in range(n):
        with random.seeded(random.fold_in(key, i)):
            y = tf.nn.dropout(x, 0.5)
            z = tf.nn.dropout(x, 0.5)
        total += tf.reduce_sum(y) - tf.reduce_sum(z)
    return total


@pcbatch.autobatch
def layers(key, x):
    with seeded(key):
        _ = tf.nn.dropout(x, 0.2)
        y = DROP(x, training=True)
        z = DROP(x, training=True)
        u = tf.nn.dropout(x, 0.3)
        v = NOISE(x, training=True)
    return y, z, NOISE(x), u, v


def helper(x):
    return tf.nn.dropout(x, 0.1 + 0.0 * tf.reduce_mean(x))


@pcbatch.autobatch
def helped(key, x):
    with tf.name_scope("outer"), seeded(key):
        return helper(x)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(turns, (KEYS, X, COUNTS)), pytest.param(layers, (KEYS, X), marks=pytest.mark.slow), (helped, (KEYS, X))],
)
def test_a_key_for_each_lane_draws_what_it_draws_alone(function, arguments):
    found = tf.nest.flatten(function(*arguments))
    alone = [tf.nest.flatten(function.single(*(each[lane] for each in arguments))) for lane in range(3)]
    for rows, wanted in zip(found, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(rows, tf.stack(wanted), rtol=1e-5, atol=1e-5)


def test_each_draw_has_a_key_of_its_own_and_seed_generators_stay():
    before = DROP.seed_generator.state.numpy()
    y, z, noise, u, _ = layers(KEYS, X)
    np.testing.assert_array_equal(DROP.seed_generator.state.numpy(), before)
    np.testing.assert_array_equal(noise, X)
    masks = [np.asarray(each) == 0 for each in (y, z, u)]
    assert not any(np.array_equal(a, b) for a, b in [(masks[0], masks[1]), (masks[0], masks[2])])
    assert not np.array_equal(masks[0][0], masks[0][1])
    with seeded(KEYS[0]):
        with seeded(KEYS[1]):
            inner = tf.zeros([4]) + DROP(tf.ones([4]), training=True)
        outer = DROP(tf.ones([4]), training=True)
    with seeded(KEYS[1]):
        np.testing.assert_array_equal(DROP(tf.ones([4]), training=True), inner)
    with seeded(KEYS[0]):
        np.testing.assert_array_equal(DROP(tf.ones([4]), training=True), outer)


@pytest.mark.slow
def test_dropout_inside_of_recurrent_layers_and_attention():
    lstm = keras.layers.LSTM(5, dropout=0.3, recurrent_dropout=0.2)
    attention = keras.layers.MultiHeadAttention(2, 3, dropout=0.5)
    lstm.build((None, 7, 4))
    attention.build((None, 7, 4), (None, 7, 4))

    @pcbatch.autobatch
    def both(key, x):
        with seeded(key):
            return lstm(x[None], training=True)[0], attention(x[None], x[None], training=True)[0]

    for found, wanted in zip(
        both(KEYS, X), zip(*(both.single(k, x) for k, x in zip(KEYS, X, strict=True)), strict=True), strict=True
    ):
        np.testing.assert_allclose(found, tf.stack(wanted), rtol=1e-5, atol=1e-5)


AVERAGES = keras.layers.BatchNormalization()
AVERAGES.build((None, 4))


def without_key(x):
    return tf.nn.dropout(x, 0.5)


def layer_without_key(x):
    return DROP(x, training=True)


def averages(x):
    with seeded(tf.constant([1, 2], tf.uint32)):
        return AVERAGES(x, training=True)


def no_rule(x):
    return tf.random.stateless_gamma([3], tf.cast(x[0, :2], tf.int32), 2.0)


@pytest.mark.parametrize(
    ("function", "code", "help"),
    [
        (without_key, "PCB118", "with pcbatch.random.seeded"),
        (layer_without_key, "PCB112", "with pcbatch.random.seeded"),
        (averages, "PCB112", "outside"),
        (no_rule, "PCB118", "pcbatch.random"),
    ],
)
def test_what_has_no_key_is_refused(function, code, help):
    with pytest.raises(pcbatch.CompileError, match=rf"{code}(.|\n)*{help}"):
        pcbatch.autobatch(function)(X)


def test_what_is_no_key_is_refused_where_it_is_entered():
    with pytest.raises(TypeError, match="a key is a uint32 tensor"), seeded(tf.constant([1, 2])):
        pass
