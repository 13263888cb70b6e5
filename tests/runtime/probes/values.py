"""Tests of the internals for conversion to tensors that `private` uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from tests.runtime.probes.use import Use


def _composites_are_known() -> bool:
    class Own(tf.experimental.ExtensionType):  # type: ignore[misc]
        x: tf.Tensor

    return isinstance(Own(tf.constant(1)), private.composite_types())


class _Seen(np.ndarray):
    """An array of the probe's own, of which nobody else is asked."""


def _arrays_are_seen() -> bool:
    seen = []

    def conversion(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        if isinstance(value, _Seen):
            seen.append((tf.as_dtype(dtype or tf.string), private.in_operator()))
        return NotImplemented

    array = np.ones(1, np.int64).view(_Seen)
    with private.new_graph("probe").as_default(), private.asked_first((_Seen,), conversion) as is_asked:
        tf.compat.v1.placeholder(tf.int64, [1]) - array
        tf.subtract(tf.compat.v1.placeholder(tf.int64, [1]), array)
    return is_asked and seen == [(tf.int64, True), (tf.int64, False)]


USES = (
    Use(
        "determinism",
        lambda: private.is_deterministic() is not None,
        "pcbatch.cache does not tell programs apart that differ in enable_op_determinism alone",
    ),
    Use(
        "composite values",
        _composites_are_known,
        "a value of an extension type as an argument is refused with an error of TensorFlow's own",
    ),
    Use(
        "arrays that become tensors",
        _arrays_are_seen,
        "a constant array of NumPy's is cut to the dtype of what it meets, floats beside an int to ints",
    ),
)
