"""Arrays of which a piece reads elements alone, `x = a[i]`: gradients come to these elements, and no array is made.

The gradient of a lookup is an array of zeros but for the element. Where nothing but lookups of one element reads an
array of a lane, the derivative stops at what is looked up; who undoes the piece adds it at the element's place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow.trace_partition import Anatomy
from pcbatch.runtime.backends.tensorflow.traces import Trace


@dataclass(frozen=True)
class ElementRead:
    """An element `tensor`, at scalar `indices` of the array that is read at `place`, its only `leaf`."""

    place: int
    leaf: int
    indices: tuple[tf.Tensor, ...]
    tensor: tf.Tensor


def taken(
    anatomy: Anatomy, signature: Signature, traced: Trace, outputs: Sequence[tf.Tensor], reads: Sequence[int]
) -> Iterator[ElementRead]:
    """All elements that are taken of arrays, of the leaves `reads`, of which nothing else is read."""
    first = 0
    for place, type_ in enumerate(signature.reads):
        count = len([*leaf_types(type_)])
        if count == 1 and first in reads:
            array = traced.reads[first]
            found = [] if any(array is output for output in outputs) else _taken(anatomy, array)
            yield from (ElementRead(place, first, *each) for each in found or ())
        first += count


def _taken(anatomy: Anatomy, array: tf.Tensor) -> list[tuple[tuple[tf.Tensor, ...], tf.Tensor]] | None:
    """The elements that are taken of an array, each with its indices; None where something else is done with it."""
    found: list[tuple[tuple[tf.Tensor, ...], tf.Tensor]] = []
    for operation in anatomy.operations:
        if not any(tensor is array for tensor in operation.inputs):
            continue
        if _is_lookup(operation, array):
            found.append((_indices(array, 1, operation.inputs[1]), operation.outputs[0]))
            continue
        depth = _merged(operation, array)
        if depth is None:
            return None
        merged = operation.outputs[0]
        for other in anatomy.operations:
            if any(tensor is merged for tensor in other.inputs):
                if not _is_lookup(other, merged):
                    return None
                found.append((_indices(array, depth, other.inputs[1]), other.outputs[0]))
    return found


def _is_lookup(operation: Any, array: tf.Tensor) -> bool:
    """Return whether an operation takes one element of the array along its first axis."""
    if operation.type != "GatherV2" or operation.inputs[0] is not array or operation.get_attr("batch_dims") != 0:
        return False
    return bool(operation.inputs[1].shape.rank == 0 and tf.get_static_value(operation.inputs[2]) == 0)


def _merged(operation: Any, array: tf.Tensor) -> int | None:
    """Return the number of leading axes that an operation merges into one; None if it does something else."""
    if operation.type != "Reshape" or operation.inputs[0] is not array:
        return None
    shape = operation.outputs[0].shape
    for depth in range(2, array.shape.rank + 1):
        if shape.as_list() == [math.prod(array.shape[:depth]), *array.shape[depth:]]:
            return depth
    return None


def _indices(array: tf.Tensor, depth: int, index: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The indices for the first axes of an array, of that for all of them as one axis."""
    index = tf.cast(index, tf.int32)
    found: list[tf.Tensor] = []
    for size in reversed(array.shape[1:depth].as_list()):
        found.append(index % size)
        index = index // size
    return (index, *reversed(found))
