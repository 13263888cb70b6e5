"""What is known only once a call is traced: whether it gave back what it took, or something that may run later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.ir import records
from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.bounded import Bounded
from pcbatch.runtime.backends.tensorflow.weak import is_number


def apart(results: tuple[Any, ...], others: tuple[Any, ...], arrays: bool = True) -> None:
    """Refuse `results` of which one is, or contains, something that another or one of `others` is or contains.

    Nor may an object be at two places of a result. What is meant are arrays, unless nothing is stored into one, and
    lists, dicts and objects that can change. The frontend asks where a change of one of them would show in the other
    under Python. It is asked when a call is traced, and only then: at once, on one example, what two variables hold may
    be one object and mean nothing.
    """
    if tf.executing_eagerly():
        return
    known = {id(each): each for other in others for each in _changeable(other, arrays)}
    for result in results:
        objects = [id(each) for each in _changeable(result, False)]
        if len(objects) > len(set(objects)):
            raise PieceRefusalError(
                "PCB420",
                "what this gives has one object at two places, and one of them is changed later",
                "make each of them anew, `[Body(0.0) for _ in range(n)]`, or copy it, `copy.copy(p)`",
            )
        own = {id(each): each for each in _changeable(result, arrays)}
        if not known.keys().isdisjoint(own):
            raise PieceRefusalError(
                "PCB420",
                "what this gives is the same array or object as another one, and one of them is changed later",
                "copy it, `tf.identity(..)` of an array, `copy.copy(..)` of an object, here or in what is called",
            )
        known |= own


def plain_data(value: Any, name: str, line: int) -> None:
    """Refuse a `value` that could still run the lambda or generator of `line`, which reads the variable `name`."""
    if not _is_data(value):
        raise PieceRefusalError(
            "PCB421",
            f"what is made here may run later and read `{name}`, which is assigned before that",
            f"give the later value another name, or keep this one: `lambda .., {name}={name}: ..`",
        )


def _parts(value: Any) -> list[Any] | None:
    """The parts of a structure; None for what is none."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (tuple, list)):
        return list(value)
    fields = records.fields_of(value)
    return None if fields is None else list(fields.values())


def _changeable(value: Any, arrays: bool) -> Iterator[Any]:
    """What can change in a value: arrays, numbers apart (nothing is stored into one), lists, dicts and objects.

    A bounded list is one object: what changes it makes its array anew, and `pop` leaves that as it is.
    """
    if isinstance(value, Bounded):
        yield value
        return
    parts = _parts(value)
    if parts is not None:
        if not records.is_frozen(value):
            yield value
        for part in parts:
            yield from _changeable(part, arrays)
    elif arrays and isinstance(value, (tf.Tensor, tf.Variable, np.ndarray)) and len(value.shape) > 0:
        yield value


def _is_data(value: Any) -> bool:
    parts = _parts(value)
    if parts is not None:
        return all(map(_is_data, parts))
    known = (
        tf.Tensor,
        tf.Variable,
        *private.composite_types(),
        np.ndarray,
        np.generic,
        bool,
        int,
        float,
        complex,
        str,
        bytes,
    )
    return value is None or isinstance(value, known) or is_number(value)
