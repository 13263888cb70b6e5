"""`pcbatch.map`: a function for each element of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.ir.types import Type, leaves
from pcbatch.ir.values import pack

_HELP = "let them give arrays, or tuples, lists and dicts of arrays, of one type each"


def map(function: Callable[..., Any], *arrays: Any, count: Any = None) -> Any:
    """The results of `function` for all elements of `arrays` along their first axis, or the first `count`, stacked.

    In a batched function up to 64 calls are written out, one after another, if there is no count; else they are a
    loop. Where calls are forked (`fork=True`) they are made at the same time, 16 of them where they are a loop:

        @pcbatch.autobatch(fork=True)
        def encode(children, count, node): ...
            states = pcbatch.map(lambda child: encode(children, count, child), children[node], count=count[node])

    Arguments:
        function: a batched function, or any other.
        *arrays: arrays, or lists, of equal length; at least one, with at least one element.
        count: for how many elements, the first ones, `function` is called; an int from 0 to the length, which may
            differ by lane. None: for all of them.

    Returns:
        What `function` gives, each array of it with a first axis more: `[length, ...]`. Rows from `count` on are zeros.
        With a count, or of more than 64 elements, it is an array, or a tuple, a list or a dict of such.

    Raises:
        UsageError: PCB556, where there are no arrays, or no elements, or, outside of batched functions, a count of 0.
        ValueError: for a count that is negative or larger than the length. In a batch the lane fails.
    """
    if not arrays:
        raise UsageError("PCB556", "`pcbatch.map` needs something to go over: `pcbatch.map(function, array)`")
    elements = list(zip(*arrays, strict=True))
    if count is None:
        return stacked([function(*each) for each in elements])
    return padded([function(*each) for each in elements[: checked_count(count, len(elements))]], len(elements))


def checked_count(count: Any, length: int) -> int:
    """A count as an int; ValueError where it is none of so many elements."""
    found = operator.index(count)
    if not 0 <= found <= length:
        raise ValueError(f"count={found} of {length} elements")
    return found


def stacked(results: Sequence[Any]) -> Any:
    """Results of one structure as one, with a first axis more."""
    if not results:
        raise UsageError("PCB556", "`pcbatch.map` goes over no elements: nobody knows what the results would be")
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *results)


def padded(results: Sequence[Any], length: int, type_: Type | None = None) -> Any:
    """The same with rows of zeros behind them, `length` in all; `type_` is that of a result where there is none."""
    if results or type_ is None:
        return tf.nest.map_structure(
            lambda array: tf.pad(array, [[0, length - len(results)]] + [[0, 0]] * (len(array.shape) - 1)),
            stacked(results),
        )
    return pack(type_, [tf.zeros([length, *leaf.shape], leaf.returned) for leaf in leaves(type_)])


map.stacked = stacked  # type: ignore[attr-defined]
"""The form that batched functions call, in which calls of `function` are written out."""


# -- what a batched function does --------------------------------------------------------------------------------------


def blank(dtype: str, *shape: int) -> tf.Tensor:
    """An array of zeros."""
    return tf.zeros(shape, dtype)
