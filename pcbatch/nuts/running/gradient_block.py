"""The block of a program that computes gradients: its rows are a run's cost, counted and estimated."""

from __future__ import annotations

import numpy as np

from pcbatch.ir.analysis import source_locations
from pcbatch.ir.machine import Program
from pcbatch.nuts.kernel.dynamics import leapfrog, value_and_gradient
from pcbatch.runtime.report.run import Run

CALLS = tuple(f"{function.__name__}(" for function in (leapfrog, value_and_gradient))
"""Text in the sampler's lines that compute gradients, and in no others."""


def gradient_blocks(program: Program) -> tuple[int, ...]:
    """The numbers of the blocks with such a line: one, or more if the compiler has made copies of it.

    LookupError where there is none, rather than the figures of some other block.
    """
    found = tuple(
        number
        for number, block in enumerate(program.blocks)
        if any(call in span.text for span in source_locations.spans(program, block) for call in CALLS)
    )
    if not found:
        raise LookupError(f"no block of {program.name} computes a gradient")
    return found


def gradient_rows(run: Run) -> tuple[int, int]:
    """The number of rows of gradients that a run of `chain` needed, and the number that it computed."""
    return GradientRows().of(run)


class GradientRows:
    """The same, for one run after another: in the text of their program the blocks are looked for once."""

    def __init__(self) -> None:
        self._last: tuple[Program | None, list[int]] = (None, [])

    def of(self, run: Run) -> tuple[int, int]:
        """The rows of one run."""
        program, blocks = self._last
        if run.program is not program:
            blocks = [*gradient_blocks(run.program)]
            self._last = (run.program, blocks)
        active, computed = (np.asarray(counts) for counts in (run.outcome.active, run.outcome.rows))
        return int(active[blocks].sum()), int(computed[blocks].sum())
