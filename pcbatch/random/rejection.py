"""Draws by loops whose number of turns depends on luck: gamma, beta and Poisson.

A loop ends when every element of every lane has been accepted; elements that have been are left alone, and what a turn
draws for an element depends on its key, its place and the turn. So an element is the same alone and beside others,
though they share a loop. The vectoriser keeps the loops whole, as it does the rounds of Threefry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import tensorflow as tf

from pcbatch.random.draws import as_tensor, broadcasting, float_dtype, standard_normal, unit_draws
from pcbatch.random.keys import Shape, operands, split, static_shape, threefry2x32
from pcbatch.runtime.backends.tensorflow import private

TURNS = 64
"""A turn accepts 19 of 20 gamma draws at least, and 4 of 5 Poisson draws: none has been rejected so often."""
SMALL = 10.0
"""The rate from which on Poisson draws are by rejection; below it they are by search from 0 upwards."""
SEARCHED = 110
"""Bound that no draw of a rate below `SMALL` reaches: its probability is below 2**-64."""
LARGEST = {tf.int32: 2.0**30, tf.int64: 2.0**50}
"""The largest rate, by dtype: a hundred thousand standard deviations and more below the dtype's limit."""


def gamma(key: Any, alpha: Any, shape: Shape | None = None, dtype: Any = tf.float32) -> tf.Tensor:
    """Draws from the gamma distribution of shape parameter `alpha` and rate 1, of `shape` (by default that of `alpha`).

    `alpha` is a number or a float tensor that broadcasts to `shape`; divide a draw by a rate to have that. By Marsaglia
    and Tsang, "A Simple Method for Generating Gamma Variables" (2000), for `alpha` below 1 with their section 6; there
    draws may be too small for `dtype` and read 0. Where `alpha` is not positive and finite, the draw is NaN.

    >>> from pcbatch.random import key
    >>> bool(gamma(key(42), 3.0) > 0)
    True
    """
    alpha, wanted, dtype = _parameter(alpha, "alpha", shape, dtype)
    drawn, boost = _gammas(key, alpha, wanted, dtype)
    return tf.cast(drawn * tf.exp(boost), dtype)


def beta(key: Any, a: Any, b: Any, shape: Shape | None = None, dtype: Any = tf.float32) -> tf.Tensor:
    """Draws from the beta distribution of parameters `a` and `b`, of `shape` (by default that to which both broadcast).

    By two gamma draws, the quotient taken of their logarithms, so that small parameters are no quotient of zeros. A
    draw nearer to 0 or 1 than `dtype` holds is 0 or 1. Parameters as in `gamma`.

    >>> from pcbatch.random import key
    >>> bool(0 < beta(key(42), 2.0, 3.0) < 1)
    True
    """
    if shape is None:
        shape = tuple(tf.broadcast_static_shape(*(tf.convert_to_tensor(each).shape for each in (a, b))))
    first, wanted, dtype = _parameter(a, "a", shape, dtype)
    second, _, _ = _parameter(b, "b", shape, dtype)
    pairs = [
        _gammas(own, each, wanted, dtype) for own, each in zip(tf.unstack(split(key)), (first, second), strict=True)
    ]
    ours, others = (tf.math.log(drawn) + boost for drawn, boost in pairs)
    return tf.cast(tf.sigmoid(ours - others), dtype)


def poisson(key: Any, rate: Any, shape: Shape | None = None, dtype: Any = tf.int32) -> tf.Tensor:
    """Draws from the Poisson distribution of `rate`, int32 or int64 of `shape` (by default that of `rate`).

    `rate` is a number or a float tensor that broadcasts to `shape`. Below 10 by inversion, searching from 0 upwards,
    from there on by Hörmann's algorithm PTRS, "The Transformed Rejection Method for Generating Poisson Random
    Variables" (1993). Where it is negative, NaN or above 2**30 (int64: 2**50), the draw is -1.

    >>> from pcbatch.random import key
    >>> int(poisson(key(42), 0.0))
    0
    """
    whole = tf.as_dtype(dtype)
    if whole not in LARGEST:
        raise TypeError(f"Poisson draws are int32 or int64, not {whole.name}")
    if isinstance(rate, (int, float)) and not 0 <= rate <= LARGEST[whole]:
        raise ValueError(f"a rate is a number between 0 and 2**{math.log2(LARGEST[whole]):.0f}, not {rate}")
    rate, wanted, _ = _parameter(rate, "rate", shape, tf.float32, above=-1.0)
    valid = (rate >= 0) & (rate <= LARGEST[whole])
    rate = tf.where(valid, rate, tf.zeros_like(rate))
    key0, key1, _, place = operands(key, wanted)
    small = _whole("searched", key0, key1, place, tf.reshape(rate, [-1]))
    large = _whole("rejected", key0, key1, place, tf.reshape(rate, [-1]))
    drawn = tf.reshape(tf.where(tf.reshape(rate, [-1]) < SMALL, small, large), wanted)
    return tf.where(valid, tf.cast(drawn, whole), tf.constant(-1, whole))


# -- parameters --------------------------------------------------------------------------------------------------------


def _parameter(
    value: Any, name: str, shape: Shape | None, dtype: Any, above: float = 0.0
) -> tuple[tf.Tensor, tuple[int, ...], tf.DType]:
    """float64 of the wanted shape, that shape, and the dtype of the draws."""
    dtype = float_dtype(dtype)
    if isinstance(value, (int, float)) and not above < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {value}")
    given = float_dtype(getattr(value, "dtype", dtype), name)
    tensor = as_tensor(value, name, given)
    wanted = static_shape(tensor.shape if shape is None else shape)
    return tf.broadcast_to(tf.cast(broadcasting(tensor, name, wanted), tf.float64), wanted), wanted, dtype


def _gammas(key: Any, alpha: tf.Tensor, shape: tuple[int, ...], dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
    """Return float64 draws, for `alpha + 1` where `alpha` is below 1, and a correction of their logarithms then."""
    first, second = tf.unstack(split(key))
    key0, key1, _, place = operands(first, shape)
    loop = "gamma64" if dtype == tf.float64 else "gamma"
    drawn = tf.reshape(_whole(loop, key0, key1, place, tf.reshape(alpha, [-1])), shape)
    luck = 1.0 - unit_draws(second, shape, tf.float64)  # above 0
    return drawn, tf.where(alpha < 1, tf.math.log(luck) / alpha, tf.zeros_like(alpha))


# -- loops -------------------------------------------------------------------------------------------------------------

Accept = Callable[[Callable[[int], tuple[tf.Tensor, tf.Tensor]]], tuple[tf.Tensor, tf.Tensor]]
"""A function from the words of a turn, two uint32 for each number, to candidates and whether they are accepted."""


def _until_accepted(operands: tuple[tf.Tensor, ...], waiting: tf.Tensor, words: int, candidates: Accept) -> tf.Tensor:
    """float64: for each element that is `waiting` the first accepted candidate, for the others NaN."""
    key0, key1, place = operands

    def turn(number: tf.Tensor, waiting: tf.Tensor, found: tf.Tensor) -> tuple[tf.Tensor, ...]:
        def drawn(which: int) -> tuple[tf.Tensor, tf.Tensor]:
            counter = tf.reshape(tf.cast(number * words + which, tf.uint32), tf.ones([tf.rank(place)], tf.int32))
            return threefry2x32(key0, key1, counter, place)

        candidate, accepted = candidates(drawn)
        return number + 1, waiting & ~accepted, tf.where(waiting & accepted, candidate, found)

    start = (tf.constant(1), waiting, tf.where(waiting, tf.zeros_like(place, tf.float64), math.nan))
    _, _, found = tf.while_loop(lambda number, waiting, _: tf.reduce_any(waiting) & (number < TURNS), turn, start)
    return found


def _gamma(key0: tf.Tensor, key1: tf.Tensor, place: tf.Tensor, alpha: tf.Tensor, wide: bool) -> tf.Tensor:
    """Marsaglia and Tsang's loop; `wide` draws have normals of float64, others those that `normal` gives."""
    place = place + tf.zeros_like(key0)
    alpha = alpha + tf.zeros_like(place, tf.float64)
    d = tf.where(alpha < 1, alpha + 1, alpha) - 1 / 3
    c = 1 / tf.sqrt(9 * d)

    def candidates(drawn: Callable[[int], tuple[tf.Tensor, tf.Tensor]]) -> tuple[tf.Tensor, tf.Tensor]:
        high, low = drawn(0)
        x = standard_normal(_fraction(high, low)) if wide else _rounded_normal(high)
        v = (1 + c * x) ** 3
        inside = v > 0
        bound = 0.5 * x * x + d - d * v + d * tf.math.log(tf.where(inside, v, tf.ones_like(v)))
        return d * v, inside & (tf.math.log(1 - _fraction(*drawn(1))) < bound)

    is_valid = (alpha > 0) & (alpha < math.inf)
    return _until_accepted((key0, key1, place), is_valid, 2, candidates)


def _rounded_normal(word: tf.Tensor) -> tf.Tensor:
    """Normal numbers of float32, as float64: those that have the same bits in every mode."""
    unit = tf.cast(tf.bitwise.right_shift(word, tf.constant(9, tf.uint32)), tf.float32) * 2.0**-23
    return tf.cast(tf.cast(standard_normal(unit), tf.float32), tf.float64)


def _fraction(high: tf.Tensor, low: tf.Tensor) -> tf.Tensor:
    """float64 on [0, 1), a multiple of 2**-52, of two words."""
    top = tf.cast(high, tf.float64) * 2.0**-32
    return top + tf.cast(tf.bitwise.right_shift(low, tf.constant(12, tf.uint32)), tf.float64) * 2.0**-52


def _searched(key0: tf.Tensor, key1: tf.Tensor, place: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
    """Poisson draws of rates below `SMALL`: the first k with `u < P(X <= k)`."""
    place = place + tf.zeros_like(key0)
    rate = rate + tf.zeros_like(place, tf.float64)
    u = _fraction(*threefry2x32(key0, key1, tf.zeros_like(place), place))

    def turn(k: tf.Tensor, p: tf.Tensor, sum_: tf.Tensor, found: tf.Tensor) -> tuple[tf.Tensor, ...]:
        p = p * rate / (k + 1)
        further = (u >= sum_) & (sum_ + p > sum_)  # a sum that has rounded to less than `u` grows no more
        return k + 1, p, sum_ + p, tf.where(further, k + 1, found)

    def goes_on(k: tf.Tensor, _: tf.Tensor, sum_: tf.Tensor, __: tf.Tensor) -> tf.Tensor:
        return tf.reduce_any((u >= sum_) & (rate < SMALL)) & (k < SEARCHED)

    first = tf.exp(-rate)
    return tf.while_loop(goes_on, turn, (tf.constant(0.0, tf.float64), first, first, tf.zeros_like(rate)))[3]


def _rejected(key0: tf.Tensor, key1: tf.Tensor, place: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
    """Poisson draws of rates from `SMALL` on: PTRS."""
    place = place + tf.zeros_like(key0)
    rate = rate + tf.zeros_like(place, tf.float64)
    waiting = rate >= SMALL
    rate = tf.maximum(rate, SMALL)
    b = 0.931 + 2.53 * tf.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)

    def candidates(drawn: Callable[[int], tuple[tf.Tensor, tf.Tensor]]) -> tuple[tf.Tensor, tf.Tensor]:
        u, v = _fraction(*drawn(0)) - 0.5, 1 - _fraction(*drawn(1))
        us = 0.5 - tf.abs(u)
        near = tf.maximum(us, 2.0**-60)
        k = tf.floor((2 * a / near + b) * u + rate + 0.43)
        refused = (k < 0) | ((us < 0.013) & (v > us))
        height = tf.math.log(v * inverse / (a / (near * near) + b))
        return k, ((us >= 0.07) & (v <= quick)) | (~refused & (height <= _log_probability(tf.maximum(k, 0.0), rate)))

    return _until_accepted((key0, key1, place), waiting, 2, candidates)


def _log_probability(k: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
    """`k log(rate) - rate - log(k!)`, for large k by Stirling's series, whose large terms cancel before they round."""
    large = tf.maximum(k, SMALL)
    series = (1 / 12 - (1 / 360 - 1 / (1260 * large * large)) / (large * large)) / large
    stirling = large * tf.math.log1p((rate - large) / large) + (large - rate)
    stirling -= 0.5 * tf.math.log(2 * math.pi * large) + series
    return tf.where(k < SMALL, k * tf.math.log(rate) - rate - tf.math.lgamma(k + 1), stirling)


_LOOPS: dict[str, Callable[..., tf.Tensor]] = {
    "gamma": partial(_gamma, wide=False),
    "gamma64": partial(_gamma, wide=True),
    "searched": _searched,
    "rejected": _rejected,
}


@cache
def _traced(loop: str) -> Any:
    """Trace one of the loops as a function for all shapes."""
    word, number = tf.TensorSpec(None, tf.uint32), tf.TensorSpec(None, tf.float64)
    with tf.init_scope():  # not inside whichever graph happens to draw first
        made = tf.function(_LOOPS[loop], input_signature=(word, word, word, number), autograph=False)
        return made.get_concrete_function()


def _whole(loop: str, *given: tf.Tensor) -> tf.Tensor:
    """The loop's result, of the shape to which all operands broadcast; no gradient passes through it."""
    shape = tf.TensorShape(())
    for operand in given:
        shape = tf.broadcast_static_shape(shape, operand.shape)
    result = tf.stop_gradient(_traced(loop)(*map(tf.stop_gradient, given)))
    result.set_shape(shape)
    if tf.is_symbolic_tensor(result):
        call = result.op.inputs[0].op

        def convert(inputs: Any) -> list[tuple[tf.Tensor, bool]]:
            return [(_whole(loop, *(operand.t for operand in inputs.inputs)), True)]

        private.set_rule(call, convert)
    return result
