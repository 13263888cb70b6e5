"""What is kept of a row between the way forward and the way back."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.adjoint.truth import assert_alike, batched, singly

WIDTH = 4
random = np.random.default_rng(3)
MATRIX = tf.Variable(random.standard_normal((WIDTH, 3 * WIDTH)))
BIAS = tf.Variable(random.standard_normal(3 * WIDTH))


def gates(x):
    return tf.split(tf.linalg.matvec(MATRIX, x, transpose_a=True) + BIAS, 3)


@pcbatch.autobatch
def activated(x, n):
    for _ in range(n):
        i, o, u = gates(x)
        c = tf.sigmoid(i) * tf.tanh(u)
        x = tf.sigmoid(o) * tf.tanh(c)
    return x


@pcbatch.autobatch
def squared(x, n):
    for _ in range(n):
        a, b, c = gates(x)
        x = tf.sin(a * b + b * c)
    return x


@pcbatch.autobatch
def first_alone(x, n):
    for _ in range(n):
        a, _, _ = gates(x)
        x = a * a
    return x


@pcbatch.autobatch
def placed(x, n):
    for _ in range(n):
        a = tf.linalg.matvec(MATRIX, x, transpose_a=True)
        place = tf.cast(a[0] > 0.0, tf.int32)
        x = tf.tanh(a[place] * a[1] * a[2 : 2 + WIDTH])
    return x


ARGUMENTS = (tf.constant(random.standard_normal((3, WIDTH)), tf.float64), tf.constant([2, 0, 3]))
KEPT = {
    activated: ["Sigmoid", "Sigmoid", "Tanh"],  # and no Tanh of c, which follows from these
    squared: ["MatMul"],
    first_alone: ["MatMul"],  # TensorFlow looks at the other parts for their shapes
    placed: ["GatherV2", *["StridedSlice"] * 3],  # five numbers of twelve
}


@pytest.mark.parametrize("function", KEPT, ids=lambda each: each.__name__)
def test_operations_whose_results_are_kept(function):
    found = re.findall(r"residual \d+ \d+: float64\[.*\]  (\w+), line", function.ir("adjoint", *ARGUMENTS))
    assert sorted(found) == KEPT[function]


@pytest.mark.parametrize("function", [activated, pytest.param(squared, marks=pytest.mark.slow), placed])
def test_gradients(function):
    variables = (MATRIX, BIAS)[: 1 if function is placed else 2]
    assert_alike(batched(function.options(jit=False), ARGUMENTS, variables), singly(function, ARGUMENTS, variables))
