"""Rows of unequal length: padded to a room in common on the way in, with their lengths; cut to these on the way out.

The room is a power of two, so that calls with other lengths find the program of the last one nearly always.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.ir import values
from pcbatch.runtime.backends.interop import is_foreign, with_numpy

LEAST_ROOM = 8
"""The room of short rows."""
DEEPER = "only the first axis of a row may have another length in each lane"
UNKNOWN = (
    "a ragged tensor whose lengths are not known while the tf.function around is traced; hand over "
    "pcbatch.Ragged(x.to_tensor(shape=[None, 64]), x.row_lengths())"
)


@dataclasses.dataclass(eq=False)
class Ragged:
    """Rows of unequal length as an argument of a batched function: padded `values`, and the `length` of each.

    `values` is `[lanes, room, ..]`, `length` is `[lanes]`. What lies behind a row's length counts for nothing.
    Rows come as `tf.RaggedTensor`s and lists, too; this form says the room, as specs and a `tf.function` need it.
    """

    values: Any
    length: Any

    def __result__(self) -> Any:
        """The form of such a result for a caller: a `tf.RaggedTensor`, or of NumPy's arrays a list of them."""
        if len(np.shape(self.length)) == 0:
            return self.values[: self.length]
        if isinstance(self.values, np.ndarray):
            return [row[:length] for row, length in zip(self.values, np.asarray(self.length), strict=True)]
        return tf.RaggedTensor.from_tensor(self.values, lengths=self.length)


def ragged(rows: Any) -> Ragged:
    """Rows of any lengths as one argument of a batched function, whose lanes are the rows.

        total(pcbatch.ragged([np.ones(3), np.ones(5)]))

    A list of arrays of one length is a structure of that many batches; this says that it is rows. The room for a row is
    the next power of two, 8 at least, so that other lengths seldom compile anew.

    Arguments:
        rows: a list of arrays, or of lists of numbers; a `tf.RaggedTensor`. All elements have one shape.

    Returns:
        A `Ragged`: the padded values, and the lengths.

    Raises:
        UsageError: PCB511 for what is no such rows.
    """
    try:
        return _of_tensor(rows) if isinstance(rows, tf.RaggedTensor) else _of_rows([*rows])
    except TypeError as error:
        raise UsageError("PCB511", f"rows of unequal length: {error}") from None


def padded(value: Any, axes: Any) -> Any:
    """Return an argument with a `Ragged` for all rows of unequal length in it; TypeError if impossible.

    `axes` are its axes of lanes: what all lanes share has no rows.
    """
    if axes is None:
        return value
    if isinstance(value, tf.RaggedTensor):
        return _of_tensor(value)
    if isinstance(value, tf.RaggedTensorSpec):
        return _of_spec(value)
    if isinstance(value, Ragged):
        return _checked(value)
    if isinstance(value, np.ndarray):
        return _of_rows([*value]) if value.dtype == object and _are_rows([*value]) else value
    if isinstance(value, list) and _are_rows(value) and len({len(row) for row in value}) > 1:
        return _of_rows(value)
    return _with_parts(value, axes)


def _with_parts(value: Any, axes: Any) -> Any:
    """A structure with the rows in its parts padded; the same object where there are none."""
    if isinstance(value, (list, tuple)):
        if isinstance(value, list) and not any(_has_parts(each) for each in value):
            return value
        named: dict[Any, Any] = dict(enumerate(value))
    elif isinstance(value, dict):
        named = value
    else:
        found = values.fields_of(value)
        if found is None:
            return value
        named = found
    parts = {key: padded(part, _axes_of(axes, value, key)) for key, part in named.items()}
    if all(parts[key] is part for key, part in named.items()):
        return value
    if isinstance(value, dict):
        return parts
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(parts.values())
    if isinstance(value, tuple):
        return type(value)(*parts.values())
    return values.made(type(value), parts)


def _axes_of(axes: Any, value: Any, key: Any) -> Any:
    """The axes of a part of a structure."""
    if isinstance(axes, dict):
        return axes.get(key)
    if isinstance(axes, (list, tuple)):
        names = getattr(value, "_fields", None)
        place = names.index(key) if names is not None and key in names else key
        return axes[place] if isinstance(place, int) and place < len(axes) else None
    fields = None if axes is None or isinstance(axes, int) else values.fields_of(axes)
    return fields.get(key) if fields is not None else axes


def _has_parts(value: Any) -> bool:
    """Return whether rows of unequal length may be in a part of a list."""
    is_ragged = isinstance(value, (tf.RaggedTensor, tf.RaggedTensorSpec, tuple, dict, Ragged))
    return is_ragged or (isinstance(value, list) and any(map(_has_parts, value)))


def _are_rows(value: Sequence[Any]) -> bool:
    """Return whether a list has rows in it: arrays, or lists of numbers or arrays."""
    return bool(value) and all(_is_row(each) for each in value)


def _is_row(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return not hasattr(value, "_fields")
    is_array = isinstance(value, (np.ndarray, tf.Tensor)) or is_foreign(value)
    return is_array and value.shape is not None and len(value.shape) > 0 and value.shape[0] is not None


def room_for(longest: int) -> int:
    """The room of rows of which the longest has so many elements."""
    return max(LEAST_ROOM, 1 << max(longest - 1, 0).bit_length())


def _of_tensor(value: tf.RaggedTensor) -> Ragged:
    if value.ragged_rank != 1:
        raise TypeError(f"a ragged tensor with {value.ragged_rank} ragged axes; {DEEPER}")
    length = tf.cast(value.row_lengths(), tf.int32)
    known = tf.get_static_value(length)
    if known is None or not value.flat_values.shape[1:].is_fully_defined():
        raise TypeError(UNKNOWN)
    room = room_for(int(known.max(initial=0)))
    return Ragged(value.to_tensor(shape=[None, room, *value.flat_values.shape[1:]]), length)


def _of_spec(spec: tf.RaggedTensorSpec) -> Ragged:
    sizes = None if spec.shape.rank is None else [*spec.shape]
    if sizes is None or len(sizes) < 2 or None in sizes[1:] or spec.ragged_rank != 1:
        raise TypeError(
            f"{spec} does not say for how long rows; say how long they may be: "
            "tf.RaggedTensorSpec([64, 40], tf.float32, ragged_rank=1)"
        )
    shape = [sizes[0], room_for(sizes[1]), *sizes[2:]]
    return Ragged(tf.TensorSpec(shape, spec.dtype), tf.TensorSpec(shape[:1], tf.int32))


def _of_rows(rows: Sequence[Any]) -> Ragged:
    if not _are_rows(rows):
        raise TypeError("a list of rows has arrays, or lists of numbers, each with one axis at least")
    length = np.array([len(row) for row in rows], np.int32)
    room = room_for(int(length.max()))
    if any(isinstance(row, tf.Tensor) for row in rows):
        flat = tf.concat([tf.convert_to_tensor(row) for row in rows], 0)
        return _of_tensor(tf.RaggedTensor.from_row_lengths(flat, length))
    if all(isinstance(row, (list, tuple)) for row in rows):
        blank = next((_blank(row[0]) for row in rows if row), 0.0)
        if blank is not None:
            return Ragged([[*row, *[blank] * (room - len(row))] for row in rows], length)
    arrays = [np.asarray(with_numpy([*row]) if isinstance(row, (list, tuple)) else with_numpy(row)) for row in rows]
    inner = {array.shape[1:] for array in arrays if len(array)} or {arrays[0].shape[1:]}
    if len(inner) > 1 or any(array.dtype == object for array in arrays):
        raise TypeError(f"rows with elements of several shapes; {DEEPER}")
    dtype = np.result_type(*[array.dtype for array in arrays if len(array)] or [arrays[0].dtype])
    values = np.zeros((len(rows), room, *inner.pop()), dtype)
    for place, array in enumerate(arrays):
        values[place, : len(array)] = array if len(array) else 0
    return Ragged(values, length)


def _blank(value: Any) -> Any:
    """The elements behind those of a row of such: zeros of Python's; None where these are arrays."""
    if type(value) in (bool, int, float, complex):
        return type(value)()
    if isinstance(value, (list, tuple)):
        parts = [*map(_blank, value)]
        return None if any(part is None for part in parts) else parts
    return None


def _checked(value: Ragged) -> Ragged:
    """Rows that somebody else has padded; TypeError where a length is none that a row may have."""
    if isinstance(value.length, tf.TensorSpec) or isinstance(value.values, tf.TensorSpec):
        return value
    length = value.length if hasattr(value.length, "dtype") else np.asarray(value.length)
    room = np.shape(value.values)[1] if len(np.shape(value.values)) > 1 else None
    if room is None:
        raise TypeError("the values of a pcbatch.Ragged have an axis of lanes, and one that is the room of a row")
    known = tf.get_static_value(length) if isinstance(length, tf.Tensor) else np.asarray(length)
    if known is not None and known.size and not (known.min() >= 0 and known.max() <= room):
        raise TypeError(f"lengths of a pcbatch.Ragged are from 0 to its room, {room}")
    is_cast = isinstance(length, tf.Tensor)
    return Ragged(value.values, tf.cast(length, tf.int32) if is_cast else np.asarray(length, np.int32))
