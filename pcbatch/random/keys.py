"""Random keys: made from a seed, split, folded, and turned into bits by Threefry-2x32 with 20 rounds.

Threefry is a counter-based random function of a key and a counter, here on TensorFlow operations.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; rotations and the parity
constant are those of the authors' Random123 library.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private

# -- threefry ----------------------------------------------------------------------------------------------------------


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


# -- keys --------------------------------------------------------------------------------------------------------------


Shape = int | Sequence[int]


def key(seed: Any) -> tf.Tensor:
    """The key of a seed: a uint32 tensor of shape `[2]`, the high and the low half of the seed as a 64-bit integer.

    `seed` is a Python integer or a scalar integer tensor. Equal to `jax.random.PRNGKey(seed)`.

    >>> key(42).numpy()
    array([ 0, 42], dtype=uint32)
    """
    return tf.stack(_seed_words(seed, "seed"))


def keys(seed: Any, lanes: int) -> tf.Tensor:
    """One key for each lane of a batch: uint32 `[lanes, 2]`, the same as `split(key(seed), lanes)`.

    Lane `i` gets the same key whatever the number of lanes.

    >>> keys(42, 64).shape
    TensorShape([64, 2])
    """
    return split(key(seed), lanes)


def split(key: Any, num: Shape = 2) -> tf.Tensor:
    """`num` new keys that are independent of each other and of `key`: uint32 `[num, 2]`; use `key` no more.

    Key `i` does not depend on `num`. Equal to `jax.random.split` (of JAX 0.5 and later).

    >>> here, there = split(key(42))
    """
    return tf.stack(words(key, static_shape(num, "num")), axis=-1)


def fold_in(key: Any, data: Any) -> tf.Tensor:
    """A new key made of `key` and an integer (a step number, a lane number): uint32 `[2]`.

    `data` is a Python integer or a scalar integer tensor, taken as a 64-bit integer. `fold_in(key, i)` is key `i` of
    `split(key, num)`, so use one of the two on the same key. Equal to `jax.random.fold_in` for `0 <= data < 2**32`.
    """
    key0, key1 = _halves(key)
    high, low = (tf.reshape(word, [1]) for word in _seed_words(data, "data"))
    return tf.concat(threefry2x32(key0, key1, high, low), axis=0)


def bits(key: Any, shape: Shape = (), dtype: Any = tf.uint32) -> tf.Tensor:
    """Independent uniform random bits, as a tensor of `shape` and of dtype uint8, uint16, uint32 or uint64.

    Equal to `jax.random.bits` (of JAX 0.5 and later).

    >>> bits(key(42), (4,)).numpy()
    array([2098992034, 2919706841, 2646866425, 2409546199], dtype=uint32)
    """
    dtype = tf.as_dtype(dtype)
    if dtype not in (tf.uint8, tf.uint16, tf.uint32, tf.uint64):
        raise TypeError(f"random bits are uint8, uint16, uint32 or uint64, not {dtype.name}")
    if dtype == tf.uint64:
        high, low = words(key, static_shape(shape))
        shifted = tf.bitwise.left_shift(tf.cast(high, tf.uint64), tf.constant(32, tf.uint64))
        return tf.bitwise.bitwise_or(shifted, tf.cast(low, tf.uint64))
    sizes = static_shape(shape)
    drawn = tf.reshape(threefry32(*operands(key, sizes)), sizes)
    return drawn if dtype == tf.uint32 else tf.cast(drawn, dtype)


def words(key: Any, shape: tuple[int, ...]) -> tuple[tf.Tensor, tf.Tensor]:
    """Two independent uint32 words for each element of `shape`; element `i` (row-major) is drawn at counter `i`."""
    high, low = threefry2x32(*operands(key, shape))
    return tf.reshape(high, shape), tf.reshape(low, shape)


def operands(key: Any, shape: tuple[int, ...]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """The words of the key, `[1]`, and the words of the counters, `[n]`, for the n elements of `shape`."""
    size = math.prod(shape)
    if size > 2**32:
        raise ValueError(f"a draw has at most 2**32 elements, shape {list(shape)} has more; split the key")
    return *_halves(key), tf.zeros([size], tf.uint32), tf.constant(np.arange(size, dtype=np.uint32))


def static_shape(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """`shape` as a tuple of integers; an integer `n` stands for `(n,)`.

    A tensor is refused even in eager mode, where it would convert: in a batch it does not.
    """
    sizes = tuple(shape) if isinstance(shape, Iterable) and not isinstance(shape, tf.Tensor) else (shape,)
    checked = [-1 if isinstance(size, tf.Tensor) else _index(size) for size in sizes]
    if min(checked, default=0) >= 0:
        return tuple(checked)
    raise TypeError(
        f"{name} must consist of integers >= 0 that are known when the program is compiled, not {shape!r}; "
        "where lanes need different amounts, draw the largest and ignore the rest"
    )


def _index(size: Any) -> int:
    """`size` as an int, -1 if it is none."""
    try:
        return operator.index(size)
    except TypeError:
        return -1


def _halves(key: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """The two words of a key as tensors of shape `[1]`; an error that says how to make a key for anything else."""
    how = "make one with pcbatch.random.key(seed), one per lane with pcbatch.random.keys(seed, lanes)"
    if isinstance(key, (int, float)):
        raise TypeError(f"a key is a uint32 tensor of shape [2], not the number {key!r}; {how}")
    tensor = tf.convert_to_tensor(key)
    if tensor.dtype != tf.uint32:
        raise TypeError(f"a key is a uint32 tensor of shape [2], not of dtype {tensor.dtype.name}; {how}")
    if not tensor.shape.is_compatible_with((2,)):
        hint = "; inside a batched function each lane has its own key" if tensor.shape.rank == 2 else ""
        raise ValueError(f"a key is a uint32 tensor of shape [2], not of shape {tensor.shape}; {how}{hint}")
    key0, key1 = tf.split(tensor, 2)
    return key0, key1


def halves(number: int | np.integer[Any], name: str) -> tuple[int, int]:
    """The high and the low 32 bits of an integer."""
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"{name} must fit in 64 bits, not {number}")
    return int(number) >> 32 & 0xFFFFFFFF, int(number) & 0xFFFFFFFF


def _seed_words(number: Any, name: str) -> tuple[tf.Tensor, tf.Tensor]:
    """The high and the low uint32 word of a scalar integer, as scalars."""
    if isinstance(number, (int, np.integer)):
        high, low = halves(number, name)
        return tf.constant(high, tf.uint32), tf.constant(low, tf.uint32)
    tensor = tf.convert_to_tensor(number)
    if not tensor.dtype.is_integer or tensor.shape.rank not in (0, None):
        raise TypeError(f"{name} must be a scalar integer, not {tensor.dtype.name}{tensor.shape}")
    whole = tf.cast(tensor, tf.uint64)
    return tf.cast(tf.bitwise.right_shift(whole, tf.constant(32, tf.uint64)), tf.uint32), tf.cast(whole, tf.uint32)
