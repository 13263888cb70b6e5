"""Threefry-2x32 with 20 rounds, a counter-based random function of a key and a counter, on TensorFlow operations.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; rotations and the parity
constant are those of the authors' Random123 library.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import tensorflow as tf

try:  # TensorFlow's vectoriser has no public way to add a rule
    from tensorflow.python.ops.parallel_for import pfor as _pfor
except ImportError:
    _pfor = None

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(key0: tf.Tensor, key1: tf.Tensor, x0: tf.Tensor, x1: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Encrypt the counter words `x0`, `x1` under the key words `key0`, `key1`.

    All four are uint32 tensors of one rank, at least 1, that broadcast against each other; so are the two results.
    Nothing but integer arithmetic modulo 2**32: the results are the same bits on every device and in every mode.
    """
    shape = tf.TensorShape(())
    for operand in (key0, key1, x0, x1):
        shape = tf.broadcast_static_shape(shape, operand.shape)
    y0, y1 = _compiled_rounds()(key0, key1, x0, x1)
    y0.set_shape(shape)
    y1.set_shape(shape)
    if tf.is_symbolic_tensor(y0):
        _keep_whole(y0.op)
    return y0, y1


def _rounds(key0: tf.Tensor, key1: tf.Tensor, x0: tf.Tensor, x1: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Five groups of four rounds, each followed by an injection of the key."""
    xor, left, right = tf.bitwise.bitwise_xor, tf.bitwise.left_shift, tf.bitwise.right_shift
    keys = (key0, key1, xor(xor(key0, key1), tf.constant(_PARITY, tf.uint32)))
    x0, x1 = x0 + key0, x1 + key1
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            up, down = tf.constant(distance, tf.uint32), tf.constant(32 - distance, tf.uint32)
            x0 = x0 + x1
            x1 = xor(tf.bitwise.bitwise_or(left(x1, up), right(x1, down)), x0)
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + tf.constant(group + 1, tf.uint32))
    return x0, x1


@cache
def _compiled_rounds() -> Any:
    """The rounds as one function for all shapes, which XLA and the graph optimiser inline.

    A draw is then one call in its caller's graph instead of 120 operations, and one dispatch in eager mode.
    """
    words = tf.TensorSpec(None, tf.uint32)
    with tf.init_scope():  # not inside whichever graph happens to draw first
        return tf.function(_rounds, input_signature=(words,) * 4, autograph=False).get_concrete_function()


def _keep_whole(call: Any) -> None:
    """Tell the vectoriser that the rounds, which the operation `call` runs, are elementwise, so that it keeps the call.

    Without the rule it converts the body operation by operation at each draw: the same results, but 160 ms of tracing a
    draw instead of 14 (2 CPU cores). pfor looks for a rule on the operation itself before it asks its registry, which
    is everybody's.
    """
    wrap = getattr(_pfor, "wrap", None)
    if wrap is None:
        return

    def convert(pfor_input: Any) -> Any:
        # The operands have one rank, so a lane axis in front of some of them broadcasts against the others.
        return [wrap(y, True) for y in threefry2x32(*(operand.t for operand in pfor_input.inputs))]

    call.pfor_converter = convert
