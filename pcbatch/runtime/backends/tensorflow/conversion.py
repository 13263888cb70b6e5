"""Conversions of weak numbers, which TensorFlow sees as Python numbers, and of NumPy arrays, without silent losses.

TensorFlow makes an array of whatever dtype its other operand has: 0.5 is 0 beside an int, 300 is 44 beside one of 8
bits. Where that changes a number it is refused; and beside an operator so is all that NumPy would widen: then the
statement is written with our operators, which do.

Importing this module registers the conversions. There is no other way to be told of a list that has a weak number in
it, or of a constant in a helper; while no piece is traced or run, nor `single` under a tape, they go on at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private, traced_float
from pcbatch.runtime.backends.tensorflow.arithmetic import loses
from pcbatch.runtime.backends.tensorflow.recorder import convert_first, is_recording
from pcbatch.runtime.backends.tensorflow.weak import FLOAT, INT, Weak, WeakTypeError, commit, is_committed, is_number


def _convert(value: Weak, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> tf.Tensor:
    """Registered, not `__tf_tensor__`: only a registered conversion is told the dtype of the other operand."""
    return commit(value, value.dtype if dtype is None else tf.as_dtype(dtype))


def _convert_sequence(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    """Lists that contain a Weak, such as `tf.concat([v, [i]], 0)`; other lists are left to TensorFlow.

    Of these, arrays of NumPy's beside tensors must fit them; alone they have the dtype that they have without a trace.
    """
    if not is_recording() and not traced_float.are_there():
        return NotImplemented
    leaves = _sequence_leaves(value)
    if not any(isinstance(leaf, Weak) for leaf in leaves):
        return _convert_arrays(value, leaves, dtype) if is_recording() else NotImplemented
    if dtype is None:
        committed = [leaf.dtype for leaf in leaves if is_committed(leaf)]
        is_int = all(leaf.dtype == INT if isinstance(leaf, Weak) else isinstance(leaf, int) for leaf in leaves)
        dtype = committed[0] if committed else INT if is_int else FLOAT
    return _pack(value, tf.as_dtype(dtype))


def _convert_arrays(value: Any, leaves: Sequence[Any], dtype: Any) -> Any:
    arrays = [leaf for leaf in leaves if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "biufc"]
    tensors = [leaf for leaf in leaves if isinstance(leaf, (tf.Tensor, tf.Variable))]
    if tensors and not all(tensor.dtype == tensors[0].dtype for tensor in tensors):
        return NotImplemented
    for array in arrays if tensors else ():
        _refuse_loss(array, tensors[0].dtype)
    if not arrays or tensors or dtype is not None or tf.executing_eagerly():
        return NotImplemented
    with tf.init_scope():
        found = tf.convert_to_tensor(value)
    return tf.constant(found.numpy())


def _sequence_leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _sequence_leaves(item)] if isinstance(value, (list, tuple)) else [value]


def _pack(value: Any, dtype: tf.DType) -> tf.Tensor:
    if isinstance(value, (list, tuple)):
        return tf.stack([_pack(item, dtype) for item in value])
    return commit(value, dtype) if is_number(value) else tf.convert_to_tensor(value, dtype)


def _convert_numpy(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    """TypeError for an array, or a number of NumPy's, that is to be of a dtype in which it is another number."""
    if not is_recording():
        return NotImplemented
    if dtype is None:  # also where TensorFlow asks the next one again, having been refused the dtype that it likes
        return tf.constant(value, name=name or "Const")
    _refuse_loss(value, tf.as_dtype(dtype))
    return NotImplemented


def _refuse_loss(value: Any, wanted: tf.DType) -> None:
    try:
        own = tf.as_dtype(value.dtype)
    except TypeError:  # of objects, or times: TensorFlow says so
        return
    if not _is_number(own) or not (wanted == tf.bool or _is_number(wanted)):
        return
    is_lost = loses(own, wanted)
    if own != wanted and own.is_integer and wanted.is_integer:
        is_lost = private.in_operator() or bool(np.any((value < wanted.min) | (value > wanted.max)))
    if is_lost:
        raise WeakTypeError(
            f"an array of {own.name} is none of {wanted.name}, and nothing is cast by itself; "
            f"write tf.cast(.., ..) for one of the operands"
        )


def _is_number(dtype: tf.DType) -> bool:
    return bool(dtype.is_integer or dtype.is_floating or dtype.is_complex)


tf.register_tensor_conversion_function(Weak, _convert)
convert_first((np.ndarray, np.generic), _convert_numpy)
tf.register_tensor_conversion_function((list, tuple), _convert_sequence, priority=98)  # before TensorFlow's own packing
