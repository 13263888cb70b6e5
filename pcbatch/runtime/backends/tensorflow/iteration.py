"""Sequences taken apart: what a loop goes over, patterns of `match`, unpacking, starred arguments."""

from __future__ import annotations

import operator
from collections.abc import ItemsView, KeysView, ValuesView
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import SHARED_ARGUMENT, LengthError, PieceRefusalError, RefusedBeforeError
from pcbatch.ir import values
from pcbatch.runtime.backends.tensorflow import written_out
from pcbatch.runtime.backends.tensorflow.bounded import Bounded
from pcbatch.runtime.backends.tensorflow.positions import joined
from pcbatch.runtime.backends.tensorflow.structures import describe, leaf_tensors, wrap
from pcbatch.runtime.backends.tensorflow.weak import Weak

_OF_A_DICT = (
    (dict, "a dict"),
    (KeysView, "the keys of a dict"),
    (ValuesView, "the values of a dict"),
    (ItemsView, "the items of a dict"),
)


@dataclass(frozen=True)
class Counted:
    """What is as long as a range whose bounds differ from lane to lane."""

    length: tf.Tensor


def counted(*bounds: Any) -> Any:
    """What is as long as `range(*bounds)`: that range where the bounds are known. A step of 0 makes it empty.

    A lane with that step has failed before.
    """
    try:
        known = tuple(map(operator.index, bounds))
        return range(*known) if known[2:] != (0,) else ()
    except (TypeError, NotImplementedError):
        pass
    if len(bounds) == 1:
        return Counted(tf.maximum(_int(bounds[0], tf.int32), 0))
    first, stop, step = (_int(each, tf.int64) for each in (*bounds, 1)[:3])  # the span of two int32 is wider
    size = tf.maximum(tf.abs(step), 1)
    span = tf.where(step > 0, stop - first, first - stop)
    turns = (tf.maximum(span, 0) + size - 1) // size
    return Counted(tf.cast(tf.minimum(tf.where(step == 0, tf.zeros_like(turns), turns), tf.int32.max), tf.int32))


def _int(number: Any, dtype: tf.DType) -> tf.Tensor:
    return tf.cast(tf.convert_to_tensor(number), dtype)


def shortest(*sequences: Any, strict: bool = False) -> Any:
    """The length of the shortest of some arrays, tuples and lists; PieceRefusalError for what a loop cannot go over.

    With `strict` they must be of one length: ValueError. With bounded lists or ranges among them it may differ by lane.
    """
    differing = [sequence.length for sequence in sequences if isinstance(sequence, Bounded | Counted)]
    if differing and strict:
        kind = "range" if any(isinstance(each, Counted) for each in sequences) else "bounded list"
        raise TypeError(f"the length of a {kind} differs from lane to lane; write `assert len(a) == len(b)`")
    if differing:
        fixed = [_length(sequence) for sequence in sequences if not isinstance(sequence, Bounded | Counted)]
        return Weak(tf.reduce_min(tf.stack([*differing, *fixed])))
    lengths = [_length(sequence) for sequence in sequences]
    if strict and len(set(lengths)) > 1:
        raise ValueError(f"zip(.., strict=True) goes over sequences of lengths {', '.join(map(str, lengths))}")
    return min(lengths)


def unrolled(length: Any, known: int | None, turns: tuple[int, ...] = ()) -> int:
    """`length`, if it is the one that was `known` when a comprehension was written out; else LengthError.

    PieceRefusalError for one that differs by lane.
    """
    if not isinstance(length, int):
        raise PieceRefusalError(
            "PCB401",  # not a matter of syntax: `sum(..)` of it is a loop
            "how many elements this comprehension goes over differs from lane to lane",
            "a list has one length in all lanes; append to a `pcbatch.bounded(shape, dtype, capacity)` in a loop",
        )
    if length != known:
        message = "the length of what a comprehension with a batched call goes over is not known"
        if known is not None:
            message = (
                f"a comprehension with a batched call goes over {known} elements in one call and {length} in another"
            )
        raise LengthError(
            "PCB130", message, "write a loop that adds to a total, or stores into an array", length, turns
        )
    return length


def unbound(name: str, header: str) -> Any:
    """PieceRefusalError PCB201: `name` has no value behind a loop that may make no turn."""
    raise PieceRefusalError(
        "PCB201",
        f"`{name}` is not assigned on every path to this place: the loop `{header}` may make no turn",
        f"assign `{name}` once before the loop; a loop over a constant range, or over an array, does assign it",
    )


def _is_array(x: Any) -> bool:
    return isinstance(x, (tf.Tensor, tf.Variable, np.ndarray))


def sequence(value: Any, is_written_out: bool = False, is_changed: bool = False) -> Any:
    """`value`, what is read from a variable, if a loop can go over it; else PieceRefusalError.

    A loop that is written out can go over more; see `written_out.held`.
    """
    if is_written_out:
        return written_out.held(value, is_changed=is_changed)
    if not isinstance(value, Bounded):
        _length(value)
    return tf.convert_to_tensor(value) if isinstance(value, tf.Variable) else value


def _length(sequence: Any, refusal: type[PieceRefusalError] = PieceRefusalError) -> int:
    if isinstance(sequence, tuple | list | range):
        return len(sequence)
    if _is_array(sequence) and len(sequence.shape) > 0:
        return int(sequence.shape[0])
    kind, help = _no_sequence(sequence)
    raise refusal("PCB401", f"a loop goes over an array, a tuple, a list or a range, not over {kind}", help)


def _no_sequence(value: Any) -> tuple[str, str]:
    """What `value`, which a loop cannot go over, is, and what to write instead."""
    if isinstance(value, (bool, int, float, Weak)) or _is_array(value):
        return "a number", f"write `for i in range(n):` to count up to a number; {SHARED_ARGUMENT}"
    for kind, of in (
        (KeysView, "the keys of "),
        (ValuesView, "the values of "),
        (ItemsView, "the items of "),
        (dict, ""),
    ):
        if isinstance(value, kind):
            help = 'write out the values, `for value in (d["a"], d["b"]):`, since no lane can hold a key'
            return f"{of}a dict", help
    if isinstance(value, (str, bytes)):
        return describe(value), "no lane can hold text; loop over `range(len(..))`, or over numbers"
    return describe(value), "make a tuple or a list of its elements"


def element(sequence: Any, position: Any, count: int | None = None) -> Any:
    """The element at `position`, which is in range for every lane that is really there.

    With `count` it is a number that is known, in a loop over so many elements that is written out. Else
    Arrays `[n, ...]` give `[...]`. The elements of tuples and lists must have types that join, as the values of one
    variable do; TypeError where they do not.
    """
    if count is not None:
        return written_out.entry(sequence, position)
    if isinstance(sequence, Bounded):
        sequence = sequence.items
    size = _length(sequence, RefusedBeforeError)  # the head of the loop has asked for the length
    place = tf.clip_by_value(tf.cast(tf.convert_to_tensor(position), tf.int32), 0, max(size - 1, 0))  # junk lanes
    if _is_array(sequence):
        return _row(tf.convert_to_tensor(sequence), place)
    if size == 0:
        raise TypeError("a loop over an empty tuple or list never runs; leave it out")
    type_ = joined(sequence, "the elements that a loop goes over")
    leaves = zip(*(leaf_tensors(item, type_) for item in sequence), strict=True)
    return wrap(values.pack(type_, [_row(tf.stack(each), place) for each in leaves]), type_)


def _row(array: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
    if array.shape[0] == 0:  # the loop never runs; only types are asked for
        return tf.zeros(array.shape[1:], array.dtype)
    return tf.gather(array, place)


def parts(value: Any, count: int) -> Any:
    """`value`, a sequence of `count` parts as a pattern of `match` wants it; TypeError for everything else."""
    if not isinstance(value, (tuple, list)):
        kind = "an array" if isinstance(value, (Weak, tf.Tensor, tf.Variable)) else f"a {type(value).__name__}"
        raise TypeError(
            f"a sequence pattern takes tuples and lists apart, not {kind}; capture it and test its elements"
        )
    if len(value) != count:
        raise TypeError(f"a pattern of {count} parts can never match a {type(value).__name__} of {len(value)}")
    return value


def spread(value: Any) -> Any:
    """What `*value` unpacks: an array along its first axis, everything else as Python; TypeError for a number."""
    if isinstance(value, Weak) or (_is_array(value) and len(value.shape) == 0):
        raise TypeError("a number cannot be taken apart; an array can, along its first axis")
    return tf.unstack(value) if isinstance(value, (tf.Tensor, tf.Variable)) else value


def unpacked(value: Any, pattern: Any) -> Any:
    """`value` for an assignment to a tuple of targets: tensors along their first axis, other values as Python.

    `pattern` is None for a name, ... for a starred one, a tuple of patterns for a tuple of targets. ValueError where
    the numbers differ.
    """
    if pattern is None or pattern is ...:
        return value
    items = list(spread(value))
    if ... in pattern:
        before = pattern.index(...)
        after = len(pattern) - before - 1
        if len(items) < before + after:
            raise ValueError(f"{len(items)} values for at least {before + after} targets")
        pattern = (*pattern[:before], *[None] * (len(items) - before - after), *pattern[before + 1 :])
    if len(items) != len(pattern):
        raise ValueError(f"{len(items)} values for {len(pattern)} targets")
    return tuple(unpacked(item, part) for item, part in zip(items, pattern, strict=True))
