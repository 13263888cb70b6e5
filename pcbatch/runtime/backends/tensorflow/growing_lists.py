"""Lists of arrays that grow while a plain graph runs: the records of a run of unknown length."""

from __future__ import annotations

import tensorflow as tf

_ANY_SHAPE = -1


def empty(dtype: str) -> tf.Tensor:
    """A list without entries."""
    return tf.raw_ops.EmptyTensorList(element_shape=_ANY_SHAPE, max_num_elements=-1, element_dtype=tf.as_dtype(dtype))


def pushed(record: tf.Tensor, array: tf.Tensor) -> tf.Tensor:
    """The list with an array more at its end; the arrays in it are not copied."""
    return tf.raw_ops.TensorListPushBack(input_handle=record, tensor=array)


def popped(record: tf.Tensor, dtype: str, shape: tuple[int | None, ...]) -> tuple[tf.Tensor, tf.Tensor]:
    """The list without its last entry, and that."""
    rest, array = tf.raw_ops.TensorListPopBack(
        input_handle=record, element_shape=_ANY_SHAPE, element_dtype=tf.as_dtype(dtype)
    )
    return rest, tf.ensure_shape(array, shape)


def joined(record: tf.Tensor, dtype: str, shape: tuple[int | None, ...]) -> tf.Tensor:
    """The entries as one array, the first at its beginning: their lengths along the first axis may differ."""
    return tf.raw_ops.TensorListConcatV2(
        input_handle=record,
        element_dtype=tf.as_dtype(dtype),
        element_shape=tf.constant([-1 if size is None else size for size in shape], tf.int32),
        leading_dims=tf.zeros([0], tf.int64),
    ).tensor
