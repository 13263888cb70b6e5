"""Which batched function is being compiled or traced: whatever of the user's code runs then is one of its pieces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_inside: ContextVar[str | None] = ContextVar("inside", default=None)
"""The batched function that is being compiled or traced: whatever calls another one then is one of its pieces."""


def compiling() -> str | None:
    """The batched function of which a piece is being traced right now, None in ordinary code."""
    return _inside.get()


@contextmanager
def pieces_of(name: str) -> Iterator[None]:
    """Whatever of the user's code runs inside is a piece of the batched function `name`."""
    token = _inside.set(name)
    try:
        yield
    finally:
        _inside.reset(token)
