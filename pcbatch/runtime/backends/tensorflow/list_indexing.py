"""Lists and tuples at positions that differ by lane: elements, which must be alike, are read and replaced there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.joins import ConflictError, join
from pcbatch.ir.types import Type
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, leaf_tensors, spelling, type_of, wrap


def joined(items: Sequence[Any], what: str) -> Type:
    """Return the type that holds each of `items`; TypeError on behalf of `what` where there is none."""
    type_: Type | None = None
    try:
        for item in items:
            type_ = join(type_, type_of(item))
    except ConflictError as error:
        raise TypeError(f"{what} must be alike ({error.told(spelling)}); write them out one by one") from None
    except NotATensorError as error:
        raise TypeError(f"{what} must be numbers or arrays, not {error}") from None
    assert type_ is not None  # only the join of unknown types is unknown
    return type_


def taken_at(items: Sequence[Any], place: tf.Tensor) -> Any:
    """The element of `items` at `place`, an int32 scalar that is in range."""
    type_ = joined(items, "the elements of what is indexed by a lane's number")
    leaves = zip(*(leaf_tensors(item, type_) for item in items), strict=True)
    return wrap(values.pack(type_, [tf.gather(tf.stack(each), place) for each in leaves]), type_)


def replaced_at(items: Sequence[Any], value: Any, place: tf.Tensor) -> list[Any]:
    """`items` with `value` at `place`, an int32 scalar that is in range for every lane that is really there."""
    type_ = joined([*items, value], "the elements of a list that is changed at a lane's number, and the new one,")
    here = tf.equal(tf.constant(np.arange(len(items), dtype=np.int32)), place)
    olds = zip(*(leaf_tensors(item, type_) for item in items), strict=True)

    def chosen(new: tf.Tensor, old: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        found: list[tf.Tensor] = tf.unstack(tf.where(tf.reshape(here, [-1, *[1] * new.shape.rank]), new, tf.stack(old)))
        return found

    columns = [chosen(new, old) for new, old in zip(leaf_tensors(value, type_), olds, strict=True)]
    return [wrap(values.pack(type_, [column[at] for column in columns]), type_) for at in range(len(items))]
