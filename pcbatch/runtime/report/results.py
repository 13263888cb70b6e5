"""The results of a run as its caller gets them: in the structure of the user's, as arrays of the library or of NumPy.

The option `output` says which. NumPy's arrays are made where numbers exist, and where no gradient is lost by it.

In a pickle a run is its values, the status of each lane, errors and counts. The program stays in its process.
What is left of the program is what a report names: its blocks without their code, and the structure of results.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir import machine, values
from pcbatch.ir.machine import Block, Jump, Program
from pcbatch.ir.types import StructType, TensorType, Type, records
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.outcome import Counts, Outcome

RESULT = "__result__"
"""The method of a record's class that returns a caller's form of it."""
Packer = Callable[[Sequence[Any]], Any]
"""A function from the leaves of a program's results to a caller's values."""


def packed(program: Program, leaves: Sequence[Any]) -> Any:
    """The leaves of a program's results in the user's structure."""
    if program.structure is not None:
        return _finished(program.structure, values.pack(program.structure, leaves))
    remaining, types = iter(leaves), [program.types[name] for name in program.results]
    results = [values.pack(type_, [next(remaining) for _ in leaf_types(type_)]) for type_ in types]
    return results[0] if len(results) == 1 else tuple(results)


def _finished(type_: Type, value: Any) -> Any:
    """Return a result with callers' forms of records that stand for something else: padded rows; see `Ragged`."""
    if not any(hasattr(each, RESULT) for each in records(type_)):
        return value
    assert isinstance(type_, StructType)
    made = getattr(type_.constructor, RESULT, None)
    if made is not None:
        return made(value)
    parts = values.parts(type_, value)
    return values.joined(type_, [_finished(*pair) for pair in zip(type_.items, parts, strict=True)])


def packer(program: Program, made: Callable[[Any], Any] | None = None) -> Packer:
    """Return the packer for many calls: every leaf as it is, or `made` of it."""
    if program.structure is not None or not all(
        isinstance(program.types[name], TensorType) for name in program.results
    ):
        return lambda leaves: packed(program, leaves if made is None else [*map(made, leaves)])
    if len(program.results) == 1:
        return operator.itemgetter(0) if made is None else lambda leaves: made(leaves[0])
    return tuple if made is None else lambda leaves: tuple(map(made, leaves))


def packers(program: Program, backend: Backend, *, is_numpys: bool, is_watched: bool) -> dict[str, Packer]:
    """The packers of many calls by `output`; leaves are NumPy's arrays then, or may be watched by a tape."""
    if is_watched:
        return {"tensors": packer(program), "numpy": lambda leaves: delivered(program, backend, leaves, "numpy")}
    if is_numpys:
        return {"tensors": packer(program, backend.adopted), "numpy": packer(program)}
    return {"tensors": packer(program), "numpy": packer(program, backend.numpy_of)}


def delivered(program: Program, backend: Backend, leaves: Sequence[Array], output: str) -> Any:
    """The leaves of a run in the user's structure, as arrays of the library or, for the output "numpy", of NumPy.

    UsageError PCB538 where a gradient tape watches them: it would lose sight of NumPy's.
    """
    return packed(program, as_numpy(program.name, backend, leaves) if output == "numpy" else leaves)


def as_numpy(name: str, backend: Backend, leaves: Sequence[Array]) -> list[np.ndarray]:
    """The leaves of a run of the program of this `name` in memory of their own; UsageError PCB538, see `delivered`."""
    if backend.is_watched(leaves):
        raise UsageError(
            "PCB538",
            f"a gradient tape watches the results of {name}, and would lose sight of them as NumPy's arrays; under the "
            f"tape call {name}.options(output='tensors'), or call {name} outside of it",
        )
    return [backend.numpy_of(leaf) for leaf in leaves]


def require_numbers(name: str, backend: Backend, output: str) -> None:
    """Refuse NumPy's arrays inside a graph, where there are no numbers yet: UsageError PCB538."""
    if output == "numpy" and not backend.runs_now():
        raise UsageError(
            "PCB538",
            f"{name} has output='numpy', and inside a {backend.spelling('function')} there are no numbers yet that "
            f"NumPy's arrays could hold; there call {name}.options(output='tensors')",
        )


# -- pickles -----------------------------------------------------------------------------------------------------------


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
