"""Equivalents of functions of TensorFlow that take numbers but no tensors: a captured array is a tensor in a batch."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.promotion import loses
from pcbatch.runtime.backends.tensorflow.weak import Weak, WeakTypeError, is_lane_value


def _varies(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_varies(item) for item in value)
    return is_lane_value(value)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> tf.Tensor:
    """`tf.constant`; of a tensor, or a list of tensors, its value: of another dtype where it is the same number there.

    A scalar fills the `shape`, as there.
    """
    if not _varies(value):
        return tf.constant(value, dtype, shape, name)
    wanted = None if dtype is None else tf.as_dtype(dtype)
    found = tf.convert_to_tensor(value, wanted) if isinstance(value, Weak) else tf.convert_to_tensor(value)
    if wanted is not None and wanted != found.dtype:
        if loses(found.dtype, wanted):
            raise WeakTypeError(
                f"tf.constant of {found.dtype.name} is none of {wanted.name}, and nothing is cast by itself; "
                f"write tf.cast(.., tf.{wanted.name})"
            )
        found = tf.cast(found, wanted)
    if shape is None:
        return tf.identity(found)
    return tf.broadcast_to(found, shape) if found.shape.rank == 0 else tf.reshape(found, shape)


EQUIVALENTS = {"constant": constant}
NAMES = {name: name for name in EQUIVALENTS}
"""Path in `tensorflow` to attribute of this module."""
