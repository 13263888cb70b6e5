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
        self._bits, self._can_fail = interface.storage.site_bits, machine.legs.loop.can_fail
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
                return [*self._written(self._machine.run(arrays[:count], arrays[count:], lanes))]

            native = self._inside(known) if backend.inside("fixed program") else self._compiled(known)
            return self._here(lambda: list(native(*arrays)), otherwise)

        arrays = self._machine.arrays_given(arguments, shared, lanes)
        return self._outcome(*backend.forbid_gradients(Traced(run), self._program.name)(*arrays))

    def _is_possible(self) -> bool:
        return self._backend.handlers.version() is not None

    def _inside(self, lanes: int | None) -> Callable[..., list[Array]]:
        """The same as a part of a caller's compiled program, where nothing can grow."""
        return partial(self._native, lanes)

    def _here(self, native: Callable[[], list[Array]], otherwise: Callable[[], list[Array]]) -> list[Array]:
        """The arrays that native code writes, by itself where the graph runs in this process."""
        return self._backend.handlers.here(native, otherwise)

    def _compiled(self, lanes: int | None) -> Callable[..., Sequence[Array]]:
        """The program of a run of so many lanes, or of any number."""
        with self._lock:
            if lanes not in self._programs:
                self._programs[lanes] = self._backend.compile(partial(self._native, lanes), jit=True)
        return self._programs[lanes]

    def _native(self, lanes: int | None, *arrays: Array) -> list[Array]:
        """Return what the handler writes for these arrays; to be traced for XLA."""
        interface = self._interface
        ends: list[Spec] = [("int32", (lanes,))] * 2
        written = [*interface.results, *interface.shown]
        specs = [*ends, *((each.number.dtype, (lanes, *each.sizes)) for each in written)]
        return [*self._backend.handlers.call(self._handler.name, arrays, specs)]

    def _written(self, outcome: Outcome) -> Iterator[Array]:
        """The arrays that native code would have written for an outcome."""
        failed, codes = outcome.site >= 0, outcome.site + 1
        yield self._backend.where(failed, (outcome.place * (1 << self._bits)) + codes, self._backend.constant(0))
        yield from (outcome.steps, *outcome.values)
        for name in self._interface.storage.shown:
            yield from outcome.fault_values[name]

    def _outcome(self, failures: Array, steps: Array, *rest: Array) -> Outcome:
        """The outcome by what native code writes.

        It is made of this outside of the compiled program: a graph leaves out what nobody asks for. Where all else was
        inside, 16,384 lanes of rejection sampling took 0.3 ms longer, more than to run them.
        """
        remaining = iter(rest)
        values = [next(remaining) for _ in self._interface.results]
        shown: dict[str, list[Array]] = {name: [] for name in self._interface.storage.shown}
        for result in self._interface.shown:
            shown[result.leaf[0]].append(next(remaining))
        status, site, place = self._ends(failures)
        if self._can_fail:
            values = blanked(self._program, self._backend, values, status)
        return Outcome(
            values=tuple(values),
            status=status,
            site=site,
            place=place,
            fault_values=shown,
            counting=_nothing_is_counted,
            steps=steps,
            backend=self._backend,
            can_fail=self._can_fail,
            native_lanes=1,
        )

    def _ends(self, failures: Array) -> tuple[Array, Array, Array]:
        """The status, the site and the place of each lane."""
        if not self._can_fail:
            return failures, failures - 1, failures - 1
        backend, faults = self._backend, self._program.faults
        codes, blocks = failures & ((1 << self._bits) - 1), failures // (1 << self._bits)
        statuses = backend.array([LaneStatus.OK, *(each.status for each in faults)], "int32")
        return backend.load(statuses, [], codes), codes - 1, backend.where(codes > 0, blocks, backend.constant(-1))


def _nothing_is_counted() -> Counts:
    raise AssertionError("what a run was made of is known only after a graph has run")
