"""Batched functions as arguments of a `tf.function`, or as defaults of these: their trace types.

TensorFlow takes what has a `__wrapped__` for that: the body would be traced with the user's function of one example
in place of the batched one.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


class IdentityTraceType(tf.types.experimental.TraceType):  # type: ignore[misc]  # it has no types
    """The type of one object alone; it does not keep it alive."""

    def __init__(self, value: Any):
        self._reference = weakref.ref(value)
        self._hash = id(value)

    def is_subtype_of(self, other: tf.types.experimental.TraceType) -> bool:
        return bool(self == other)

    def most_specific_common_supertype(
        self, others: Sequence[tf.types.experimental.TraceType]
    ) -> IdentityTraceType | None:
        return self if all(self == other for other in others) else None

    def placeholder_value(self, placeholder_context: Any) -> Any:
        return self._reference()

    def cast(self, value: Any, cast_context: Any) -> Any:
        if value is not self._reference():
            raise ValueError(f"{value!r} is not {self!r}")
        return value

    def __eq__(self, other: object) -> bool:
        value = self._reference()
        return isinstance(other, IdentityTraceType) and value is not None and value is other.placeholder_value(None)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Itself({self._reference()!r})"
