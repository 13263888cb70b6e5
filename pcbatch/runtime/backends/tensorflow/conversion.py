"""How TensorFlow's functions see a weak number: as they see a Python number.

Importing this module registers the conversions. There is no other way to be told of a list that has a weak number in
it; while no piece is traced or run, nor `single` under a tape, lists are handed on at once.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import followed
from pcbatch.runtime.backends.tensorflow.recorder import is_recording
from pcbatch.runtime.backends.tensorflow.weak import FLOAT, INT, Weak, commit, is_committed, is_number


def _convert(value: Weak, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> tf.Tensor:
    """Registered, not `__tf_tensor__`: only a registered conversion is told the dtype of the other operand."""
    return commit(value, value.dtype if dtype is None else tf.as_dtype(dtype))


def _convert_sequence(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    """Lists that contain a Weak, such as `tf.concat([v, [i]], 0)`; other lists are left to TensorFlow."""
    if not is_recording() and not followed.are_there():
        return NotImplemented
    leaves = _sequence_leaves(value)
    if not any(isinstance(leaf, Weak) for leaf in leaves):
        return NotImplemented
    if dtype is None:
        committed = [leaf.dtype for leaf in leaves if is_committed(leaf)]
        is_int = all(leaf.dtype == INT if isinstance(leaf, Weak) else isinstance(leaf, int) for leaf in leaves)
        dtype = committed[0] if committed else INT if is_int else FLOAT
    return _pack(value, tf.as_dtype(dtype))


def _sequence_leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _sequence_leaves(item)] if isinstance(value, (list, tuple)) else [value]


def _pack(value: Any, dtype: tf.DType) -> tf.Tensor:
    if isinstance(value, (list, tuple)):
        return tf.stack([_pack(item, dtype) for item in value])
    return commit(value, dtype) if is_number(value) else tf.convert_to_tensor(value, dtype)


tf.register_tensor_conversion_function(Weak, _convert)
tf.register_tensor_conversion_function((list, tuple), _convert_sequence, priority=98)  # before TensorFlow's own packing
