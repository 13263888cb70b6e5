"""The boundary between a user's code and pcbatch's: what tracebacks and TensorFlow's AutoGraph see of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pcbatch.errors import PcbatchError
from pcbatch.runtime.report.run import RunInterruptedError

Q = ParamSpec("Q")
T = TypeVar("T")

NOT_FOR_AUTOGRAPH: dict[str, Any] = {"autograph_info__": None}
"""Attributes by which AutoGraph knows code that it must not rewrite when it traces a caller's tf.function."""


OURS = (PcbatchError, RunInterruptedError)
"""The errors of which a user's traceback shows none of our insides."""


def not_for_autograph(method: T) -> T:
    """`method`, which AutoGraph is to call as it is."""
    vars(method).update(NOT_FOR_AUTOGRAPH)
    return method


def without_internals(method: Callable[Q, T]) -> Callable[Q, T]:
    """`method`, errors that are `OURS` raised anew from here."""

    @functools.wraps(method)
    def wrapper(*args: Q.args, **kwargs: Q.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except OURS as error:
            raise error.with_traceback(None) from None

    return not_for_autograph(wrapper)
