"""Hints to the schedule. They change which lanes run together, never what a lane computes."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from pcbatch.errors import PieceRefusalError, UsageError
from pcbatch.frontend.source.hints import COST_ATTRIBUTE, is_cost

F = TypeVar("F", bound=Callable[..., Any])


def cost(row: float) -> Callable[[F], F]:
    """Say what one row (one lane) of each block of a batched function costs, in multiply-adds or elements.

    A decorator, over `autobatch` or under it:

        @pcbatch.autobatch
        @pcbatch.cost(1e6)
        def gradient(q): ...

    The machine estimates costs by itself; a hint is for work that it cannot see, such as a loop inside an operation.
    The schedule "adaptive" lets lanes gather at blocks that are expensive. Raises UsageError PCB550 where `row` is not
    a positive finite number.
    """
    if not is_cost(row):
        raise UsageError("PCB550", f"a row cannot cost {row!r}; give a positive number, about how many multiply-adds")

    def noted(function: F) -> F:
        if isinstance(function, FunctionType):
            setattr(function, COST_ATTRIBUTE, float(row))
            return function
        from pcbatch.function.batched import Batched

        if isinstance(function, Batched):
            return function.costing(float(row))  # type: ignore[return-value]
        raise UsageError("PCB553", f"{function!r} is no function; put `pcbatch.cost(..)` next to `autobatch`")

    return noted


def sync() -> None:
    """Wait here for the others: as a statement of a batched function, lanes go on only when no other lane can run.

    Write it before what is expensive and rare, so that all lanes do it at the same time. Where lanes wait at several
    places, those at one place go on, the place of the lane that has taken the fewest loop turns and calls. A hint:
    results do not depend on it, and one example alone (`f.single`) does nothing here.
    """
    from pcbatch.function.session import compiling

    if compiling() is not None:
        raise PieceRefusalError(
            "PCB552",
            f"`pcbatch.sync()` is called by a helper of `{compiling()}`",
            "helpers are traced once for all lanes: write it in a batched function itself",
        )
