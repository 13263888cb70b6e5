"""Programs as the interpreter of `pcbatch.reading` reads them, found again by the values that they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.errors import Diagnostic, Span, raise_all
from pcbatch.frontend.nodes import span_of
from pcbatch.function.arguments import Arguments, flattened
from pcbatch.function.naming import Linkable
from pcbatch.ir import program as ir
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import Captured, objects
from pcbatch.lowering.captures.guarded_paths import GoneError, Place
from pcbatch.reading import sources
from pcbatch.reading.calls import BatchedFunction
from pcbatch.reading.kinds import ROOM
from pcbatch.reading.reading import Reading, read
from pcbatch.reading.untyped.program import read_untyped
from pcbatch.runtime.backends.protocol import Backend

READINGS = 3
"""Maximal number of readings of a function if what it reads changes meanwhile."""


def batched_of(value: Any) -> BatchedFunction | None:
    """Return the reader's view of a batched function; None for everything else."""
    if not isinstance(value, Linkable):
        return None
    tree, file = sources.tree_of(value.function)
    statics, cost = frozenset(value.static_argnames), value.function_source.cost
    return BatchedFunction(value.function, tree, file, statics, value.receiver, cost, value)


@dataclass(frozen=True, eq=False)
class ReadProgram:
    """A function as it was read for some types of arguments, with what it depends on."""

    entry: Linkable
    types: Mapping[str, Type]
    """The types of the arguments, by parameter of the user's."""
    reading: Reading
    takes_gradients: bool
    """True if the user's code may take gradients."""
    forking: bool = False
    """True if loops whose turns make calls are written out, so that these can be made at the same time."""

    @property
    def unforked_loops(self) -> list[tuple[Span | None, str]]:
        """The places of loops whose turns make calls, not all of which can be made at the same time, and why."""
        return [(span, note.why) for span, note in self.reading.loops.items() if note.why is not None]

    @property
    def has_written_out(self) -> bool:
        """True if loops are written out for the calls in their turns."""
        return any(note.is_written_out for note in self.reading.loops.values())

    @property
    def places(self) -> Mapping[str, Sequence[Place]]:
        """The places where each captured array was read, by the name of its operand."""
        return {name: operand.places for name, operand in self.reading.operands.items()}

    @property
    def key(self) -> Any:
        """A hashable key that tells the program from others of the function for the same types of arguments."""
        return self.reading.guards.key

    def captured(self, backend: Backend) -> Captured | None:
        """The captured arrays as they are now; None where the program is another one by now."""
        if not self.reading.guards.hold():
            return None
        values: dict[str, Any] = {}
        for name, operand in self.reading.operands.items():
            values[name] = operand.value
            try:
                found = [place.read() for place in operand.places]
            except GoneError:
                return None
            if found:
                values[name] = found[0]
            if any(each is not values[name] for each in found):
                return None
        try:
            return Captured(values).taken_apart(backend.type_of)
        except TypeError:
            return None  # no array any more

    def operands(self, captured: Captured) -> list[tuple[Sequence[Place], Any]]:
        """The places where each captured array was read, and what it is now."""
        return [(self.places[name], value) for name, value in captured.values.items()]

    def values(self) -> list[Any]:
        """All values that the program depends on, as they are now."""
        return self.reading.guards.values()

    def flat(self, arguments: Arguments) -> Arguments:
        """Arguments with each of their arrays as a parameter of its own, in the program's order."""
        return flattened(arguments, self.reading.parameters)


def read_program(
    entry: Linkable, arguments: Arguments, backend: Backend, *, forking: bool = False, room: int = ROOM
) -> ReadProgram:
    """Read a function's program for these arguments; CompileError with the refusals.

    See `read` for `forking`, `room`.
    """
    own = batched_of(entry)
    assert own is not None
    takes_gradients = any(map(backend.takes_gradients, objects([entry.function])))

    def known(value: Any) -> BatchedFunction | None:
        """A batched function; the entry's options govern wherever it calls itself, under whatever options."""
        found = batched_of(value)
        return replace(found, statics=own.statics) if found is not None and entry.is_relative(value) else found

    changes = 0
    while True:
        if takes_gradients and arguments.variables:
            raise arguments.refused_variable(entry.__name__, backend)
        reading = read(
            own,
            arguments.types,
            arguments.statics,
            backend,
            known,
            defaults=arguments.defaults,
            tapes=takes_gradients,
            forking=forking,
            room=room,
        )
        changed = reading.guards.changed()
        if changed:
            changes += 1
            if changes == READINGS:
                raise_all([_changing(entry.__name__, changed[0].text, span_of(own.tree, own.file))])
            continue
        found = ReadProgram(entry, arguments.types, reading, takes_gradients, forking)
        if takes_gradients or not any(map(backend.takes_gradients, objects(found.values()))):
            return found
        takes_gradients = True


def _changing(name: str, what: str, span: Span) -> Diagnostic:
    return Diagnostic(
        "PCB424",
        f"`{what}` has changed each time that `{name}` was read",
        span,
        "what this calls changes it, or another thread does",
        "a batched function changes nothing around it: hand over what changes as an argument, and return it",
    )


def untyped_program(entry: Linkable, backend: Backend) -> ir.Program:
    """The "cfg" program of a function for arguments of any types: its names are looked up as they are now.

    Raises CompileError with what is refused whatever the types are, in the function and in those that it calls.
    """
    own = batched_of(entry)
    assert own is not None
    return read_untyped(own, batched_of, is_array=backend.is_array, takes_gradients=backend.takes_gradients).program
