"""Equivalents of NumPy functions in TensorFlow, with NumPy's rules for axes, dtypes and names.

A function of floats gives float64 for ints, as NumPy does, and keeps a float tensor's dtype; of a weak number it gives
a weak one. Reductions keep the tensor's dtype (NumPy would widen int32). Of static values alone NumPy's own function
is called, and a scalar result is a Python number: a NumPy float would make TensorFlow truncate silently beside an int.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_arrays import ARRANGING, SORTING, made, take
from pcbatch.runtime.backends.tensorflow.numpy_elementwise import ELEMENTWISE, Equivalent
from pcbatch.runtime.backends.tensorflow.numpy_matrices import MATRICES, SERIES, SIZED
from pcbatch.runtime.backends.tensorflow.numpy_reductions import REDUCTIONS
from pcbatch.runtime.backends.tensorflow.weak import is_lane_value


def _varies(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_varies(item) for item in value)
    return is_lane_value(value)


def _equivalent(path: str, function: Equivalent) -> Equivalent:
    """`function` for values of lanes, NumPy's own `path` for static ones."""

    def of_arrays(*arguments: Any, **options: Any) -> Any:
        if any(_varies(x) for x in (*arguments, *options.values())):
            return function(*arguments, **options)
        native: Any = np
        for step in path.split("."):
            native = getattr(native, step)
        result = native(*arguments, **options)
        return result.item() if isinstance(result, np.generic) else result

    return of_arrays


def _cast(dtype: Any) -> Equivalent:
    """`np.float32(x)`: a committed dtype, of a literal too."""
    return lambda x=0: made(x, dtype) if is_lane_value(x) else tf.constant(x, dtype)


_CASTS = (
    *("bool_", "float16", "float32", "float64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)

_FUNCTIONS = {**ELEMENTWISE, **REDUCTIONS, **MATRICES, **ARRANGING, **SERIES, **SIZED, **SORTING}
EQUIVALENTS: dict[str, Equivalent] = {
    path.replace(".", "_"): _equivalent(path, function) for path, function in _FUNCTIONS.items()
} | {name: _cast(getattr(np, name)) for name in _CASTS}
EQUIVALENTS["take"] = take
NAMES = {path: path.replace(".", "_") for path in (*_FUNCTIONS, *_CASTS, "take")} | {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "around": "round",
    "concat": "concatenate",
    "conjugate": "conj",
    "fix": "trunc",
    "trapz": "trapezoid",
    "true_divide": "divide",
}
"""Path in `numpy` to attribute of this module."""


def __getattr__(name: str) -> Equivalent:
    try:
        return EQUIVALENTS[name]
    except KeyError:
        raise AttributeError(name) from None
