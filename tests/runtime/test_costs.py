"""The cost model: operations by hand-computed figures, and blocks of whole programs."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.costs.estimate import block_costs
from tests.runtime import tables
from tests.runtime.tables import piece

BACKEND = TensorFlowBackend()
X = TensorType("float32", (8,))
M = TensorType("float32", (6, 6))
IMAGE = TensorType("float32", (10, 12, 3))
KERNEL = TensorType("float32", (3, 3, 3, 5))
NUMBER = TensorType("int32")


def cost(function, *reads, shared=()):
    """The cost of a piece with one output."""
    names = [f"x{i}" for i, _ in enumerate(reads)]
    operands = [f"s{i}" for i, _ in enumerate(shared)]
    one = piece(lambda *values: (function(*values),), " ".join(names), "y", shared=" ".join(operands))
    return BACKEND.facts(one, reads, shared).cost


@tf.function
def helper(x):
    return x * 2.0 + 1.0


def gradient(x, w):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.linalg.matvec(w, x) ** 2)
    return tape.gradient(y, x)


def until(bound):
    return lambda x: tf.while_loop(lambda i, x: i < bound, lambda i, x: (i + 1, x * 2.0), (0, x))[1]


def unknown_bound(x):
    return tf.while_loop(lambda x: tf.reduce_sum(x) < 9.0, lambda x: x * 2.0, (x,))[0]


@pytest.mark.parametrize(
    ("function", "reads", "expected"),
    [
        (lambda x: x, (X,), 0),
        (lambda x: x + 1.0, (X,), 8),
        (lambda x: tf.exp(x) * 2.0, (X,), 8 + 8),
        (lambda x: tf.reduce_sum(x), (X,), 8),
        (lambda x: tf.reshape(x, [2, 4])[1], (X,), 4),
        (lambda x: x[:, None] - x[None, :], (X,), 8 + 8 + 64),
        (lambda m: m @ m, (M,), 216),
        (lambda m: tf.matmul(m[:2], m, transpose_b=True), (M,), 12 + 2 * 6 * 6),
        (lambda x, m: tf.linalg.matvec(m, x[:6]), (X, M), 6 + 36),
        (lambda m: tf.einsum("ij,kj->i", m, m), (M,), 216),
        (lambda m: tf.einsum("...i,i->...", m, m[0]), (M,), 6 + 36),
        (tf.linalg.cholesky, (M,), 72),
        (tf.linalg.inv, (M,), 216),
        (lambda m: tf.linalg.solve(m, m[:, :2]), (M,), 12 + 72 + 6 * 12),
        (lambda m: tf.linalg.triangular_solve(m, m[:, :2]), (M,), 12 + 0.5 * 6 * 12),
        (lambda m: tf.linalg.qr(m)[1], (M,), 432),
        (lambda x: tf.sort(x, direction="DESCENDING"), (X,), 8 * 3),
        (lambda x: tf.abs(tf.signal.rfft(x)), (X,), 8 * 3 + 5),
        (lambda i, k: tf.nn.conv2d(tf.expand_dims(i, 0), k, 1, "SAME"), (IMAGE, KERNEL), 10 * 12 * 5 * 27),
        (lambda i, k: tf.nn.conv2d(tf.expand_dims(i, 0), k, 1, "VALID"), (IMAGE, KERNEL), 8 * 10 * 5 * 27),
        (
            lambda i, k: tf.nn.depthwise_conv2d(tf.expand_dims(i, 0), k[..., :2], [1] * 4, "SAME"),
            (IMAGE, KERNEL),
            54 + 120 * 6 * 9,
        ),
        (helper, (X,), 8 + 8),
        (lambda x: tf.cond(x[0] > 0.0, lambda: x * 2.0, lambda: x * 3.0 + 1.0), (X,), 1 + 1 + 8 + 8 + 8),
        (until(5), (X,), 5 * (1 + 1 + 1 + 8)),
        (unknown_bound, (X,), 16 * (8 + 1 + 1 + 8)),
    ],
)
def test_operations(function, reads, expected):
    """Multiply-adds for linear algebra, elements for the rest, loops by their turns."""
    assert cost(function, *reads) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("condition", "tests", "step", "start", "turns"),
    [
        (lambda i: i <= 10, 1, 2, 0, 6),
        (lambda i: i > 0, 1, -3, 10, 4),
        (lambda i: tf.greater(10, i), 1, 1, 3, 7),
        (lambda i: tf.logical_and(i < 10, i < 7), 3, 1, 0, 7),
        (lambda i: i < 10, 1, 1, 10, 0),
        (lambda i: i < 10, 1, -1, 0, 16),
    ],
)
def test_turns_of_a_loop(condition, tests, step, start, turns):
    """Counters up and down; one that never gets there counts as an unknown number of turns."""

    def loop(x):
        return tf.while_loop(lambda i, x: condition(i), lambda i, x: (i + step, x @ x), (start, x))[1]

    assert cost(loop, M) == pytest.approx(turns * (216 + tests + 2))  # two counters: ours and TensorFlow's own


def test_loops_of_tensorflow_itself():
    """`map_fn` turns once for each row, `maximum_iterations` bounds a loop."""
    rows = cost(lambda m: tf.map_fn(lambda row: tf.tensordot(row, row, 1), m), M)
    assert 6 * 6 < rows < 6 * (6 + 20)
    bounded = tf.function(
        lambda m: tf.while_loop(lambda m: tf.reduce_sum(m) > 0.0, lambda m: (m @ m,), (m,), maximum_iterations=4)[0]
    )
    assert cost(bounded, M) == pytest.approx(4 * (216 + 36 + 1 + 1 + 1 + 1))


def test_shared_operands():
    """A matrix that all lanes share counts in the product with a lane's vector; what is made of it alone is free."""
    data = TensorType("float32", (10_000, 100))
    vector = TensorType("float32", (100,))
    assert cost(lambda v, d: tf.linalg.matvec(d, v), vector, shared=(data,)) == 1_000_000
    assert cost(lambda v, d: v + tf.reduce_sum(tf.exp(d)), vector, shared=(data,)) == 100
    assert cost(lambda i, d: tf.gather(d, i), NUMBER, shared=(data,)) == 100


def test_a_gradient_is_two_products():
    """Forward and backward; results that nobody uses cost nothing."""
    w = TensorType("float32", (50, 8))
    assert 2 * 400 <= cost(gradient, X, shared=(w,)) <= 2 * 400 + 6 * 50
    assert cost(lambda x, w: (tf.linalg.matvec(w, x), x + 1.0)[1], X, shared=(w,)) == 8


def test_captured_arrays_and_no_inputs():
    """What no lane goes into is computed once for all lanes: it costs a row nothing."""
    constant = tf.constant(np.eye(64, dtype=np.float32))
    assert cost(lambda: constant @ constant) == 0
    assert cost(lambda x: tf.reduce_sum(constant @ constant) + x, X) == 8


def test_blocks_of_a_program():
    """At least 1 each; stores by what they write; a stated cost goes before the estimate."""
    program = tables.reverse()
    assert block_costs(program, BACKEND) == (1.0, 2.0, 2.0, 1.0)
    stated = dataclasses.replace(program.blocks[1], cost=1000.0)
    changed = dataclasses.replace(program, blocks=(program.blocks[0], stated, *program.blocks[2:]))
    assert block_costs(changed, BACKEND) == (1.0, 1000.0, 2.0, 1.0)


def test_a_dear_block_stands_out():
    """From a user's function: the block of the product, and no other, is expensive."""
    w = np.eye(32, dtype=np.float32)

    @pcbatch.autobatch
    def power(x, n):
        while n > 0:
            x = tf.linalg.matvec(w, x)
            n = n - 1
        return x

    compilation = power.pipeline(np.ones((2, 32), np.float32), np.array([1, 2], np.int32))
    costs = block_costs(compilation.table, BACKEND)
    assert sorted(costs)[-2] < 40
    assert max(costs) == pytest.approx(32 * 32 + 2)  # and the counter, and the loop's condition
