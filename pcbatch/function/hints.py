"""Hints to the schedule, and `debug`, none of which changes a lane's results."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from pcbatch.errors import PieceRefusalError, UsageError
from pcbatch.frontend.source import COST_ATTRIBUTE, is_cost
from pcbatch.runtime.report.faults import filled

F = TypeVar("F", bound=Callable[..., Any])


def cost(row: float) -> Callable[[F], F]:
    """Set the cost of one row (one lane) of each block of a batched function, in multiply-adds or elements.

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
    from pcbatch.function.user_code import compiling

    if compiling() is not None:
        raise PieceRefusalError(
            "PCB552",
            f"`pcbatch.sync()` is called by a helper of `{compiling()}`",
            "what a library calls is traced once for all lanes: write it in the batched function itself, or in "
            "a helper that this calls",
        )


def debug(text: str, *values: Any) -> None:
    """Print values of a lane: a statement of a batched function, seen only for lanes that come to it.

        pcbatch.debug("n = {}, x = {:.3f}", n, x)
        pcbatch.debug("here", n)

    `text` is written there, with a field `{}` for each value or with none, then the values follow it; values are
    numbers and arrays, of large ones the beginning is shown. In every form and strategy each lane keeps what it has to
    say, the first 32 and the last 32 times, and it is printed when the run has ended, also for lanes that failed: lane
    by lane, each with its number and its line, in its own order. So nothing is printed for a run in a `tf.function`.
    `f.single` prints at once. Programs without it cost nothing.
    """
    from pcbatch.function.user_code import compiling

    if compiling() is not None:
        raise PieceRefusalError(
            "PCB555",
            f"`pcbatch.debug(..)` is called by a helper of `{compiling()}`",
            "what a library calls is traced once for all lanes: write it in the batched function itself, or in "
            "a helper that this calls",
        )
    print(filled(text, [getattr(value, "numpy", lambda value=value: value)() for value in values]))
