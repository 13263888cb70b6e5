"""The batched function that is being compiled or traced: user code that runs meanwhile belongs to its pieces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

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
