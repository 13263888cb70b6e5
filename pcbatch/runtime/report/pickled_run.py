"""A run in a pickle: values, the status of each lane, errors and counts. The program stays in its process.

What is left of the program is what a report names: its blocks without their code, and the structure of results.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir import machine
from pcbatch.ir.machine import Block, Jump, Program
from pcbatch.ir.types import records
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.outcome import Counts, Outcome

KEPT = ("values", "status", "site", "place", "steps", "stack_entries", "can_fail", "native_lanes", "notes")
"""Return the kept fields of an outcome; arrays become NumPy's, but the values keep their type."""


@dataclass(frozen=True)
class StayedBehind:
    """The methods of a run that need its program, for a run without one: they raise PCB576."""

    name: str
    interrupted: bool = False
    """True if Ctrl-C ended the run."""
    origin: str = "a pickle"
    """The origin of the run."""
    has: str = "values, statuses, errors and counts"
    """The parts of the run that came with it."""
    help: str = "ask for it in the process that made the run, before it is pickled"

    def save(self, path: Any) -> None:
        """Raises UsageError PCB576."""
        raise self.refused("save(..)")

    def __call__(self) -> Counts:
        raise self.refused("what its blocks did, which was not counted before it was pickled,")

    def refused(self, what: str) -> UsageError:
        """Return the error for a request of `what`."""
        return UsageError(
            "PCB576",
            f"this run of {self.name} comes out of {self.origin}, which has {self.has}: {what} "
            f"needs the program; {self.help}",
        )


@dataclass(frozen=True)
class _Known:
    counts: Counts

    def __call__(self) -> Counts:
        return self.counts


def outcome_of(program: Program, outcome: Outcome, counts: bool) -> dict[str, Any]:
    """The fields of an outcome for a pickle. With `counts` missing counts are made, which may take another run."""
    behind = StayedBehind(program.name, outcome.checkpoint is not None and outcome.checkpoint.interrupted)
    found = {name: getattr(outcome, name) for name in KEPT}
    for name in ("status", "site", "place", "steps"):
        found[name] = np.asarray(found[name])
    counting: Callable[[], Counts] = behind
    if isinstance(outcome.counting, StayedBehind):
        behind = counting = outcome.counting
    elif counts or "counts" in vars(outcome):
        now = outcome.counts
        counting = _Known(Counts(*(np.asarray(each) for each in (now.executions, now.active, now.rows, now.trips))))
    found["stack_entries"] = int(np.asarray(found["stack_entries"]))
    return {**found, "counting": counting, "checkpoint": behind}


def outcome(kept: Mapping[str, Any]) -> Outcome:
    """The outcome with these fields."""
    return Outcome(**kept, fault_values={}, backend=NUMPYS)


class _NumPys:
    """The array library of a run that was made elsewhere: all that a `Run` asks of it. Its arrays are NumPy's."""

    def is_concrete(self, array: Any) -> bool:
        return True

    def is_watched(self, arrays: Sequence[Any]) -> bool:
        return False

    def numpy_of(self, array: Any) -> np.ndarray:
        return np.array(array)


NUMPYS = cast(Backend, _NumPys())


def program_of(program: Program) -> Program:
    """The part of a program that a pickle has: blocks without code, and the types of results."""
    blocks = (
        Block(
            block.label,
            (),
            Jump(0),
            cost=0.0,
            function=block.function,
            span=block.span or next(iter(machine.spans(program, block)), None),
        )
        for block in program.blocks
    )
    return Program(
        program.name,
        (),
        program.results,
        {name: program.types[name] for name in program.results},
        {},
        tuple(blocks),
        native=program.native,
        structure=program.structure,
    )


def has_names(program: Program) -> bool:
    """Return whether the classes of a program's results are found by their names, as pickle demands."""
    structure = () if program.structure is None else (program.structure,)
    types = (*(program.types[name] for name in program.results), *structure)
    classes = (record for type_ in types for record in records(type_))
    return all(_found(each) is each for each in classes)


def _found(class_: type) -> Any:
    found: Any = sys.modules.get(class_.__module__)
    for name in class_.__qualname__.split("."):
        found = getattr(found, name, None)
    return found
