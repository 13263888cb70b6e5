"""Stopping a run of `long_programs` where a test wants it: a clock in the place of the one that slices look at."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch import Run, threads
from pcbatch.runtime.machine import guarded
from pcbatch.runtime.resume import checkpoint
from tests.api import long_programs
from tests.api.long_programs import BATCHES


def ctrl_c() -> None:
    """Ctrl-C, as the terminal sends it."""
    signal.raise_signal(signal.SIGINT)


def bare_interrupt() -> None:
    """A KeyboardInterrupt out of the blue, as other handlers raise it."""
    raise KeyboardInterrupt


@contextmanager
def stopping(after: int | None, *, trips: int, by: Callable[[], None] = ctrl_c) -> Iterator[None]:
    """Slices of `trips` trips, and an interruption during slice number `after`, counted from 0; None: none.

    Python asks for the time before and after each slice; to the clock they all take as long as they should.
    """
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        if after is not None and looks == 2 * after + 1:
            by()
        return (
            (looks + 1) // 2 * checkpoint.SLICE_SECONDS
            if looks % 2 == 0
            else (looks - 1) // 2 * checkpoint.SLICE_SECONDS
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "perf_counter", clock)
        patch.setattr(checkpoint, "FIRST_TRIPS", trips)
        yield


def leaves(value: Any) -> list[np.ndarray]:
    """The arrays inside nested tuples."""
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [np.asarray(value)]


def everything(run: Run) -> dict[str, Any]:
    """All that a run says, to the bit."""
    return {
        "value": [(leaf.dtype.name, leaf.shape, leaf.tobytes()) for leaf in leaves(run.value)],
        "status": run.status.tolist(),
        "errors": [str(error) for error in run.errors],
        "executions": run.executions,
        "active": dict(run.utilization.active),
        "executed": dict(run.utilization.executed),
        "lane_steps": run.lane_steps.tolist(),
        "trips": run.trips,
        "stack_entries": int(run.outcome.stack_entries),
    }


@pytest.fixture(autouse=True)
def few_turns(monkeypatch: pytest.MonkeyPatch, no_collector: None) -> None:
    """Short runs have trips enough to be stopped between, if a block does not run many times in one.

    And a slice that has begun ends, however long it has to be compiled.
    """
    monkeypatch.setattr(guarded, "MOST_TURNS", 1)
    monkeypatch.setattr(threads, "PATIENCE", 10**6)


def made(name: str, **options: Any) -> pcbatch.Batched:
    """A program of its own, in lockstep, as runs in slices are."""
    base = getattr(long_programs, name)
    return pcbatch.autobatch(base.function, **{**base.changed_options(), "form": "lockstep", **options})


def as_new(function: pcbatch.Batched) -> pcbatch.Batched:
    """The function as if it had never run: stacks start small again."""
    for compilation in function.session.compiled.values():
        compilation.machine.sizes.capacity = compilation.machine.legs.limits.first_capacity
    return function


def stopped(name: str, path: Path, after: int = 2, trips: int = 10, **options: Any) -> Run:
    """A run that was stopped, saved in a file."""
    with stopping(after, trips=trips):
        run = made(name, jit=False, progress=True, **options).run(*BATCHES[name])
    run.save(path)
    return run
