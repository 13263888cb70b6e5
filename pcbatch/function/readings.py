"""Programs by the interpreter of `pcbatch.reading`: read for arguments, found again by what they have read.

The new reading beside the old one, which `switched` chooses.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType
from typing import Any

from pcbatch.errors import Span
from pcbatch.function.arguments import Arguments
from pcbatch.function.linkable import Linkable
from pcbatch.function.pipeline import Pipeline
from pcbatch.ir import machine
from pcbatch.ir.types import leaves
from pcbatch.lowering.captures.captured import Captured, FreeValues
from pcbatch.lowering.captures.fingerprints import shallow
from pcbatch.lowering.captures.kept import kept
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.inference.typed import Typed
from pcbatch.options import Options
from pcbatch.reading import sources
from pcbatch.reading.calls import BatchedFunction
from pcbatch.reading.places import GoneError, Place
from pcbatch.reading.reading import Reading, read
from pcbatch.runtime.backends.protocol import Backend

_switched: ContextVar[bool] = ContextVar("switched", default=False)


def is_switched() -> bool:
    """Whether programs are read by the interpreter."""
    return _switched.get()


@contextlib.contextmanager
def switched(on: bool = True) -> Iterator[None]:
    """Inside, programs are read by the interpreter; for tests, as long as both readings exist."""
    token = _switched.set(on)
    try:
        yield
    finally:
        _switched.reset(token)


def batched_of(value: Any) -> BatchedFunction | None:
    """What the reader has to know of a batched function; None for everything else."""
    if not isinstance(value, Linkable):
        return None
    tree, file = sources.tree_of(value.function)
    statics, cost = frozenset(value.static_argnames), value.function_source.cost
    return BatchedFunction(value.function, tree, file, statics, value.receiver, cost, value)


class Bound:
    """The meaning of free names in a program that has been read: names that the reader has given out."""

    given: Mapping[str, Any] = {}

    def __init__(self, names: Mapping[str, Any]):
        self.names = names

    def with_values(self, values: Mapping[str, Any]) -> Bound:
        return self

    def __getitem__(self, name: str) -> Any:
        return self.names[name] if name in self.names else vars(builtins)[name]

    def hides(self, name: str) -> bool:
        return name in self.names and self.names[name] is not vars(builtins).get(name)

    def path(self, text: str) -> Any:
        root, *attributes = text.split(".")
        value = self[root]
        for attribute in attributes:
            value = getattr(value, attribute)
        return value


class _Every:
    """What contains everything."""

    def __contains__(self, value: object) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(())


@dataclass(frozen=True)
class _Unrolling:
    """That no loop is written out for its calls; see `frontend`."""

    apart: Mapping[Span, str] = field(default_factory=dict)
    partly: Mapping[Span, str] = field(default_factory=dict)
    for_calls: tuple[Any, ...] = ()
    augmented: Mapping[Span, str] = field(default_factory=dict)

    def told(self, diagnostic: Any) -> Any:
        return diagnostic


@dataclass(frozen=True)
class _Built:
    unrolling: _Unrolling = _Unrolling()


@dataclass(frozen=True, eq=False)
class ReadProgram:
    """A reading with what the pipeline asks of a linked program."""

    entry: Linkable
    reading: Reading
    namespaces: Mapping[str, Any]
    built: _Built = _Built()
    grants: Any = None
    statics: Mapping[str, Any] = field(default_factory=dict)
    methods: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def free(self) -> FreeValues:
        return FreeValues({}, frozenset())

    def is_current(self) -> bool:
        return all(_is_same(place, key) for place, key in self.reading.world.guards.values())

    def captured(self, backend: Backend) -> Captured | None:
        """The captured arrays as they are now; None where the program is another one by now."""
        if not self.is_current():
            return None
        values: dict[str, Any] = {}
        for name, (place, value) in self.reading.world.operands.items():
            if place is None:
                values[name] = value
                continue
            try:
                values[name] = place.read()
            except GoneError:
                return None
        operands = {function: {name: name for name in values} for function in self.namespaces}
        return Captured(operands, values, (), ()).taken_apart(backend.type_of)


def _is_same(place: Place, key: Any) -> bool:
    try:
        return bool(shallow(place.read()) == key)
    except GoneError:
        return False


class ReadPipeline(Pipeline):
    """The pipeline of a program that has been read."""

    @cached_property
    def typed(self) -> Typed:
        """The typed cfg program."""
        reading: Reading = self.linked.reading  # type: ignore[attr-defined]
        return Typed(reading.program, reading.origin, self.environment)

    @cached_property
    def table(self) -> machine.Program:
        """The executable table; its results are the leaves of a structure."""
        reading: Reading = self.linked.reading  # type: ignore[attr-defined]
        return replace(super().table, structure=reading.result)

    def flat(self, arguments: Arguments) -> Arguments:
        """Arguments with each of their arrays as a parameter of its own."""
        return flat(arguments, self.linked.reading)  # type: ignore[attr-defined]


def flat(arguments: Arguments, reading: Reading) -> Arguments:
    """Arguments with each of their arrays as a parameter of its own, in the program's order."""
    values: dict[str, Sequence[Any]] = {}
    types: dict[str, Any] = {}
    shared: set[str] = set()
    for user, names in reading.parameters.items():
        if user not in arguments.types or not names:
            continue
        given = arguments.leaves.get(user) or [None] * len(names)
        for name, leaf, type_ in zip(names, given, leaves(arguments.types[user]), strict=True):
            types[name] = type_
            if arguments.leaves:
                values[name] = [leaf]
            if user in arguments.shared:
                shared.add(name)
    return replace(arguments, leaves=values, types=types, shared=frozenset(shared))


def read_program(entry: Linkable, arguments: Arguments, options: Options, backend: Backend, lessons: Any) -> ReadPipeline:
    """The pipeline of a function's program for these arguments."""
    own = batched_of(entry)
    assert own is not None
    reading = read(own, arguments.types, arguments.statics, backend, batched_of, defaults=arguments.defaults)
    names = Bound(reading.names)
    namespaces = {function.name: names for function in reading.program.functions}
    linked = ReadProgram(entry, reading, namespaces)
    captured = linked.captured(backend)
    assert captured is not None, "what was read has changed meanwhile"
    others = [place.read() for place, _ in reading.world.guards.values()]
    environment = Environment(
        backend,
        namespaces,  # type: ignore[arg-type]
        captured.without_values(),
        captured.types,
        lenient=_Every(),  # type: ignore[arg-type]
        kept=kept(captured.leaves, others, backend.is_variable),
    )
    return ReadPipeline(linked, environment, flat(arguments, reading).without_values(), options, lessons)  # type: ignore[arg-type]


__all__ = ["FunctionType", "ReadPipeline", "ReadProgram", "batched_of", "is_switched", "read_program", "switched"]
