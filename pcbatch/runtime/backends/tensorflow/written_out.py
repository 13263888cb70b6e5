"""What loops that are written out, turn by turn, ask of what they go over: how many turns there are, and elements."""

from __future__ import annotations

import operator
from collections.abc import ItemsView, KeysView, ValuesView
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import LengthError, PieceRefusalError

VIEWS = (KeysView, ValuesView, ItemsView)
_COPY = "loop over a copy, `for x in [*xs]:`, `for k in [*d]:`"


def turns(
    known: int | None,
    place: tuple[int, ...],
    *sequences: Any,
    bounds: tuple[Any, ...] = (),
    strict: bool = False,
    is_end: bool = False,
) -> int:
    """`known`, if a loop over `sequences`, or over a range of these `bounds`, makes so many turns; else LengthError.

    That says how many they are, None where lanes may differ. `place` are the turns of written-out loops around it.
    At the end of the loop its sequences, which change in it, must be as long as they were.
    """
    found, lengths = (_of_range(bounds), []) if bounds else _of_sequences(sequences, strict=strict)
    if is_end and found != known:
        message = f"a loop of {known} turns goes over what is {found} long when it ends; Python's would go on"
        raise PieceRefusalError("PCB401", message, _COPY)
    if known is None or found != known:
        message = "how many turns this loop makes is not known"
        if known is not None:
            message = f"this loop makes {known} turns in one call and {found} in another, and needs a constant number"
        help = "give each call its own batched function, or make the lengths equal"
        raise LengthError("PCB130", message, help, found, place)
    if strict and len({*lengths}) > 1:
        lengths = sorted({*lengths})
        message = f"`zip(.., strict=True)` of {' and '.join(map(str, lengths))} elements, which Python refuses"
        raise PieceRefusalError("PCB401", message, "make the lengths equal")
    return known


def _of_range(bounds: tuple[Any, ...]) -> int | None:
    try:
        return len(range(*map(operator.index, bounds)))
    except (TypeError, ValueError, NotImplementedError):  # a lane's number; a step of 0, which fails where it is
        return None


def _of_sequences(sequences: tuple[Any, ...], *, strict: bool) -> tuple[int | None, list[int]]:
    """How many turns there are, and of how many elements each is of which that is known.

    Those that are to be of one length may differ as long as a loop that fills one of them is not written out.
    """
    found = [_length(each) for each in sequences]
    lengths = [each for each in found if each is not None]
    if len(lengths) < len(found):
        return None, lengths
    return max(lengths) if strict else min(lengths), lengths


def _length(sequence: Any) -> int | None:
    if isinstance(sequence, (tuple, list, range, dict, str, *VIEWS)):
        return len(sequence)
    if isinstance(sequence, (tf.Tensor, tf.Variable, np.ndarray)) and len(sequence.shape) > 0:
        return sequence.shape[0] if sequence.shape[0] is None else int(sequence.shape[0])
    return None


def held(value: Any, *, is_changed: bool) -> Any:
    """`value`, what a written-out loop goes over, as something that a variable can keep.

    A dict is its keys, texts are a tuple, which is a constant. Where the loop changes parts of it, Python's would see
    that of lists and dicts, while arrays are values.
    """
    if is_changed and not isinstance(value, (dict, list)):
        raise PieceRefusalError("PCB401", "a loop goes over what it changes", _COPY)
    if isinstance(value, (dict, str, *VIEWS)):
        return tuple(value)
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return tuple(value)
    return value


def entry(sequence: Any, position: int) -> Any:
    """The element of `sequence` at a position that is known."""
    if isinstance(sequence, (dict, str, *VIEWS)):
        sequence = tuple(sequence)
    if isinstance(sequence, (tuple, list)) and position >= len(sequence):
        raise PieceRefusalError("PCB401", "a loop goes over a list or a dict that gets shorter", _COPY)
    if isinstance(sequence, (tf.Variable, np.ndarray)):
        sequence = tf.convert_to_tensor(sequence)
    return sequence[position]
