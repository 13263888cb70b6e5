"""Rows written into an array: of a scatter XLA's CPU compiler makes a loop of its own, of an updated slice none."""

from __future__ import annotations

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private, xla_cpu


def with_row(array: tf.Tensor, place: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
    """`array` with `array[place] = row`."""
    if 0 in row.shape:
        return array
    update = private.update_slice()
    if update is not None and xla_cpu.applies():
        return update(array, row[None], tf.stack([place, *(0 for _ in row.shape)]))
    return tf.tensor_scatter_nd_update(array, [[place]], row[None])


def with_rows(array: tf.Tensor, start: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """`array` with `array[start:start + n] = rows`."""
    if 0 in rows.shape[1:]:  # TensorFlow refuses to write nothing
        return array
    update = private.update_slice()
    if update is not None and xla_cpu.applies():
        return update(array, rows, tf.stack([start, *(0 for _ in rows.shape[1:])]))
    places = start + tf.range(tf.shape(rows)[0])
    return tf.tensor_scatter_nd_update(array, places[:, None], rows)
