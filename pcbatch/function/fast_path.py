"""A warm call: all that is the same for calls of equal options and types of arguments, found out once and bound.

What the program has read of the world may change from one call to the next, so each call looks at all of it anew: at
the functions that names denote, at captured arrays and values, at what the user's helpers have read. Where that differs
the call takes the long way (`Session.run_at_once`), which knows what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pcbatch.function.arguments import Arguments
from pcbatch.function.pipeline import Pipeline
from pcbatch.ir.machine import Program
from pcbatch.ir.types import leaves
from pcbatch.lowering.captures.captured import Captured
from pcbatch.lowering.captures.guards import CaptureGuards
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.outcome import CheckedRun, Finished, Outcome
from pcbatch.runtime.machine.outcome import Run as ReadyRun
from pcbatch.runtime.report.results import Packer, packers

Taken = tuple[int, Callable[[Any], Any] | None]
"""The source of an array of a program: a leaf's place among arguments and captured values, and its conversion."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A warm call of a `pipeline`, of which all that it has read is seen by a `look`."""

    pipeline: Pipeline
    look: CaptureGuards
    taken: tuple[Taken, ...] | None
    """The sources of the program's arrays; None where the leaves are the arrays, in the same order."""
    lanes: int
    ready: ReadyRun | None
    """The run that is ready; None where a tape watches, which may ask for gradients."""
    packers: Mapping[str, Packer]
    """The values that callers get of the leaves of results, by the option `output`."""
    checked: Callable[[tuple[Any, ...]], Finished | None] | None
    """A run on the arguments as they come, which looks at them itself: where they are NumPy's arrays, and all that the
    program takes. No tape watches these, and results have no home but the backend's. See `CheckedRun`."""

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        arguments: Arguments,
        captured: Captured,
        given: Sequence[Any],
        look: CaptureGuards,
        before: Plan | None,
    ) -> Plan | None:
        """The plan of calls like one that has just been made; None where each call has to look at its arguments.

        `given` are the leaves of the arguments as they came. The plan `before` was for arguments of the same specs.
        """
        backend, lanes = pipeline.environment.backend, arguments.lanes
        is_watched = not backend.runs_now(unwatched=True)
        is_numpys = not is_watched and lanes > 0 and pipeline.machine.is_numpys
        taken = _Binding(pipeline, arguments, captured, given, is_numpys).taken()
        if taken is None or (is_watched and not (pipeline.may_be_taped and lanes)):
            return None
        every = [*given, *(leaf for each in captured.leaves.values() for leaf in each)]
        is_plain = [place for place, _ in taken] == list(range(len(every))) and not any(make for _, make in taken)
        how = None if is_plain else taken
        if before is not None and before.pipeline is pipeline:
            return replace(before, look=look, taken=how)
        ready = None if is_watched else pipeline.machine.ready([_made(every, each) for each in taken], lanes)
        known = packers(pipeline.outline, backend, is_numpys=is_numpys, is_watched=is_watched)
        is_alone = is_plain and not captured.leaves and all(type(each) is np.ndarray for each in given)
        checked = ready.checked if is_alone and isinstance(ready, CheckedRun) else None
        return cls(pipeline, look, how, lanes, ready, known, checked)

    @property
    def table(self) -> Program:
        """The program."""
        return self.pipeline.outline

    def outcome(self, finished: Finished) -> Outcome:
        """The outcome of a run of this plan, for those who ask for more than its results."""
        return self.pipeline.noted(finished.outcome())

    def run_checked(self, args: tuple[Any, ...]) -> Finished | None:
        """Run with arguments of whatever kind; return None where it takes a closer look at them, or at the program."""
        return None if self.checked is None or self.look.leaves() is None else self.checked(args)

    def run(self, given: Sequence[Any]) -> Finished | None:
        """Run with these leaves of arguments; return None where the program may be another one by now."""
        captured = self.look.leaves()
        if captured is None:
            return None
        every = [*given, *captured]
        arrays = every if self.taken is None else [_made(every, each) for each in self.taken]
        if self.ready is not None:
            return self.ready(arrays)
        return self.pipeline.run_watched(arrays, self.lanes)


def _made(every: Sequence[Any], taken: Taken) -> Any:
    place, make = taken
    return every[place] if make is None else make(every[place])


class _Binding:
    """The binding of one call's leaves to its program's arrays."""

    def __init__(
        self, pipeline: Pipeline, arguments: Arguments, captured: Captured, given: Sequence[Any], is_numpys: bool
    ):
        self.is_numpys = is_numpys
        self.backend: Backend = pipeline.environment.backend
        self.program, self.users = pipeline.outline, pipeline.parameters()
        self.arguments, self.given = arguments, given
        self.places: dict[str, list[int]] = {}
        self.captured: dict[str, list[int]] = {}
        count = 0
        for found, every in ((self.places, arguments.leaves), (self.captured, captured.leaves)):
            for name, each in every.items():
                found[name] = list(range(count, count + len(each)))
                count += len(each)
        self.count = len([leaf for each in arguments.leaves.values() for leaf in each])
        self.every = [*given, *(leaf for each in captured.leaves.values() for leaf in each)]

    def taken(self) -> tuple[Taken, ...] | None:
        """Return the source of each array; None where some leaf is not bound directly."""
        if self.count != len(self.given) or not all(map(self._is_taken, self._pairs())):
            return None
        parameters = [each for name in self.program.parameters for each in self._of_parameter(name)]
        return (*parameters, *(each for name in self.program.shared for each in self._of_operand(name)))

    def _pairs(self) -> list[tuple[Any, Any]]:
        bound = [leaf for each in self.arguments.leaves.values() for leaf in each]
        return list(zip(self.given, bound, strict=True))

    def _is_taken(self, pair: tuple[Any, Any]) -> bool:
        """Return whether a leaf is bound as it is, or as the array that is made of it and of nothing else."""
        given, bound = pair
        if given is bound:
            return True
        return isinstance(given, (np.ndarray, np.generic)) and tuple(bound.shape) == given.shape

    def _of_parameter(self, name: str) -> list[Taken]:
        user, types = self.users[name], self.program.types
        wanted, lanes = list(leaves(types[name])), self.arguments.lanes
        if user in self.arguments.shared:
            return [
                (place, partial(self._spread, type_=type_, lanes=lanes))
                for place, type_ in zip(self.places[user], wanted, strict=True)
            ]
        found: list[Taken] = []
        given = leaves(self.arguments.types[user])
        for place, type_, own in zip(self.places[user], wanted, given, strict=True):
            is_array = self.backend.spec_of(self.every[place]) is not None
            if type_.dtype != own.dtype:
                found.append((place, partial(self._cast, own=own.dtype, dtype=type_.dtype)))
            else:
                found.append((place, None if is_array else self._array_of(self.every[place], type_.dtype)))
        return found

    def _array_of(self, value: Any, dtype: str) -> Callable[[Any], Any] | None:
        if self.is_numpys and isinstance(value, np.ndarray):
            is_as_wanted = type(value) is np.ndarray and value.dtype.name == dtype and value.dtype.isnative
            return None if is_as_wanted else partial(np.asarray, dtype=dtype)
        return partial(self.backend.array, dtype=dtype)

    def _cast(self, value: Any, own: str, dtype: str) -> Any:
        return self.backend.cast(self.backend.array(value, own), dtype)

    def _spread(self, value: Any, type_: Any, lanes: int) -> Any:
        return self.backend.spread(value, type_, lanes)

    def _of_operand(self, name: str) -> list[Taken]:
        places = self.places[self.users[name]] if name in self.users else self.captured[name]
        wanted = leaves(self.program.shared_types[name])
        return [(place, self._kept(place, type_.dtype)) for place, type_ in zip(places, wanted, strict=True)]

    def _kept(self, place: int, dtype: str) -> Callable[[Any], Any] | None:
        value = self.every[place]
        if self.backend.spec_of(value) is not None:
            return None
        if type(value) is np.ndarray and value.nbytes <= CPU.compared:
            return CachedConversion(partial(self.backend.array, dtype=dtype))
        if isinstance(value, (bool, int, float, np.generic)):
            return CachedArrays(partial(self.backend.array, dtype=dtype))
        return partial(self.backend.array, dtype=dtype)


class CachedConversion:
    """The array that is made of a NumPy array, until that has other elements: to compare these takes less time."""

    def __init__(self, make: Callable[[Any], Any]):
        self._make = make
        self._last: tuple[bytes | None, Any] = (None, None)

    def __call__(self, array: np.ndarray) -> Any:
        """The array of these elements."""
        elements, (known, made) = array.tobytes(), self._last
        if elements != known:  # of the copy, whoever writes to `array` now
            made = self._make(np.frombuffer(elements, array.dtype).reshape(array.shape))
            self._last = (elements, made)
        return made


class CachedArrays:
    """The array that is made of a number, until that is another object."""

    def __init__(self, make: Callable[[Any], Any]):
        self._make = make
        self._last: tuple[Any, Any] = (self, None)

    def __call__(self, number: Any) -> Any:
        """The array of this number."""
        known, made = self._last
        if number is not known:
            made = self._make(number)
            self._last = (number, made)
        return made
