"""Where user code runs while a program is traced: there it is followed, and nowhere else.

Before Python 3.12, what it reads is followed by a trace function, under which all code runs half as fast, pcbatch's and
TensorFlow's, too. So that is set aside, and only set for the pieces that may reach code of the user's: of the sampler's
75 traces those of its gradient.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol

from pcbatch.ir.types import Type


class Follower(Protocol):
    """Whoever follows the user's code in this thread."""

    def is_set(self) -> bool | None:
        """Whether it does; None if that cannot be changed: the trace function of this thread is a debugger's."""

    def set(self, follows: bool) -> None:
        """Do, or do not."""

    def note(self, owner: Any, get: Callable[[], tuple[Any, ...]]) -> None:
        """Something of `owner` is part of what is traced, as it is now; `get` says how it is, to be compared."""

    def may_reach_users(self, function: Callable[..., Any], types: Iterable[Type]) -> bool:
        """Whether a piece's `function` may run code of the user's, on values of these types."""


_follower: ContextVar[Follower | None] = ContextVar("follower", default=None)


@contextlib.contextmanager
def by(follower: Follower) -> Iterator[None]:
    """Inside, `follower` is asked."""
    token = _follower.set(follower)
    try:
        yield
    finally:
        _follower.reset(token)


def note(owner: Any, get: Callable[[], tuple[Any, ...]]) -> None:
    """Something of `owner` is part of what is traced, as it is now; `get` says how it is, to be compared."""
    follower = _follower.get()
    if follower is not None:
        follower.note(owner, get)


def apart() -> contextlib.AbstractContextManager[None]:
    """Nothing is followed inside but pieces that may reach code of the user's."""
    follower = _follower.get()
    return contextlib.nullcontext() if follower is None else _following(follower, False)


def if_users(function: Callable[..., Any], types: Iterable[Type]) -> contextlib.AbstractContextManager[None]:
    """What a piece's `function` does inside is followed if it may reach code of the user's."""
    follower = _follower.get()
    if follower is None:
        return contextlib.nullcontext()
    return _following(follower, follower.may_reach_users(function, types))


def users() -> contextlib.AbstractContextManager[None]:
    """What is done inside is followed: it may be the user's code."""
    follower = _follower.get()
    return contextlib.nullcontext() if follower is None else _following(follower, True)


@contextlib.contextmanager
def _following(follower: Follower, follows: bool) -> Iterator[None]:
    before = follower.is_set()
    if before is None or before is follows:
        yield
        return
    follower.set(follows)
    try:
        yield
    finally:
        if follower.is_set() is follows:  # unless the user's code has started a debugger
            follower.set(before)
