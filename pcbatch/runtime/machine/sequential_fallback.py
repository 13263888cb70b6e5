"""The completion of a run whose calls were forked: the examples left over, and slices of examples in turn."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pcbatch.ir.status import LaneStatus
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Counts, Outcome


def left_over(outcome: Outcome) -> np.ndarray:
    """Return the examples whose outcome is not known: int32 `[n]`."""
    return np.flatnonzero(np.asarray(outcome.status) == int(LaneStatus.UNFINISHED)).astype(np.int32)


def completed(outcome: Outcome, left: np.ndarray, machine: Machine, arrays: Sequence[Array]) -> Outcome:
    """Complete the outcome of a run on `arrays`: `machine` runs the examples that are `left`."""
    if not left.size:
        return outcome
    backend, count = machine.backend, len(machine.legs.layout.inputs)
    places = backend.array(left, "int32")
    some = [backend.take(array, places) for array in arrays[:count]]
    return completed_by(outcome, left, machine.run(some, arrays[count:], int(left.size)))


def completed_by(outcome: Outcome, left: np.ndarray, again: Outcome) -> Outcome:
    """Complete the outcome of a run by that of a second run of the examples that were `left`."""
    backend = outcome.backend
    places = backend.array(left, "int32")
    every = places >= 0

    def put(before: Array, after: Array) -> Array:
        return backend.masked_store(before, [], every, after, places)

    def numbers(name: str) -> np.ndarray:
        found = np.array(getattr(outcome, name))
        found[left] = np.asarray(getattr(again, name))
        return found

    shown = {
        name: [put(*each) for each in zip(leaves, again.fault_values[name], strict=True)]
        for name, leaves in outcome.fault_values.items()
    }
    return replace(
        outcome,
        values=tuple(put(*each) for each in zip(outcome.values, again.values, strict=True)),
        fault_values=shown,
        counting=lambda: _sum(outcome.counts, again.counts),
        status=numbers("status"),
        site=numbers("site"),
        place=numbers("place"),
        steps=numbers("steps"),
    )


def one_after_another(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of several runs, each of some examples, as that of one."""
    first, backend = outcomes[0], outcomes[0].backend
    if len(outcomes) == 1:
        return first

    def numbers(name: str) -> np.ndarray:
        return np.concatenate([np.asarray(getattr(each, name)) for each in outcomes])

    def arrays(given: Iterable[Sequence[Array]]) -> list[Array]:
        return [backend.joined(*leaves) for leaves in zip(*given, strict=True)]

    return replace(
        first,
        values=tuple(arrays(each.values for each in outcomes)),
        fault_values={name: arrays(each.fault_values[name] for each in outcomes) for name in first.fault_values},
        counting=lambda: functools.reduce(_sum, (each.counts for each in outcomes)),
        status=numbers("status"),
        site=numbers("site"),
        place=numbers("place"),
        steps=numbers("steps"),
    )


def padded(counts: Counts, blocks: int) -> Counts:
    """The counts of a run in sequence as those of a program with more blocks, which it does not come to."""

    def more(array: Array) -> np.ndarray:
        found = np.asarray(array)
        return np.concatenate([found, np.zeros(blocks - found.size, found.dtype)])

    return Counts(more(counts.executions), more(counts.active), more(counts.rows), counts.trips)


def _sum(one: Counts, other: Counts) -> Counts:
    names = ("executions", "active", "rows", "trips")
    found = []
    for name in names:
        total, more = np.array(getattr(one, name)), np.asarray(getattr(other, name))
        if more.shape:
            total[: more.size] += more  # join blocks, which come last, are the forked program's alone
        else:
            total += more
        found.append(total)
    return Counts(*found)
