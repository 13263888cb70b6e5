"""The borders of a run for gradients: they enter at its end, by results, and leave at its beginning, by parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.backward_sweep import Replay
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.state import NUMBER

# -- flow --------------------------------------------------------------------------------------------------------------


class GradientFlow:
    """The flow of one program's gradients."""

    def __init__(self, replay: Replay):
        self.replay, self.tapes, self.program = replay, replay.tapes, replay.program
        self.backend = replay.backend

    @cached_property
    def arguments(self) -> list[bool]:
        """True for each leaf of all arguments that has a gradient."""
        active = self.tapes.activity.variables
        return [
            leaf is not None and name in active for name in self.program.parameters for leaf in self.tapes.floats(name)
        ]

    @cached_property
    def shared(self) -> list[str]:
        """The keys of gradients by the leaves of all shared operands."""
        return [key for name in self.program.shared for key, _ in self.tapes.shared_keys(name)]

    @property
    def by_lane(self) -> int:
        """The number of leading arrays from the backward pass that are `[lanes, ...]`."""
        return sum(self.arguments) + len(self.replay.totals) * self.replay.by_lane

    def packed(self, arrays: Iterator[Array]) -> list[Array | None]:
        """Pack the backward pass's results, in its order, as gradients by the leaves of arguments and shared operands.

        None where none flows.
        """
        found = [next(arrays) if flows else None for flows in self.arguments]
        totals = {key: next(arrays) for key in self.replay.totals}
        for key, table in self.replay.lookups.tables.items():
            rows, numbers = next(arrays), next(arrays)
            totals[key] = self.backend.rows_of_table(rows, numbers, table)
        return [*found, *(totals.get(key) for key in self.shared)]

    def nothing(self) -> list[Array | None]:
        """The gradients of a batch of no lanes."""
        backend = self.backend
        types = [leaf for name in self.program.parameters for leaf in self.tapes.layout.leaves(name)]
        found = [backend.zeros(0, leaf) for leaf, each in zip(types, self.arguments, strict=True) if each]
        found += [self.replay.nothing(type_, 0) for type_ in self.replay.totals.values()]
        for table in self.replay.lookups.tables.values():
            rows, numbers = TensorType(table.dtype, table.shape[1:]), TensorType("int32")
            found += [backend.zeros(0, rows), backend.zeros(0, numbers)]
        return self.packed(iter(found))


# -- seeds -------------------------------------------------------------------------------------------------------------


def seeded(
    replay: Replay,
    seeds: Iterator[Array | None],
    pointers: Mapping[str, Array],
    sound: Array,
    width: Any,
    entries: Any,
    count: Array,
) -> dict[str, Array]:
    """The gradients of lanes at the end of a run: those by the results that `sound` lanes have given, by key.

    Example i is in lane i, of `width` lanes; None: of one for each example. `seeds` are of the leaves of the results;
    `pointers` say where those lie that lie in stacks alone, which have so many `entries`. There are `count` examples,
    idle ones left out.
    """
    tapes, backend, layout = replay.tapes, replay.backend, replay.tapes.layout
    examples, first = backend.lanes_of(sound), backend.constant(0)
    lanes = examples if width is None else width
    found = {
        key: backend.zeros(examples if key in layout.inputs else lanes, type_, entries if stacked else None)
        for key, (type_, stacked) in replay.gradients.items()
    }
    found = dict(zip(found, backend.made_apart([*found.values()], count), strict=True))
    numbers = None if width is None else backend.lane_numbers(examples)
    for name in replay.program.results:
        for place, leaf in enumerate(tapes.floats(name)):
            seed = next(seeds)
            if seed is None or leaf is None or name not in tapes.activity.variables:
                continue
            seed = backend.cast(seed, leaf.dtype)
            if layout.storage(name) == "stack":
                key = layout.stacks(name)[place]
                places = pointers[name] if numbers is None else backend.load(pointers[name], [], numbers)
                known = backend.load(found[key], [places], numbers)
                found[key] = backend.masked_store(found[key], [places], sound, known + seed, numbers)
                continue
            key = layout.tops(name)[place]
            known = found[key] if numbers is None else backend.rows_at(found[key], 0, examples)
            given = backend.where(sound, known + seed, known)
            found[key] = given if numbers is None else backend.with_rows(found[key], first, given)
    return found


def by_parameters(replay: Replay, gradients: Mapping[str, Array], examples: Any, width: Any) -> list[Array]:
    """The gradients by the leaves of the active parameters, of those of lanes at the beginning of a run."""
    tapes, layout, backend = replay.tapes, replay.tapes.layout, replay.backend
    found = []
    nothing = backend.zeros(examples if width is None else width, NUMBER.value)
    for name in replay.program.parameters:
        if name not in tapes.activity.variables:
            continue
        is_stack = layout.storage(name) == "stack"
        is_by_example = layout.storage(name) == "example"
        keys = layout.keys("input", name) if is_by_example else layout.tops(name)
        for key, leaf in zip(layout.stacks(name) if is_stack else keys, tapes.floats(name), strict=True):
            if leaf is None:
                continue
            gradient = backend.load(gradients[key], [nothing]) if is_stack else gradients[key]
            is_wide = not is_by_example and width is not None
            found.append(backend.rows_at(gradient, 0, examples) if is_wide else gradient)
    return found
