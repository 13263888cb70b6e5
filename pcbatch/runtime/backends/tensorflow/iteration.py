"""Sequences taken apart: iterables of loops, patterns of `match`, unpacking, starred arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.weak import Weak


def _is_array(x: Any) -> bool:
    return isinstance(x, (tf.Tensor, tf.Variable, np.ndarray))


def spread(value: Any) -> Any:
    """Return the items of `*value`: of an array along its first axis, otherwise as Python; TypeError for a number."""
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
