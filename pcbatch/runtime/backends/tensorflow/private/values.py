"""TensorFlow's treatment of values: conversions, their callers, and containers of several tensors."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.private import lookup


def is_deterministic() -> bool | None:
    """Return whether `tf.config.experimental.enable_op_determinism` was called; None where that cannot be asked."""
    asked = lookup.find(lookup.DETERMINISM)
    return None if asked is None else bool(asked())


def composite_types() -> tuple[type, ...]:
    """The types of values that are made of several tensors: sparse, ragged, a user's own."""
    every = getattr(getattr(tf, "__internal__", None), "CompositeTensor", None)
    return (tf.SparseTensor, tf.RaggedTensor, tf.IndexedSlices) if every is None else (every,)


@contextlib.contextmanager
def asked_first(types: tuple[type, ...], conversion: Callable[..., Any]) -> Iterator[bool]:
    """Ask `conversion(value, dtype, name, as_ref)` before TensorFlow makes tensors of NumPy's arrays, inside.

    This holds for every thread until the block ends. Yields False where this version cannot.
    """
    registry = lookup.find(lookup.CONVERSIONS)
    functions = getattr(registry, "_tensor_conversion_func_registry", None)
    known = getattr(registry, "_tensor_conversion_func_cache", None)
    lock = getattr(registry, "_tensor_conversion_func_lock", None)
    if functions is None or known is None or lock is None:
        yield False
        return
    entry, priority = (types, conversion), -1  # those of NumPy's arrays are 0
    with lock:
        functions[priority].append(entry)
        known.clear()
    try:
        yield True
    finally:
        with lock:
            functions[priority].remove(entry)
            if not functions[priority]:
                del functions[priority]
            known.clear()


def in_product_of_bool() -> bool:
    """Return whether TensorFlow is computing `flag * x` of tensors, for which it converts both to bool."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(16):
        if frame is None:
            return False
        if frame.f_code.co_name == "_mul_dispatch_factory":
            return True
        frame = frame.f_back
    return False


_OPERATORS = frozenset({"binary_op_wrapper", "r_binary_op_wrapper", "tensor_equals", "tensor_not_equals"})
"""TensorFlow's functions that are methods of tensors for Python's operators."""


def in_operator() -> bool:
    """Return whether TensorFlow converts for one of Python's operators, not for a function that somebody called."""
    frame: FrameType | None = sys._getframe(1)
    inside = False
    while frame is not None:
        is_tensorflows = frame.f_globals.get("__name__", "").startswith("tensorflow.")
        if inside and not is_tensorflows:
            return False
        inside = inside or is_tensorflows
        if is_tensorflows and frame.f_code.co_name in _OPERATORS:
            return True
        frame = frame.f_back
    return False
