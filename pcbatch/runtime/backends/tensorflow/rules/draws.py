"""Draws from seeds: `tf.random.stateless_*` with the bits of TensorFlow's kernel for one lane, in every mode.

Source: Philox-4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011),
numbers made of its words as TensorFlow's kernels for CPUs make them (`philox_random.h`, `random_distributions.h`). XLA
has kernels of its own, which take other bits of the words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.rules.family import Rule
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted

MULTIPLIERS, WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
"""Factors of the words of a counter in each round, and what is added to the words of the key after it."""
SCRAMBLING = 0x3EC8F720, 0x02461E29
"""The key under which a seed is encrypted, so that any seed will do."""

_LOW = 0xFFFFFFFF


def _number(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint64)


def _high(word: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(word, _number(32))


def _low(word: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.bitwise_and(word, _number(_LOW))


def _rounds(*given: tf.Tensor) -> list[tf.Tensor]:
    """The four words of counters, encrypted by a key of two: uint64 tensors that broadcast, below 2**32."""
    c0, c1, c2, c3, k0, k1 = given
    xor = tf.bitwise.bitwise_xor
    for number in range(10):
        if number:
            k0, k1 = _low(k0 + _number(WEYL[0])), _low(k1 + _number(WEYL[1]))
        first, second = c0 * _number(MULTIPLIERS[0]), c2 * _number(MULTIPLIERS[1])
        c0, c1 = xor(xor(_high(second), c1), k0), _low(second)
        c2, c3 = xor(xor(_high(first), c3), k1), _low(first)
    return [c0, c1, c2, c3]


@cache
def _compiled() -> Any:
    """The rounds as one function for all shapes: one call in a graph instead of 130 operations."""
    with tf.init_scope():  # not inside whichever graph happens to draw first
        words = [tf.TensorSpec(None, tf.uint64)] * 6
        return tf.function(_rounds, input_signature=words, autograph=False).get_concrete_function()


def _encrypted(counter: Sequence[tf.Tensor], key: Sequence[tf.Tensor]) -> tf.Tensor:
    """`[..., 4]` words of uint64 for counters of four words and keys of two, which broadcast."""
    found = tf.stack(_compiled()(*counter, *key), axis=-1)
    found.set_shape([*tf.broadcast_static_shape(counter[0].shape, key[0].shape), 4])
    return found


def _key_and_counter(attribute: Any, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The key `[..., 1]` and the counter `[..., 2]` of seeds `[..., 2]`, all of uint64."""
    first, second = tf.unstack(tf.cast(tf.cast(seed, tf.int64), tf.uint64), axis=-1)
    key = [_number(word) + tf.zeros_like(first) for word in SCRAMBLING]
    words = tf.unstack(_encrypted((_low(first), _high(first), _low(second), _high(second)), key), axis=-1)
    key, upper = (low + tf.bitwise.left_shift(high, _number(32)) for low, high in (words[:2], words[2:]))
    return tf.expand_dims(key, -1), tf.stack([tf.zeros_like(upper), upper], axis=-1)


def _words(key: tf.Tensor, counter: tf.Tensor, count: int) -> tf.Tensor:
    """`[..., count, 4]` words, four for each of the counters that follow a `counter`."""
    groups = tf.range(count, dtype=tf.int64)
    low = counter[..., :1] + tf.cast(groups, tf.uint64)
    high = counter[..., 1:] + tf.cast(low < counter[..., :1], tf.uint64)
    return _encrypted((_low(low), _high(low), _low(high), _high(high)), (_low(key), _high(key)))


Numbers = Callable[[tf.Tensor, tf.DType], tf.Tensor]
"""From `[..., 4]` words the numbers that are made of them: `[..., 4]`, or `[..., 2]` where one takes two words."""


def _pairs(words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return words[..., 0::2], words[..., 1::2]


def _whole(words: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Unsigned integers of all bits."""
    if dtype.size == 4:
        return words
    low, high = _pairs(words)
    return low + tf.bitwise.left_shift(high, _number(32))


_MANTISSA = {tf.float16: 10, tf.bfloat16: 7, tf.float32: 23, tf.float64: 52}


def _unit(words: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Numbers of `[0, 1)`, of the lowest bits of a word."""
    bits = _MANTISSA[dtype]
    if dtype == tf.float64:
        high, low = _pairs(words)
        words = low + tf.bitwise.left_shift(high, _number(32))
    places = tf.cast(tf.bitwise.bitwise_and(words, _number(2**bits - 1)), tf.int64)
    wide = tf.float64 if dtype == tf.float64 else tf.float32
    return tf.cast(tf.cast(places, wide) * tf.constant(2.0**-bits, wide), dtype)


def _normal(words: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Normal draws by Box and Muller; in float32, of which narrower ones are made, as glibc computes them."""
    narrow = tf.float64 if dtype == tf.float64 else tf.float32
    units = _unit(words, narrow)
    radius, angle = _pairs(units)
    radius = tf.maximum(radius, tf.constant(1e-7, tf.float32) if narrow == tf.float32 else _wide(1e-7))
    turn = tf.cast(tf.cast(tf.cast(angle, tf.float64) * _wide(2 * math.pi), narrow), tf.float64)
    if narrow == tf.float32:
        logarithm, (sine, cosine) = _logarithm(radius), _sine_and_cosine(turn)
    else:
        logarithm, sine, cosine = tf.math.log(radius), tf.sin(turn), tf.cos(turn)
    length = tf.sqrt(tf.cast(logarithm, narrow) * tf.constant(-2.0, narrow))
    both = tf.stack([tf.cast(each, narrow) * length for each in (sine, cosine)], axis=-1)
    return tf.cast(tf.reshape(both, tf.concat([tf.shape(units)[:-1], [-1]], 0)), dtype)


def _wide(value: float | str) -> tf.Tensor:
    return tf.constant(float.fromhex(value) if isinstance(value, str) else value, tf.float64)


_SINE = ("-0x1.555545995a603p-3", "0x1.1107605230bc4p-7", "-0x1.994eb3774cf24p-13")
_COSINE = ("0x1p0", "-0x1.ffffffd0c621cp-2", "0x1.55553e1068f19p-5", "-0x1.6c087e89a359dp-10", "0x1.99343027bf8c3p-16")
_LOGARITHM = ("-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2")
_INVERSES = (
    *("0x1.661ec79f8f3bep+0", "0x1.571ed4aaf883dp+0", "0x1.49539f0f010bp+0", "0x1.3c995b0b80385p+0"),
    *("0x1.30d190c8864a5p+0", "0x1.25e227b0b8eap+0", "0x1.1bb4a4a1a343fp+0", "0x1.12358f08ae5bap+0"),
    *("0x1.0953f419900a7p+0", "0x1p+0", "0x1.e608cfd9a47acp-1", "0x1.ca4b31f026aap-1"),
    *("0x1.b2036576afce6p-1", "0x1.9c2d163a1aa2dp-1", "0x1.886e6037841edp-1", "0x1.767dcf5534862p-1"),
)
_LOGARITHMS = (
    *("-0x1.57bf7808caadep-2", "-0x1.2bef0a7c06ddbp-2", "-0x1.01eae7f513a67p-2", "-0x1.b31d8a68224e9p-3"),
    *("-0x1.6574f0ac07758p-3", "-0x1.1aa2bc79c81p-3", "-0x1.a4e76ce8c0e5ep-4", "-0x1.1973c5a611cccp-4"),
    *("-0x1.252f438e10c1ep-5", "0x0p+0", "0x1.aa5aa5df25984p-5", "0x1.c5e53aa362eb4p-4"),
    *("0x1.526e57720db08p-3", "0x1.bc2860d22477p-3", "0x1.1058bc8a07ee1p-2", "0x1.4043057b6ee09p-2"),
)
"""Coefficients and tables of `sinf`, `cosf` and `logf` in glibc, which computes them in float64 and rounds once."""


def _sine_and_cosine(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """`sinf(x)` and `cosf(x)` of glibc, before they are rounded, of float64 numbers from 0 to 7."""
    quarter = tf.floor(x * _wide(2 / math.pi) + _wide(0.5))
    rest = x - quarter * _wide("0x1.921FB54442D18p0")
    square = rest * rest
    s1, s2, s3 = map(_wide, _SINE)
    c0, c1, c2, c3, c4 = map(_wide, _COSINE)
    cube, fourth = rest * square, square * square
    sine = (rest + cube * s1) + cube * square * (s2 + square * s3)
    cosine = ((c0 + square * c1) + fourth * c2) + fourth * square * (c3 + square * c4)
    is_odd = tf.equal(quarter, 1) | tf.equal(quarter, 3)
    is_negative, is_later = tf.equal(quarter, 2) | tf.equal(quarter, 3), tf.equal(quarter, 1) | tf.equal(quarter, 2)
    first, second = tf.where(is_odd, cosine, sine), tf.where(is_odd, sine, cosine)
    return tf.where(is_negative, -first, first), tf.where(is_later, -second, second)


def _logarithm(x: tf.Tensor) -> tf.Tensor:
    """`logf(x)` of glibc, before it is rounded, of normal positive float32 numbers."""
    bits = tf.bitcast(x, tf.int32)
    above = bits - 0x3F330000
    exponent = tf.bitwise.right_shift(above, 23)
    place = tf.bitwise.bitwise_and(tf.bitwise.right_shift(above, 19), 15)
    mantissa = tf.cast(tf.bitcast(bits - tf.bitwise.left_shift(exponent, 23), tf.float32), tf.float64)
    inverse, logarithm = (
        tf.gather(tf.constant([float.fromhex(each) for each in table], tf.float64), place)
        for table in (_INVERSES, _LOGARITHMS)
    )
    rest = mantissa * inverse - _wide(1.0)
    a0, a1, a2 = map(_wide, _LOGARITHM)
    start = logarithm + tf.cast(exponent, tf.float64) * _wide("0x1.62e42fefa39efp-1")
    square = rest * rest
    return (a0 * square + (a1 * rest + a2)) * square + (start + rest)


def _drawn(shape: Sequence[int], key: tf.Tensor, counter: tf.Tensor, dtype: tf.DType, numbers: Numbers) -> tf.Tensor:
    """`[..., *shape]` numbers for keys `[..., 1]` and counters `[..., 2]`."""
    size = math.prod(shape)
    each = 2 if dtype.size == 8 else 4
    found = numbers(_words(key, counter, -(-size // each)), dtype)
    leading = tf.shape(key)[:-1]
    flat = tf.reshape(found, tf.concat([leading, [-(-size // each) * each]], 0))[..., :size]
    drawn = tf.reshape(flat, tf.concat([leading, tf.constant(shape, tf.int32)], 0))
    drawn.set_shape([*key.shape[:-1], *shape])
    return drawn


def _shape(operation: Any) -> list[int]:
    shape = operation.outputs[0].shape
    if not shape.is_fully_defined():
        raise NotImplementedError(f"{operation.type} of a shape that differs by lane")
    return list(shape.as_list())


def _floats(numbers: Numbers) -> Callable[..., tf.Tensor]:
    def drawn(operation: Any, shape: Any, key: tf.Tensor, counter: tf.Tensor, alg: Any) -> tf.Tensor:
        return _drawn(_shape(operation), key, counter, operation.get_attr("dtype"), numbers)

    return drawn


def _all_integers(operation: Any, shape: Any, key: tf.Tensor, counter: tf.Tensor, alg: Any) -> tf.Tensor:
    dtype = operation.get_attr("dtype")
    return tf.cast(_drawn(_shape(operation), key, counter, dtype, _whole), dtype)


def _integers(
    operation: Any, shape: Any, key: tf.Tensor, counter: tf.Tensor, alg: Any, low: tf.Tensor, high: tf.Tensor
) -> tf.Tensor:
    """Integers from `low` to below `high`, by a remainder in the arithmetic of the dtype."""
    sizes, dtype = _shape(operation), operation.get_attr("dtype")
    words = _drawn(sizes, key, counter, dtype, _whole)
    span = tf.cast(high, tf.uint64) - tf.cast(low, tf.uint64)
    span = _low(span) if dtype.size == 4 else span
    span = tf.reshape(span, tf.concat([tf.shape(span), tf.ones_like(sizes)], 0))
    low = tf.reshape(low, tf.concat([tf.shape(low), tf.ones_like(sizes)], 0))
    # Bounds in the wrong order, for which the kernel has an error, draw nothing and must not divide by zero.
    places = words % tf.maximum(span, _number(1))
    return low + tf.cast(places, dtype)


_PLAIN: dict[str, tuple[int, Callable[..., Any]]] = {
    "StatelessRandomUniformV2": (1, _floats(_unit)),
    "StatelessRandomNormalV2": (1, _floats(_normal)),
    "StatelessRandomUniformFullIntV2": (1, _all_integers),
    "StatelessRandomUniformIntV2": (1, _integers),
    "StatelessRandomGetKeyCounter": (0, _key_and_counter),
}
"""By operation: the number of the first input that may differ by lane, and the function of operation and inputs."""


def _rule(name: str) -> Rule:
    first, plain = _PLAIN[name]

    def rule(inputs: Any) -> Any:
        places = [each for each in range(first, inputs.num_inputs) if not (first and each == 3)]
        inputs.stack_inputs(stack_indices=places)
        return plain(inputs.op, *(inputs.input(place).t for place in range(inputs.num_inputs)))

    return rule


RULES: dict[str, Rule] = {name: _rule(name) for name in _PLAIN}


def is_made_otherwise(operation: Any) -> bool:
    """Return whether an operation draws from a seed."""
    return operation.type in _PLAIN


def same_for_all(operation: Any, inputs: Sequence[Converted]) -> list[Converted] | None:
    """Return the outputs of such an operation if no input differs by lane, so that no rule applies."""
    if operation.type not in _PLAIN or any(each.is_stacked for each in inputs):
        return None
    found = _PLAIN[operation.type][1](operation, *(each.t for each in inputs))
    return [Converted(output, False) for output in (found if isinstance(found, tuple) else (found,))]
