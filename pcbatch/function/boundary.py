"""Where a user's code calls pcbatch's: what tracebacks and TensorFlow's AutoGraph see of that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pcbatch.errors import PcbatchError
from pcbatch.runtime.report.run import RunInterruptedError

Q = ParamSpec("Q")
T = TypeVar("T")

NOT_FOR_AUTOGRAPH: dict[str, Any] = {"autograph_info__": None}
"""How TensorFlow's AutoGraph knows what it must not rewrite when a caller's tf.function is traced."""


def without_internals(method: Callable[Q, T]) -> Callable[Q, T]:
    """`method`, its pcbatch errors raised anew from here: a user's traceback shows none of our insides."""

    @functools.wraps(method)
    def wrapper(*args: Q.args, **kwargs: Q.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (PcbatchError, RunInterruptedError) as error:
            raise error.with_traceback(None) from None

    vars(wrapper).update(NOT_FOR_AUTOGRAPH)
    return wrapper
