"""Runs that become part of a caller's graph: a handler runs their lanes, as native code does in ordinary code.

The graph may be saved, or be sent to another process, where there is no such handler: there it runs the machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pcbatch.ir.machine import LaneStatus
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.llvm.handler import Handler
from pcbatch.runtime.llvm.interface import Interface
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Counts, Outcome
from pcbatch.runtime.machine.segments import blanked
from pcbatch.threads import once

Version = tuple[int, int]


class Traced:
    """A run as compiled programs are: `ready` on arrays, then made."""

    def __init__(self, run: Callable[..., Sequence[Array]]):
        self._run = run

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        return self._run(*arrays)

    def ready(self, arrays: Sequence[Array]) -> Callable[[], Sequence[Array]]:
        """The run on these arrays, not made yet."""
        return partial(self._run, *arrays)


class InGraphs:
    """The runs of a machine's program in callers' graphs; `make` gives the handler for a version of its interface."""

    def __init__(self, machine: Machine, interface: Interface, make: Callable[[Version], Handler]):
        self._machine, self._interface, self._make = machine, interface, make
        self._program, self._backend = machine.program, machine.backend
        self._programs: dict[int | None, Callable[..., Sequence[Array]]] = {}
        self._lock = threading.Lock()

    @once
    def _handler(self) -> Handler:
        version = self._backend.handlers.version()
        assert version is not None, "it has been asked for by now"
        made = self._make(version)
        self._backend.handlers.register(made.name, made.address)
        return made

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome | None:
        """Run `lanes` lanes, not 0 if that is known; None where no handler can do it. See `Machine.run`."""
        backend, is_known = self._backend, isinstance(lanes, int)
        if backend.inside("vectorised function") or not (is_known or self._interface.given) or not self._is_possible():
            return None
        count, known = len(self._interface.given), lanes if is_known else None

        def run(*arrays: Array) -> list[Array]:
            def otherwise() -> list[Array]:
                return [*self._parts(self._machine.run(arrays[:count], arrays[count:], lanes))]

            native = self._inside(known) if backend.inside("fixed program") else self._compiled(known)
            return self._here(lambda: list(native(*arrays)), otherwise)

        arrays = self._machine.arrays_given(arguments, shared, lanes)
        return self._outcome(backend.forbid_gradients(Traced(run), self._program.name)(*arrays))

    def _is_possible(self) -> bool:
        return self._backend.handlers.version() is not None

    def _inside(self, lanes: int | None) -> Callable[..., list[Array]]:
        """The same as a part of a caller's compiled program, where nothing can grow."""
        return partial(self._native, lanes)

    def _here(self, native: Callable[[], list[Array]], otherwise: Callable[[], list[Array]]) -> list[Array]:
        """The `_parts` of a run by native code, where the graph runs in this process."""
        return self._backend.handlers.here(native, otherwise)

    def _compiled(self, lanes: int | None) -> Callable[..., Sequence[Array]]:
        """The program of a run of so many lanes, or of any number."""
        with self._lock:
            if lanes not in self._programs:
                self._programs[lanes] = self._backend.compile(partial(self._native, lanes), jit=True)
        return self._programs[lanes]

    def _native(self, lanes: int | None, *arrays: Array) -> list[Array]:
        """Return the `_parts` of the handler's results for these arrays; to be traced for XLA."""
        interface = self._interface
        ends: list[Spec] = [("int32", (lanes,))] * 2
        written = [*interface.results, *interface.shown]
        specs = [*ends, *((each.number.dtype, (lanes, *each.sizes)) for each in written)]
        return self._ended(*self._backend.handlers.call(self._handler.name, arrays, specs))

    def _ended(self, failures: Array, steps: Array, *rest: Array) -> list[Array]:
        """Return the `_parts` of what native code writes."""
        interface = self._interface
        values, shown = [*rest[: len(interface.results)]], rest[len(interface.results) :]
        number = len(self._program.faults) + 1
        codes, blocks = failures % number, failures // number
        statuses = [LaneStatus.OK, *(site.status for site in self._program.faults)]
        status = self._backend.load(self._backend.array(statuses, "int32"), [], codes)
        if self._machine.legs.loop.can_fail:
            values = blanked(self._program, self._backend, values, status)
        place = self._backend.where(codes > 0, blocks, self._backend.constant(-1))
        return [status, codes - 1, place, steps, *values, *shown]

    def _parts(self, outcome: Outcome) -> Iterator[Array]:
        """The arrays of an outcome, in order."""
        yield from (outcome.status, outcome.site, outcome.place, outcome.steps, *outcome.values)
        for name in self._interface.storage.shown:
            yield from outcome.fault_values[name]

    def _outcome(self, parts: Sequence[Array]) -> Outcome:
        """The inverse."""
        remaining = iter(parts)
        status, site, place, steps = (next(remaining) for _ in range(4))
        values = tuple(next(remaining) for _ in self._interface.results)
        shown: dict[str, list[Array]] = {name: [] for name in self._interface.storage.shown}
        for result in self._interface.shown:
            shown[result.leaf[0]].append(next(remaining))
        return Outcome(
            values=values,
            status=status,
            site=site,
            place=place,
            fault_values=shown,
            counting=_nothing_is_counted,
            steps=steps,
            backend=self._backend,
            can_fail=self._machine.legs.loop.can_fail,
            native_lanes=1,
        )


def _nothing_is_counted() -> Counts:
    raise AssertionError("what a run was made of is known only after a graph has run")
