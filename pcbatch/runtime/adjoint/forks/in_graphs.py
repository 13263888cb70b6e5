"""Taped runs that fork, in a caller's graph: the completion of examples that forks have given up.

Nobody knows before the graph runs which these are. Where there are some, all examples run once more, in sequence, and
of that run only what becomes of these counts, and only they take part in its way back. It puts nothing aside for that:
the way back runs it again, where there are such examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.forks.vjp import ForkedWay
from pcbatch.runtime.adjoint.vjp import TapedRun
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.outcome import Counts, Outcome

InSequence = Callable[[Sequence[Array], Any], TapedRun]
UNKNOWN = 64
"""Number of examples for which tapes have room at once where their number is unknown."""
COUNTED = ("executions", "active", "rows", "trips")


@dataclass(frozen=True, kw_only=True)
class DescribedTaped(TapedRun):
    """A taped run in a caller's graph: `first`, whose calls were forked, on `arrays`; and which examples are `left`.

    It went `by` that way, whatever has been learned since.
    """

    by: ForkedWay
    first: TapedRun
    arrays: Sequence[Array]
    left: Array


class InGraphs:
    """Runs in a caller's graph of one program that forks, and the way back through them.

    `sequence` runs examples in sequence, taped. What is run again is a program of its own, so that no tape sees it.
    """

    def __init__(self, backend: Backend, sequence: InSequence):
        self.backend, self._sequence = backend, sequence

    def run(self, undoes: Any, way: ForkedWay, arrays: Sequence[Array], lanes: Any) -> TapedRun:
        """Run so many examples on such arrays, by `way`; `undoes` gives the gradients."""
        backend, known = self.backend, lanes if isinstance(lanes, int) else None
        first = way.run_taped(self._not_empty(way, arrays, lanes), lanes, known)
        ended = first.outcome if known is not None else _first(first.outcome, lanes)
        left = backend.equal(ended.status, LaneStatus.UNFINISHED)

        def program(*given: Array) -> list[Array]:
            count, left, *rest = given
            before, arrays = rest[: len(flat)], rest[len(flat) :]

            def again() -> list[Array]:
                taped = self._sequence(arrays, _number(lanes, count))
                return _completed(backend, _unpacked(ended, iter(before)), left, taped.outcome)

            return backend.cond(backend.any(left), again, before, seldom=True)

        flat = _packed(ended)
        found = self._apart(program, [backend.constant(0) + lanes, left, *flat, *arrays])
        fields = {**vars(first), "way": undoes, "outcome": _unpacked(ended, iter(found))}
        return DescribedTaped(**fields, by=way, first=first, arrays=arrays, left=left)

    def _not_empty(self, way: ForkedWay, arrays: Sequence[Array], lanes: Any) -> list[Array]:
        """`arrays`, of arguments and shared operands, with room for an example where there may be none."""
        count = len(way.layout.inputs)
        types = [leaf for name in way.program.parameters for leaf in way.layout.leaves(name)]
        return [*self._with_one(arrays[:count], types, lanes), *arrays[count:]]

    def _with_one(self, arrays: Sequence[Array], types: Sequence[TensorType], lanes: Any) -> list[Array]:
        """Arrays of so many examples, with zeros for one where it turns out that there are none."""
        if isinstance(lanes, int):
            return [*arrays]
        one = self.backend.cast(self.backend.equal(lanes, 0), "int32")
        pairs = zip(arrays, types, strict=True)
        return [self.backend.joined(array, self.backend.zeros(one, type_)) for array, type_ in pairs]

    def gradients(
        self,
        taped: DescribedTaped,
        shared: Sequence[Array],
        upstream: Sequence[Array | None],
        lanes: Any,
    ) -> list[Array | None]:
        """See `Way.gradients`."""
        backend, first, way = self.backend, taped.first, taped.by
        found = self._of_first(way, first, shared, upstream, lanes)
        parts = [None if each is None else backend.parts_of_gradient(each) for each in found]
        flat = [part for each in parts if each is not None for part in each]
        flows = [each is not None for each in upstream]
        of_arguments = len(found) - len(shared)
        by_lane = [place < of_arguments or way.by_lane for place, _ in enumerate(found)]

        def gathered(arrays: Iterator[Array]) -> list[Array | None]:
            return [
                None if each is None else backend.gradient_of_parts([next(arrays) for _ in each], whole)
                for each, whole in zip(parts, found, strict=True)
            ]

        def program(*given: Array) -> list[Array]:
            count, left, *rest = given
            remaining = iter(rest)
            before = [next(remaining) for _ in flat]
            arrays = [next(remaining) for _ in taped.arrays]
            seeds = [next(remaining) if each else None for each in flows]

            def again() -> list[Array]:
                number = _number(lanes, count)
                once_more = self._sequence(arrays, number)
                status = once_more.outcome.status
                status = backend.where(left, status, status * 0 + LaneStatus.UNFINISHED)
                once_more = replace(once_more, outcome=replace(once_more.outcome, status=status))
                operands = arrays[len(arrays) - len(shared) :]
                more = once_more.way.gradients(once_more, operands, seeds, number)
                total = []
                for one, other, lies_by_lane in zip(gathered(iter(before)), more, by_lane, strict=True):
                    if one is None:
                        continue
                    if other is not None:
                        one = backend.where(left, other, one) if lies_by_lane else backend.sum_of_gradients(one, other)
                    total += backend.parts_of_gradient(one)
                return total

            return backend.cond(backend.any(left), again, before, seldom=True)

        seeds = [each for each in upstream if each is not None]
        given = [backend.constant(0) + lanes, taped.left, *flat, *taped.arrays, *seeds]
        return gathered(iter(self._apart(program, given)))

    def _of_first(
        self, way: ForkedWay, first: TapedRun, shared: Sequence[Array], upstream: Sequence[Array | None], lanes: Any
    ) -> list[Array | None]:
        """The gradients through the first run, of so many examples that have ended there."""
        types = [leaf for name in way.program.results for leaf in way.layout.leaves(name)]
        there = [(place, each) for place, each in enumerate(upstream) if each is not None]
        seeds = dict.fromkeys(range(len(upstream)))
        some = self._with_one([each for _, each in there], [types[place] for place, _ in there], lanes)
        seeds |= dict(zip((place for place, _ in there), some, strict=True))
        found = way.gradients(first, shared, [*seeds.values()], lanes)
        if isinstance(lanes, int):
            return found
        count = len(found) - len(shared)
        return [
            each if each is None or not (place < count or way.by_lane) else self.backend.first(each, lanes)
            for place, each in enumerate(found)
        ]

    def _apart(self, program: Callable[..., list[Array]], arrays: Sequence[Array]) -> list[Array]:
        """Run a program in a graph of its own."""
        return list(self.backend.unseen(self.backend.compile(program, False))(*arrays))


def _number(lanes: Any, count: Array) -> Any:
    """Return the number of examples: an int if it is known, else the program's input."""
    return lanes if isinstance(lanes, int) else count


def _first(outcome: Outcome, lanes: Array) -> Outcome:
    """The same of so many examples; arrays have room for more."""
    cut = outcome.backend.first
    ends = {name: cut(getattr(outcome, name), lanes) for name in ("status", "site", "place", "steps")}
    shown = {name: [cut(leaf, lanes) for leaf in leaves] for name, leaves in outcome.fault_values.items()}
    return replace(outcome, values=tuple(cut(each, lanes) for each in outcome.values), fault_values=shown, **ends)


def _packed(outcome: Outcome) -> list[Array]:
    """The arrays of an outcome that another run has a part in."""
    shown = [leaf for leaves in outcome.fault_values.values() for leaf in leaves]
    ends = [outcome.status, outcome.site, outcome.place, outcome.steps]
    return [*outcome.values, *shown, *ends, *(getattr(outcome.counts, name) for name in COUNTED)]


def _unpacked(outcome: Outcome, arrays: Iterator[Array]) -> Outcome:
    """An outcome with such arrays in place of its own."""
    values = tuple(next(arrays) for _ in outcome.values)
    shown = {name: [next(arrays) for _ in leaves] for name, leaves in outcome.fault_values.items()}
    status, site, place, steps = (next(arrays) for _ in range(4))
    counts = Counts(*(next(arrays) for _ in COUNTED))
    ends: dict[str, Any] = {"status": status, "site": site, "place": place, "steps": steps}
    return replace(outcome, values=values, fault_values=shown, **ends, counting=lambda: counts)


def _completed(backend: Backend, outcome: Outcome, left: Array, again: Outcome) -> list[Array]:
    """Pack an outcome, completed by a second run for the examples that were `left`."""
    *by_example, executions, active, rows, trips = _packed(outcome)
    *others, _, _, _, _ = _packed(again)
    found = [backend.where(left, new, old) for new, old in zip(others, by_example, strict=True)]
    first = backend.constant(0)
    for name, total in zip(COUNTED, (executions, active, rows), strict=False):
        more = getattr(again.counts, name)  # of fewer blocks: join blocks come last
        found.append(backend.with_rows(total, first, backend.first(total, backend.lanes_of(more)) + more))
    return [*found, trips + again.counts.trips]
