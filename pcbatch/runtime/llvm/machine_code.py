"""The machine code of a native function, and where it is kept on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

from pcbatch.interrupts import is_main, waited
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.llvm import compiler
from pcbatch.runtime.llvm.function import Function
from pcbatch.runtime.store import cache_session
from pcbatch.runtime.store.cache_session import Name, Store
from pcbatch.runtime.store.folder import Entry


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
            part = [*name.part, *compiler.target(), *backend.settings()]
            self._entry = self._store.entry(digest, part, backend.version())
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
