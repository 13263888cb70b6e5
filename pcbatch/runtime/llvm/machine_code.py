"""The machine code of a native function, what a call of it needs, and where both are kept on disk."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir.machine import Block, Piece, Program
from pcbatch.ir.types import StructType, Type, records
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.llvm import compiler
from pcbatch.runtime.llvm.function import Function
from pcbatch.runtime.store import cache_session
from pcbatch.runtime.store.cache_session import Name, Store
from pcbatch.runtime.store.folder import Entry
from pcbatch.threads import is_main, waited


@dataclass(frozen=True)
class MachineCode:
    """An object file with the function `run`, and the bytes of memory that a thread works in there."""

    object_file: bytes
    arena_bytes: int

    @classmethod
    def of(cls, function: Function) -> MachineCode:
        """Compile a function; Ctrl-C need not wait for it."""
        make = partial(compiler.object_code, function.text)
        return cls(waited(make, lambda: None) if is_main() else make(), function.arena_bytes)


class StoredCode:
    """The machine code that a cache on disk has under a name: `found`, None where there is none, or no name."""

    def __init__(self, name: Name | None, backend: Backend):
        self._store: Store | None = cache_session.current()
        self._entry: Entry | None = None
        self.found: MachineCode | None = None
        if self._store is None or name is None:
            return
        digest = name.digest()
        if digest is not None:
            version, settings = backend.version()
            self._entry = self._store.entry(digest, [*name.part, *compiler.target(), *settings], version)
            self.found = _read(self._entry)
        name.note(self.found is not None)

    def keep(self, code: MachineCode) -> None:
        """Keep code that was not found."""
        if self._store is not None and self._entry is not None:
            header = json.dumps({"arena_bytes": code.arena_bytes}).encode()
            self._store.later(partial(self._entry.put_program, [header, code.object_file]))


def _read(entry: Entry) -> MachineCode | None:
    parts = entry.program()
    if parts is None or len(parts) != 2:
        return None
    try:
        arena_bytes = json.loads(parts[0])["arena_bytes"]
    except (ValueError, KeyError, TypeError):
        return None
    return MachineCode(parts[1], arena_bytes) if isinstance(arena_bytes, int) else None


@dataclass(frozen=True)
class Outline:
    """All that calls of a native program need but its machine code: where that is on disk, says the `digest`."""

    program: Program
    """The program without code: its faults, its places in the source, what its blocks store where."""
    users: Mapping[str, str]
    """The parameters of the user's function, by those of the program."""
    unforked: tuple[tuple[Span | None, str], ...]
    """The places of calls that are not made at the same time, and why."""
    digest: str

    @classmethod
    def of(
        cls, program: Program, users: Mapping[str, str], unforked: Sequence[tuple[Span | None, str]], digest: str
    ) -> Outline:
        """The outline of a program."""
        bare = replace(program, blocks=tuple(map(_without_code, program.blocks)), structure=None)
        return cls(bare, dict(users), tuple(unforked), digest)

    def of_call(self, name: str | None, result: Type) -> Outline:
        """The same, of a program with such a result, whose classes are this process's own; perhaps of another name."""
        structure = result if isinstance(result, StructType) else None
        return replace(self, program=replace(self.program, name=name or self.program.name, structure=structure))


def _without_code(block: Block) -> Block:
    body = (
        replace(item, function=None, statements=(), steps=(), kept={}) if isinstance(item, Piece) else item
        for item in block.body
    )
    return replace(block, body=tuple(body))


class StoredOutline:
    """The outline that a cache on disk has under a digest of what was read: `found`, None where there is none."""

    def __init__(self, store: Store, digest: str, backend: Backend, name: str | None, result: Type):
        self._store = store
        version, settings = backend.version()
        self._entry = store.entry(digest, ["outline", *compiler.target(), *settings], version)
        found = _unpickled(self._entry.outline())
        self.found = None if found is None else found.of_call(name, result)

    def keep(self, outline: Outline) -> None:
        """Keep an outline that was not found."""
        types = [*outline.program.types.values(), *outline.program.shared_types.values()]
        if any(True for type_ in types for _ in records(type_)):
            return  # the classes of another process are others
        try:
            content = pickle.dumps(outline)
        except (pickle.PicklingError, TypeError, AttributeError):
            return
        self._store.later(partial(self._entry.put_outline, content))


def _unpickled(content: bytes | None) -> Outline | None:
    if content is None:
        return None
    try:
        found: Any = pickle.loads(content)
    except Exception:  # whatever is written there is no outline of this version's
        return None
    return found if isinstance(found, Outline) else None
