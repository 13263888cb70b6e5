"""Arguments and results of a compiled program as arrays: of a run from ordinary code, results are packed into few.

Each array that comes back costs a call four microseconds, as much as all else that is done after it. So what says how
the lanes ended, and what was counted, comes back as one vector of each dtype; results come back as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir.machine import Program
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.protocol import Array, Backend, Spec
from pcbatch.runtime.machine.outcome import Finished, Outcome
from pcbatch.runtime.machine.segments import Legs, Snapshot

CAPACITY = "capacity"
ENDS = ("status", "site", "place", "steps")
"""The outputs that tell how each lane ended."""


class Returned:
    """The packing of a run's results; `lanes` is their number, if that is known and the arrays are packed."""

    def __init__(self, legs: Legs, lanes: int | None):
        self.legs, self.backend = legs, legs.backend
        self.specs = {} if lanes is None else self._packed_specs(lanes)
        every = (CAPACITY, *legs.loop.counter_specs, *legs.layout.outputs)
        self.others = [key for key in every if key not in self.specs]
        results = [key for name in legs.program.results for key in legs.layout.keys("result", name)]
        first = len(self.vectors) + self.others.index(results[0]) if results else 0
        self._results = slice(first, first + len(results))

    def _packed_specs(self, lanes: int) -> dict[str, Spec]:
        counters = {key: spec for key, spec in self.legs.loop.counter_specs.items() if len(spec[1]) < 2}
        examples = self.legs.example_specs(lanes)
        return {CAPACITY: ("int32", ()), **{key: examples[key] for key in ENDS}, **counters}

    @cached_property
    def vectors(self) -> dict[str, list[str]]:
        """The keys of the packed arrays, by dtype."""
        found: dict[str, list[str]] = {}
        for key, (dtype, _) in self.specs.items():
            found.setdefault(dtype, []).append(key)
        return found

    @cached_property
    def _places(self) -> dict[str, tuple[int, Any]]:
        """The places of packed arrays, by key: the number of the vector, and the place in it."""
        found: dict[str, tuple[int, Any]] = {}
        for number, keys in enumerate(self.vectors.values()):
            at = 0
            for key in keys:
                shape = self.specs[key][1]
                found[key] = (number, slice(at, at + shape[0]) if shape else at)  # type: ignore[operator]
                at += shape[0] if shape else 1  # type: ignore[operator]
        return found

    def pack(self, last: Snapshot) -> list[Array]:
        """The arrays to come back of a run that has ended."""
        capacity: Any = self.legs.capacity(last)
        arrays = {CAPACITY: capacity, **last.counters, **last.outputs}
        if self.specs and isinstance(capacity, int):
            arrays[CAPACITY] = self.backend.constant(capacity)
        packed = [_joined(self.backend, self.specs, keys, arrays) for keys in self.vectors.values()]
        return [*packed, *(arrays[key] for key in self.others)]

    def unpack(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """The capacity, the counters and the outputs, by key; those that were packed as NumPy's."""
        vectors = [np.asarray(array) for array in arrays[: len(self.vectors)]]
        found = {key: vectors[number][place] for key, (number, place) in self._places.items()}
        return {**found, **dict(zip(self.others, arrays[len(vectors) :], strict=True))}

    def outcome(self, arrays: Sequence[Array], examples: Any = None) -> Outcome:
        """Unpack the outcome of the run; see `Legs.outcome`."""
        found = self.unpack(arrays)
        outputs = {key: found[key] for key in self.legs.layout.outputs}
        return self.legs.outcome(found, outputs, found[CAPACITY], examples)

    def finished(self, arrays: Sequence[Array], examples: int | None = None) -> Finished:
        """The same, of packed arrays, where it may be enough to know that no lane has failed."""
        number, place = self._places["status"]
        failed = np.count_nonzero(np.asarray(arrays[number])[place])
        outcome = partial(self.outcome, arrays, examples)
        if failed:
            return Finished(None, outcome)
        results = arrays[self._results]
        return Finished(
            results if examples is None else [self.backend.rows_at(r, 0, examples) for r in results], outcome
        )


def _joined(backend: Backend, specs: Mapping[str, Spec], keys: Sequence[str], arrays: Mapping[str, Array]) -> Array:
    """The arrays of some keys, scalars and vectors, one after another."""
    return backend.joined(*(arrays[key] if specs[key][1] else backend.stack([arrays[key]]) for key in keys))


def argument_arrays(program: Program, backend: Backend, given: Sequence[Any], lanes: Any) -> list[Array]:
    """The `[lanes, ...]` leaves of all parameters; UsageError PCB531 for shapes that do not fit."""
    return _arrays("argument", program, backend, program.parameters, program.types, given, lanes)


def operand_arrays(program: Program, backend: Backend, given: Sequence[Any]) -> list[Array]:
    """The leaves of all shared operands; UsageError PCB531 for shapes that do not fit."""
    return _arrays("shared operand", program, backend, program.shared, program.shared_types, given, None)


def _arrays(
    what: str,
    program: Program,
    backend: Backend,
    names: Sequence[str],
    types: Mapping[str, Any],
    given: Sequence[Any],
    lanes: Any,
) -> list[Array]:
    wanted = [(name, type_) for name in names for type_ in leaves(types[name])]
    if len(wanted) != len(given):
        raise UsageError("PCB531", f"{program.name} takes {len(wanted)} {what}s, not {len(given)}")
    found = []
    for (name, type_), leaf in zip(wanted, given, strict=True):
        array = backend.array(leaf, type_.dtype)
        expected = type_.shape if lanes is None else (lanes if isinstance(lanes, int) else None, *type_.shape)
        shape = tuple(array.shape)
        if len(shape) != len(expected) or any(
            got is not None and wanted is not None and got != wanted
            for got, wanted in zip(shape, expected, strict=True)
        ):
            raise UsageError("PCB531", f"{what} {name!r} of {program.name} has shape {shape}, not {expected}")
        found.append(array)
    return found
