"""Operations of which TensorFlow makes XLA's text soon, for others that it sends through MLIR, each by itself.

That takes 2 to 5 ms for each such operation, and a twentieth of a millisecond for most others (TensorFlow 2.21). The
results are the same for every number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs


def is_nan(x: tf.Tensor) -> tf.Tensor:
    """`tf.math.is_nan`."""
    return tf.not_equal(x, x) if graphs.in_outer_xla() else tf.math.is_nan(x)


def is_finite(x: tf.Tensor) -> tf.Tensor:
    """`tf.math.is_finite`."""
    return tf.equal(x - x, tf.zeros([], x.dtype)) if graphs.in_outer_xla() else tf.math.is_finite(x)


INSTEAD: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {"IsNan": is_nan, "IsFinite": is_finite}
"""The functions by the types of the operations that they stand for."""
