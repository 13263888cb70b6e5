"""Products with one matrix that all lanes share: the values of NumPy, and its transpose made once, before the loop."""

import re

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import graphs
from pcbatch.runtime.costs.device import CPU

FEW = CPU.few_rows
RNG = np.random.default_rng(0)
WIDE = tf.constant(RNG.normal(size=(12, 5)) / 4, tf.float32)
TURNS = np.array([0, 3, 1, 7], np.int32)


@pcbatch.autobatch(in_axes=(0, 0, None))
def vectors(x, turns, w):
    """`turns` steps of a network that reads a shared matrix both ways."""
    for _ in range(turns):
        x = x + tf.linalg.matvec(w, tf.tanh(tf.linalg.matvec(w, x)), transpose_a=True)
    return x


@pcbatch.autobatch
def rows(x, turns):
    """The same of two rows of each lane, with a captured matrix; and of the transpose of the rows."""
    for _ in range(turns):
        hidden = tf.tanh(tf.matmul(x, WIDE, transpose_b=True))
        columns = tf.matmul(tf.transpose(hidden), tf.transpose(tf.transpose(WIDE)), transpose_a=True)
        x = x + 0.5 * (columns + tf.matmul(hidden, WIDE))
    return x


@pytest.mark.parametrize("jit", [True, False])
def test_values(jit):
    """As lane by lane."""
    x, pairs = RNG.normal(size=(4, 5)).astype(np.float32), RNG.normal(size=(4, 2, 5)).astype(np.float32)
    found = vectors.options(jit=jit)(x, TURNS, WIDE), rows.options(jit=jit)(pairs, TURNS)
    w = WIDE.numpy().astype(np.float64)
    for lane, turns in enumerate(TURNS):
        one, two = x[lane].astype(np.float64), pairs[lane].astype(np.float64)
        for _ in range(turns):
            one, two = one + np.tanh(w @ one) @ w, two + np.tanh(two @ w.T) @ w
        np.testing.assert_allclose(found[0][lane], one, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[1][lane], two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize(
    ("lanes", "count", "length", "width"), [(3, 0, 2, 4), (3, 2, 0, 4), (3, 2, 4, 0), (0, 2, 4, 3)]
)
def test_nothing_to_multiply(jit, lanes, count, length, width):
    """Empty operands and no lanes."""

    @pcbatch.autobatch(in_axes=(0, None), jit=jit)
    def product(x, w):
        return tf.matmul(x, w, transpose_b=True)

    found = product(tf.ones([lanes, count, length]), tf.ones([width, length]))
    np.testing.assert_array_equal(found, np.zeros([lanes, count, width]))


def program(function, *arguments):
    """What XLA makes of a batched function on a CPU, its computations apart."""
    compiled = tf.function(function.options(form="lockstep", max_depth=8).__call__, jit_compile=True)
    text = compiled.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo", platform_name="CPU")
    return re.split(r"\n(?=ENTRY |%)", text)


@pytest.mark.parametrize("lanes", [4, FEW + 4])
def test_transposed_once(lanes, monkeypatch):
    """Where lanes are few the transpose is made before the loop, and all products read their matrix as it lies."""
    monkeypatch.setattr(graphs, "has_gpu", lambda: False)
    arguments = tf.zeros([lanes, 5]), tf.zeros(lanes, tf.int32), WIDE
    parts = program(vectors, *arguments)
    products = [line for part in parts for line in part.splitlines() if " dot(" in line and "MatMul" in line]
    turning = [part for part in parts if re.search(r"f32\[5,12\]\S* (copy|transpose|fusion)\(", part)]
    assert products
    if lanes <= FEW:
        assert all("rhs_contracting_dims={0}" in line for line in products)
        assert any(part.startswith("ENTRY") for part in turning)
        assert not any(" dot(" in part for part in turning)
    else:
        assert any("rhs_contracting_dims={1}" in line for line in products)
        assert not turning
