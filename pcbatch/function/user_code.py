"""The boundary between a user's code and pcbatch's: what tracebacks show, and whose piece runs.

TensorFlow's AutoGraph sees of it what tracebacks do.

User code that runs while a batched function is compiled or traced belongs to its pieces.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from pcbatch.errors import PcbatchError
from pcbatch.runtime.report.run import RunInterruptedError

# -- tracebacks --------------------------------------------------------------------------------------------------------


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


# -- tracing -----------------------------------------------------------------------------------------------------------


_inside: ContextVar[str | None] = ContextVar("inside", default=None)
"""The batched function that is being compiled or traced: whatever calls another one then is one of its pieces."""


def compiling() -> str | None:
    """The batched function of which a piece is being traced right now, None in ordinary code."""
    return _inside.get()


@contextmanager
def pieces_of(name: str) -> Iterator[None]:
    """Treat the user's code inside as a piece of the batched function `name`."""
    token = _inside.set(name)
    try:
        yield
    finally:
        _inside.reset(token)


_noting: ContextVar[list[Any] | None] = ContextVar("noting", default=None)
"""A list of bool scalars, one for each call of a batched function inside a piece: true where the lane did not fail."""


@contextmanager
def calls_as_operations() -> Iterator[list[Any]]:
    """Make calls of batched functions inside a piece operations of it, each for all lanes at once.

    For each call the list has a bool scalar, whether the lane has not failed there: whoever is here heeds it.
    """
    noted: list[Any] = []
    token = _noting.set(noted)
    try:
        yield noted
    finally:
        _noting.reset(token)


def noting() -> list[Any] | None:
    """The list to which a call of a batched function appends whether its lane is fine; None where calls are refused."""
    return _noting.get()


@contextmanager
def ordinary_code() -> Iterator[None]:
    """Run code that is not part of a piece, even while a piece is being traced around it."""
    inside, noted = _inside.set(None), _noting.set(None)
    try:
        yield
    finally:
        _inside.reset(inside)
        _noting.reset(noted)
