"""Programs in lockstep whose arms are computed under predicates wherever that can be, whatever they cost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from unittest import mock

from pcbatch.ir.machine import Program
from pcbatch.optimize.machine.predication import Predication


@contextlib.contextmanager
def forced() -> Iterator[None]:
    """What is compiled inside for lockstep has all arms under predicates that can be."""
    converted = Predication.converted

    def always(self: Predication, program: Program, costs: Sequence[float]) -> Program:
        return converted(replace(self, always=True), program, costs)

    with mock.patch.object(Predication, "converted", always):
        yield
