"""Random keys: made from a seed, split, folded, and turned into bits."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.random.threefry import threefry2x32, threefry32

Shape = int | Sequence[int]


def key(seed: Any) -> tf.Tensor:
    """The key of a seed: a uint32 tensor of shape `[2]`, the high and the low half of the seed as a 64-bit integer.

    `seed` is a Python integer or a scalar integer tensor. Equal to `jax.random.PRNGKey(seed)`.

    >>> key(42).numpy()
    array([ 0, 42], dtype=uint32)
    """
    return tf.stack(_words(seed, "seed"))


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
    high, low = (tf.reshape(word, [1]) for word in _words(data, "data"))
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


def _words(number: Any, name: str) -> tuple[tf.Tensor, tf.Tensor]:
    """The high and the low uint32 word of a scalar integer, as scalars."""
    if isinstance(number, (int, np.integer)):
        high, low = halves(number, name)
        return tf.constant(high, tf.uint32), tf.constant(low, tf.uint32)
    tensor = tf.convert_to_tensor(number)
    if not tensor.dtype.is_integer or tensor.shape.rank not in (0, None):
        raise TypeError(f"{name} must be a scalar integer, not {tensor.dtype.name}{tensor.shape}")
    whole = tf.cast(tensor, tf.uint64)
    return tf.cast(tf.bitwise.right_shift(whole, tf.constant(32, tf.uint64)), tf.uint32), tf.cast(whole, tf.uint32)
