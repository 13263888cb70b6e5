"""What TensorFlow's own operators mean in the user's helpers, where that is something else than in Python.

A helper runs as it was written, so its `flag * 0.5` is TensorFlow's, which makes bools of both and gives one. Raised
while the helper is traced, that makes it part of the program, where operators are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private


def watch(kind: str, inputs: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    """The inputs of an operation of type `kind` that is made while a piece is traced; TypeError for `flag * x`."""
    if kind == "Cast" and private.in_product_of_bool():
        raise TypeError("TensorFlow's product of a bool and a number is a bool; write tf.cast(flag, x.dtype) * x")
    return inputs
