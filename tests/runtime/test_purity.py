"""Operations that would happen once for all lanes are refused when they are tried."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.tensorflow.symbols import Symbols

VECTOR = TensorType("float32", (3,))
VARIABLE = tf.Variable(1.0)
inner = tf.function(lambda x: tf.random.stateless_truncated_normal([], [1, 2]), autograph=False)
nested = tf.function(lambda x: inner(x) + 1.0, autograph=False)


@pytest.mark.parametrize(
    ("call", "code", "word"),
    [
        (lambda x: tf.random.normal([]), "PCB118", "RandomStandardNormal"),
        (lambda x: tf.nn.dropout(x, 0.5), "PCB118", "RandomUniform"),
        (lambda x: tf.random.stateless_truncated_normal([], [1, 2]), "PCB118", "pcbatch.random"),
        (lambda x: tf.random.stateless_gamma([], [1, 2], 1.0), "PCB118", "pcbatch.random"),
        (lambda x: VARIABLE.assign(2.0), "PCB112", "AssignVariableOp"),
        (lambda x: tf.print(x), "PCB119", "Print"),
        (lambda x: tf.debugging.assert_positive(x), "PCB119", "assert"),
        (lambda x: tf.numpy_function(np.sin, [x], tf.float32), "PCB403", "Python"),
        (lambda x: tf.timestamp(), "PCB119", "clock"),
        (lambda x: tf.strings.length(tf.io.read_file("x")), "PCB119", "ReadFile"),
        (inner, "PCB118", "pcbatch.random"),
        (nested, "PCB118", "pcbatch.random"),
        (lambda x: tf.map_fn(lambda v: v + tf.random.normal([]), x), "PCB118", "hidden state"),
    ],
)
def test_impure_operations_are_refused(call, code, word):
    symbols = Symbols()
    x = symbols.symbol(VECTOR)
    with pytest.raises(PieceRefusalError, match=word) as caught:
        symbols.called(lambda: call(x))
    assert caught.value.code == code
    symbols.called(lambda: tf.sin(x))  # what was refused is not refused again, at another place


def test_an_operation_that_fails_is_not_blamed_on_the_next_one():
    symbols = Symbols()
    x = symbols.symbol(VECTOR)

    def fails():
        return tf.random.normal([]) + x[7]

    with pytest.raises(ValueError, match="out of bounds"):
        symbols.called(fails)
    symbols.called(lambda: tf.function(tf.sin, autograph=False)(x))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: VARIABLE + x,
        tf.function(lambda x: x * 2.0, autograph=False),
        lambda x: tf.while_loop(lambda k: k < 3, lambda k: k + 1, [0]),
    ],
)
def test_pure_operations_are_not(call):
    symbols = Symbols()
    x = symbols.symbol(VECTOR)
    symbols.called(lambda: call(x))
