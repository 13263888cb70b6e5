"""The bar that a long run shows: lanes that have ended, trips, utilisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.notice import silent
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report.run import Run

Watch = Callable[[Outcome], None]
"""A callback for the standing of the run after each slice."""


@contextmanager
def bar(program: Program, examples: int) -> Iterator[Watch]:
    """A bar of tqdm's, in a notebook or a terminal; tqdm's own environment variables (TQDM_DISABLE, ..) hold."""
    from tqdm.auto import tqdm  # only now: it looks for a notebook

    with silent(), tqdm(total=examples, desc=program.name, unit="lane") as shown:

        def watch(outcome: Outcome) -> None:
            run = Run.of(program, outcome)
            ended = int(np.count_nonzero(run.status != LaneStatus.UNFINISHED))
            text = f"{run.trips} trips, {run.utilization.overall:.0%} of rows of use"
            shown.set_postfix_str(text, refresh=False)
            shown.update(ended - shown.n)

        yield watch
