"""`pcbatch.map`: a function for each element of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.errors import UsageError


def map(function: Callable[..., Any], *arrays: Any) -> Any:
    """The results of `function` for all elements of `arrays` along their first axis, stacked.

    In a batched function each call is written out, up to 64 of them; where calls are forked (`fork=True`) they are made
    at the same time:

        @pcbatch.autobatch(fork=True)
        def encode(children, node): ...
            states = pcbatch.map(lambda child: encode(children, child), children[node])

    Arguments:
        function: a batched function, or any other.
        *arrays: arrays, or lists, of equal length; at least one, with at least one element.

    Returns:
        What `function` gives, each array of it with a first axis more: `[length, ...]`.

    Raises:
        UsageError: PCB556, where there are no arrays, or no elements.
    """
    if not arrays:
        raise UsageError("PCB556", "`pcbatch.map` needs something to go over: `pcbatch.map(function, array)`")
    return stacked([function(*each) for each in zip(*arrays, strict=True)])


def stacked(results: Sequence[Any]) -> Any:
    """Results of one structure as one, with a first axis more."""
    if not results:
        raise UsageError("PCB556", "`pcbatch.map` goes over no elements: nobody knows what the results would be")
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *results)


map.stacked = stacked  # type: ignore[attr-defined]
"""What a batched function calls of it, whose calls of `function` are written out."""
