"""Notes of the state that operations read while a program is made, beside the reads of the user's own code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

State = Callable[[], tuple[Any, ...]]
"""A function that returns a state's present value, to be compared."""

_note: ContextVar[Callable[[State], None] | None] = ContextVar("note", default=None)


@contextlib.contextmanager
def by(note: Callable[[State], None]) -> Iterator[None]:
    """Call `note` inside for each state on which the program depends."""
    token = _note.set(note)
    try:
        yield
    finally:
        _note.reset(token)


def note(state: State) -> None:
    """Note that the trace depends on this state."""
    told = _note.get()
    if told is not None:
        told(state)
