"""Threefry-2x32 with 20 rounds, a counter-based random function of a key and a counter, on TensorFlow operations.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; rotations and the parity
constant are those of the authors' Random123 library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Bits by which the second word is rotated in each of the four rounds of a group, by turns."""
PARITY = 0x1BD11BDA
"""A constant with which the two words of a key give a third."""


def threefry2x32(key0: tf.Tensor, key1: tf.Tensor, x0: tf.Tensor, x1: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Encrypt the counter words `x0`, `x1` under the key words `key0`, `key1`.

    All four are uint32 tensors of one rank, at least 1, that broadcast against each other; so are the two results.
    Nothing but integer arithmetic modulo 2**32: the results are the same bits on every device and in every mode.
    """
    y0, y1, _ = _drawn(key0, key1, x0, x1)
    return y0, y1


def threefry32(key0: tf.Tensor, key1: tf.Tensor, x0: tf.Tensor, x1: tf.Tensor) -> tf.Tensor:
    """The exclusive or of the two words that `threefry2x32` gives."""
    return _drawn(key0, key1, x0, x1)[2]


def _drawn(*operands: tf.Tensor, apart: bool | None = None) -> list[tf.Tensor]:
    """Return both words and their exclusive or, by one call; XLA removes unused ones.

    `apart` is whether the rounds are a piece of code of their own; by default that goes by the size of the draw.
    """
    shape = tf.TensorShape(())
    for operand in operands:
        shape = tf.broadcast_static_shape(shape, operand.shape)
    if apart is None:
        apart = (shape.num_elements() or CHECKSUM) >= CHECKSUM and not graphs.on_gpu()
    results = _compiled_rounds(apart)(*operands)
    for result in results:
        result.set_shape(shape)
    if tf.is_symbolic_tensor(results[0]):
        _keep_whole(results[0].op, apart)
    return list(results)


def _rounds(key0: tf.Tensor, key1: tf.Tensor, x0: tf.Tensor, x1: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Five groups of four rounds, each followed by an injection of the key; traced into the present graph."""
    add, xor, either, left, right = map(_operation, ("AddV2", "BitwiseXor", "BitwiseOr", "LeftShift", "RightShift"))
    number = cache(lambda value: tf.constant(value, tf.uint32))
    keys = (key0, key1, xor(xor(key0, key1), number(PARITY)))
    x0, x1 = add(x0, key0), add(x1, key1)
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            x1 = xor(either(left(x1, number(distance)), right(x1, number(32 - distance))), x0)
        x0 = add(x0, keys[(group + 1) % 3])
        x1 = add(x1, add(keys[(group + 2) % 3], number(group + 1)))
    return x0, x1


def _operation(kind: str) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """The operation of this type on two uint32 tensors: TensorFlow's function takes five times as long to make it."""
    graph, words = tf.compat.v1.get_default_graph(), {"T": tf.compat.v1.AttrValue(type=tf.uint32.as_datatype_enum)}
    return lambda a, b: private.operation(graph, kind, (a, b), (tf.uint32,), words)[0]


def _words(key0: tf.Tensor, key1: tf.Tensor, x0: tf.Tensor, x1: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The two words of the rounds and their exclusive or."""
    y0, y1 = _rounds(key0, key1, x0, x1)
    return y0, y1, _operation("BitwiseXor")(y0, y1)


CHECKSUM = 8
"""A loop of fewer turns LLVM takes for no checksum."""


def _apart(key0: tf.Tensor, key1: tf.Tensor, x0: tf.Tensor, x1: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The two words of the rounds and their exclusive or, as a piece of code of its own under XLA.

    In a conditional, that is, whose condition always holds, which XLA cannot know. Else it would fuse the rounds into
    the loop of whatever reads the words. A loop of 8, 16, 24, .. turns that keeps the larger of two numbers (argmax, a
    maximum of floats) LLVM takes for a checksum (HashRecognize), and it follows every path through the rounds, of which
    there are 3**20: the compilation never ends. XLA would also compute the rounds anew for each reader.
    Draws of fewer numbers than such a loop has turns do without: a conditional costs a few microseconds. So do all on a
    GPU, where an element is a thread's, and where the host would wait for the condition.
    """

    def words() -> tuple[tf.Tensor, ...]:
        return tuple(_compiled_rounds(apart=False)(key0, key1, x0, x1))

    def never() -> tuple[tf.Tensor, ...]:
        # A loop, since XLA makes a selection of a conditional whose arms are short.
        nothing = key0 + key1 + x0 + x1
        (nothing,) = tf.while_loop(lambda x: tf.reduce_any(x > 0), lambda x: (x // 2,), (nothing,))
        return nothing, nothing, nothing

    first = tf.bitcast(tf.reshape(key0, [-1])[:1], tf.int32)
    always = tf.reduce_all(tf.minimum(first, 0) <= 0)  # also where there are no lanes
    return tuple(tf.cond(always, words, never))


@cache
def _compiled_rounds(apart: bool) -> Any:
    """The rounds as one function for all shapes, which XLA and the graph optimiser inline.

    A draw is then one call in its caller's graph instead of 120 operations, and one dispatch in eager mode.
    """
    words = tf.TensorSpec(None, tf.uint32)
    with tf.init_scope():  # not inside whichever graph happens to draw first
        traced = tf.function(_apart if apart else _words, input_signature=(words,) * 4, autograph=False)
        return traced.get_concrete_function()


def _keep_whole(call: Any, apart: bool) -> None:
    """Tell the vectoriser that the rounds, which the operation `call` runs, are elementwise, so that it keeps the call.

    Without the rule it converts the body operation by operation at each draw: the same results, but 160 ms of tracing a
    draw instead of 14 (2 CPU cores).
    """

    def convert(inputs: Any) -> list[tuple[tf.Tensor, bool]]:
        # In a copy of pfor, which is pcbatch's own, what is stacked are lanes, over which no program has a loop.
        known = None if private.is_tensorflows(inputs) else apart
        # The operands have one rank, so a lane axis in front of some of them broadcasts against the others.
        return [(y, True) for y in _drawn(*(operand.t for operand in inputs.inputs), apart=known)]

    private.set_rule(call, convert)
