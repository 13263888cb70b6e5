"""Draws of one or several of a number of categories, each a pure function of its key.

Many draws from the same weights are made by inversion: a binary search in the sums of the weights, which are whole
numbers, so that all is exact and the same in every mode. That takes `n + m log n` operations for m draws from n
weights; the Gumbel-max trick, which needs a noise for each weight and draw, takes m * n: 20 times the time of a whole
particle filter of 100 particles.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.random.draws import as_tensor, float_dtype, inverted, randint, scaled
from pcbatch.random.keys import Shape, bits, static_shape, words

_EXACT = 52
"""Number of bits behind the binary point to which a weight is rounded, the largest being 1."""
_SUM = 62
"""The number of bits that a sum of weights has at most."""


def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape | None = None) -> tf.Tensor:
    """Draws of a category from unnormalised log probabilities: int32 indices along `axis` of `logits`.

    `shape` (by default that of `logits` without `axis`) may put further axes of independent draws in front. Without, a
    draw is by the Gumbel-max trick: `argmax(logits + noise)`; a probability is met to 2**-23 (float64 logits: 2**-52),
    and in float32 and float64 it is equal to `jax.random.categorical`, but for ties within rounding. With axes in
    front, draws are by inversion, and a probability is met to 2**-40. A category whose logit is -inf or NaN is not
    drawn beside others, nor are finite ones beside inf.

    >>> from pcbatch.random import key
    >>> int(categorical(key(42), [0.0, 0.0, 5.0]))
    2
    """
    dtype = float_dtype(getattr(logits, "dtype", tf.float32), "logits")
    logits = as_tensor(logits, "logits", dtype)
    if logits.shape.rank == 0 or not -logits.shape.rank <= axis < logits.shape.rank:
        raise ValueError(f"logits of shape {logits.shape} have no axis {axis}")
    sizes = static_shape(logits.shape)
    axis = axis % len(sizes) - len(sizes)
    batch = sizes[:axis] + sizes[len(sizes) + axis + 1 :]
    wanted = batch if shape is None else static_shape(shape)
    front = wanted[: len(wanted) - len(batch)]
    if front + batch != wanted:
        raise ValueError(
            f"shape {list(wanted)} must end with {list(batch)}, the shape of the logits without axis {axis}"
        )
    if not front:
        noise = inverted(key, sizes, dtype, _gumbel)
        return tf.argmax(noise + logits, axis=axis, output_type=tf.int32)
    last = [place for place in range(len(sizes)) if place != len(sizes) + axis] + [len(sizes) + axis]
    rows = tf.reshape(tf.transpose(logits, last), [math.prod(batch), sizes[axis]])
    draws = _inverted_sums(key, _sums(_likelihoods(rows)), math.prod(front))  # [batch, front]
    return tf.reshape(tf.transpose(draws), wanted)


def systematic(key: Any, logits: Any, size: int | None = None) -> tf.Tensor:
    """`size` indices by systematic resampling from unnormalised log weights `[n]`: int32 `[size]`, in ascending order.

    An index with the share `p` of all weights comes `size * p` times, rounded up or down, and on average so: one
    uniform draw moves `size` evenly spaced points. `size` is n by default. For the resampling of particle filters
    (Kitagawa, "Monte Carlo Filter and Smoother", 1996; Carpenter, Clifford, Fearnhead, "Improved Particle Filter for
    Nonlinear Problems", 1999). A share is met to 2**-40, of more than 2000 particles to fewer bits (2**20: to 2**-20).

    >>> from pcbatch.random import key
    >>> systematic(key(42), [0.0, float("-inf"), 0.0, 0.0], 6).numpy()
    array([0, 0, 2, 2, 3, 3], dtype=int32)
    """
    row = _vector(logits, "logits")
    (size,) = static_shape(row.shape[0] if size is None else size, "size")
    sums = _sums(_likelihoods(row[None]), spare=size.bit_length())
    total = sums[0, -1]
    start = tf.cast(scaled([*words(key, ())], tf.cast(total, tf.uint64)), tf.int64)
    points = tf.range(size, dtype=tf.int64) * total + start
    return _places(sums * size, points[None])[0]


def choice(key: Any, a: Any, shape: Shape = (), p: Any = None, replace: bool = True) -> tf.Tensor:
    """Elements of `a`, of `shape`: of `range(a)` if it is a number (int32), else rows of an array along its first axis.

    Each is as likely as the others, or as its weight in `p`, a float tensor `[n]` of numbers >= 0 of any sum (negative
    numbers and NaN count as 0). Without
    `replace` no element comes twice; all of `shape` is one draw then, the first places of a random order (with `p` by
    the Gumbel top-k trick: Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).

    >>> from pcbatch.random import key
    >>> choice(key(42), 10, (4,)).numpy()
    array([0, 6, 0, 2], dtype=int32)
    """
    rows, n = _rows(a)
    sizes = static_shape(shape)
    count = math.prod(sizes)
    if n == 0 and count:
        raise ValueError("there is nothing to choose from")
    if not replace and count > n:
        raise ValueError(f"{count} elements cannot be chosen from {n} without replacement")
    if p is not None:
        weights = _vector(p, "p")
        weights = tf.where(weights > 0, weights, tf.zeros_like(weights))
        if weights.shape[0] != n:
            raise ValueError(f"p has {weights.shape[0]} weights for {n} elements")
    if p is None and replace:
        places = randint(key, sizes, 0, n) if count else tf.zeros(sizes, tf.int32)
    elif p is None:
        places = _order(key, n)[:count]
    elif replace:
        places = _inverted_sums(key, _sums(_shares(weights[None])), count)[0]
    else:
        scores = inverted(key, (n,), tf.float64, _gumbel) + tf.math.log(weights)
        places = tf.math.top_k(scores, count).indices
    places = tf.reshape(places, sizes)
    return places if rows is None else tf.gather(rows, places)


def permutation(key: Any, x: Any) -> tf.Tensor:
    """The numbers `range(x)` in random order (int32 `[x]`), or the rows of an array `x` along its first axis.

    By sorting 63 random bits for each, so that an order is as likely as any other to n**2 * 2**-64.

    >>> from pcbatch.random import key
    >>> permutation(key(42), 5).numpy()
    array([1, 0, 2, 4, 3], dtype=int32)
    """
    rows, n = _rows(x)
    order = _order(key, n)
    return order if rows is None else tf.gather(rows, order)


# -- shared parts ------------------------------------------------------------------------------------------------------


def _rows(a: Any) -> tuple[tf.Tensor | None, int]:
    """The array to choose from, None for numbers, and the number of its rows."""
    if isinstance(a, (int, np.integer)) and not isinstance(a, bool):
        return None, static_shape(int(a), "n")[0]
    rows = tf.convert_to_tensor(a)
    if rows.shape.rank == 0:
        raise TypeError("how many there are to choose from must be known when the program is compiled: a Python number")
    return rows, static_shape(rows.shape)[0]


def _vector(value: Any, name: str) -> tf.Tensor:
    """float64 `[n]` of a float tensor of one axis."""
    dtype = float_dtype(getattr(value, "dtype", tf.float32), name)
    vector = as_tensor(value, name, dtype)
    if vector.shape.rank != 1:
        raise ValueError(f"{name} must have one axis, not shape {vector.shape}")
    static_shape(vector.shape)
    return tf.cast(vector, tf.float64)


def _order(key: Any, n: int) -> tf.Tensor:
    """The numbers below `n` in random order: int32 `[n]`."""
    luck = tf.cast(tf.bitwise.right_shift(bits(key, (n,), tf.uint64), tf.constant(1, tf.uint64)), tf.int64)
    return tf.argsort(luck, stable=True)


def _likelihoods(logits: tf.Tensor) -> tf.Tensor:
    """float64 weights `[.., n]` of log weights, the largest of a row being 1; NaN is no weight."""
    logits = tf.cast(logits, tf.float64)
    logits = tf.where(tf.math.is_nan(logits), tf.constant(-math.inf, tf.float64), logits)
    found = tf.exp(logits - tf.reduce_max(logits, axis=-1, keepdims=True))
    return tf.where(tf.equal(logits, math.inf), tf.ones_like(found), found)


def _shares(weights: tf.Tensor) -> tf.Tensor:
    """Weights `[.., n]`, not below 0, the largest of a row being 1; beside an infinite one the finite ones are 0."""
    found = weights / tf.reduce_max(weights, axis=-1, keepdims=True)
    return tf.where(tf.equal(weights, math.inf), tf.ones_like(found), found)


def _sums(weights: tf.Tensor, spare: int = 0) -> tf.Tensor:
    """int64 `[.., n]`: the sums of float64 weights in [0, 1] up to each place, as multiples of a power of 2.

    Exact from here on, so that modes cannot differ. `spare` bits are left free. What is no weight counts as 0.
    """
    n = weights.shape[-1]
    behind = min(_EXACT, _SUM - n.bit_length() - spare)
    whole = tf.cast(tf.round(tf.where(weights >= 0, weights, tf.zeros_like(weights)) * 2.0**behind), tf.int64)
    return tf.cumsum(whole, axis=-1)


def _inverted_sums(key: Any, sums: tf.Tensor, count: int) -> tf.Tensor:
    """int32 `[rows, count]`: the place of each of `count` independent draws in `sums`, int64 `[rows, n]`."""
    rows = sums.shape[0]
    drawn = [tf.transpose(tf.reshape(word, [count, rows])) for word in words(key, (count * rows,))]
    return _places(sums, tf.cast(scaled(drawn, tf.cast(sums[:, -1:], tf.uint64)), tf.int64))


def _places(sums: tf.Tensor, points: tf.Tensor) -> tf.Tensor:
    """int32 `[rows, m]`: how many of the ascending `sums` `[rows, n]` are at most each of `points` `[rows, m]`.

    By binary search, all points at once. XLA's own search compares every sum with every point.
    """
    n = sums.shape[1]
    place = tf.zeros(points.shape, tf.int32)
    for step in (1 << bit for bit in reversed(range(n.bit_length()))):
        further = place + step
        found = tf.gather(sums, tf.minimum(further - 1, n - 1), batch_dims=1)
        place = tf.where((found <= points) & (further <= n), further, place)
    return tf.minimum(place, n - 1)  # where all weights are 0


def _gumbel(unit: tf.Tensor) -> tf.Tensor:
    tiny = np.finfo(unit.dtype.as_numpy_dtype).tiny  # as jax.random has it
    return -tf.math.log(-tf.math.log(tf.cast(tf.maximum(unit, tiny), tf.float64)))
