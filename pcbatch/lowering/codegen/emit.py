"""Emission: a machine program as Python source that builds the table the machine runs.

One function for each piece, headed by the user's source lines that it comes from, then the table of what each block
does. What this module returns is what `f.source()` shows and what is executed; there is no second form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.ir.machine import Block, LaneStatus, Piece, Program
from pcbatch.ir.types import Type, records
from pcbatch.lowering.codegen.builtins import NO_SITE, OPS
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import PieceText, bind, compile_piece, execute, write_piece
from pcbatch.lowering.codegen.steps import Steps, shared_types
from pcbatch.lowering.codegen.tabletext import TableText, is_reserved


@dataclass(frozen=True)
class Emitted:
    """Generated source, and the values of the names that it reads from the user's modules."""

    source: str
    bindings: Mapping[str, Any]

    def load(self) -> Program:
        """Execute the source: the table of the program."""
        namespace = dict(self.bindings)
        execute(self.source, namespace)
        program = namespace["PROGRAM"]
        assert isinstance(program, Program)
        return program


def emit(program: Program, environment: Environment) -> Emitted:
    """Source for `program`; `environment` gives the names of its statements their meaning."""
    return _Emission(program, environment).emitted()


def checked_sites(
    program: Program, piece: Piece, environment: Environment, steps: Steps | None = None
) -> frozenset[int]:
    """Return the fault sites of a piece that it really checks on the types of its variables.

    That is found out step by step, where there are `steps`.
    """
    backend = environment.backend
    taken_apart = () if steps is None else steps.of(program, piece)
    if taken_apart:
        found: set[int | None] = set()
        for step in (each for each in taken_apart if each.sites):
            checked = backend.facts(step.piece, step.read_types, shared_types(program, step)).sites
            found |= {step.sites[number] for number in checked}
        return frozenset(site for site in found if site is not None)
    text = _text(program, piece, environment, "piece")
    compiled = compile_piece(text, environment, piece.sites)
    reads = [program.types[name] for name in compiled.reads]
    return backend.facts(compiled, reads, [program.shared_types[name] for name in compiled.shared]).sites


def _text(program: Program, piece: Piece, environment: Environment, name: str) -> PieceText:
    """The text of a piece's function, called `name`."""
    sites = [iter(statement.sites) for statement in piece.statements]

    def site(number: int, status: LaneStatus, message: str) -> int:
        found = next(sites[number])
        return NO_SITE if found is None else found

    text = write_piece(name, [statement.op for statement in piece.statements], piece.writes, environment, site)
    return replace(text, reads=piece.reads, shared=piece.shared)


class _Emission:
    def __init__(self, program: Program, environment: Environment):
        self.program, self.environment = program, environment
        self.bindings: dict[str, Any] = {}
        self.taken = frozenset(program.types) | frozenset(program.shared)
        self.roots = {name for names in program.externs.values() for name in names}

    def emitted(self) -> Emitted:
        text = TableText(self.program)
        for block in self.program.blocks:
            text.add(block, self._pieces(block))
        structure = () if self.program.structure is None else (self.program.structure,)
        types = (*self.program.types.values(), *self.program.shared_types.values(), *structure)
        return Emitted(text.source(self.environment.backend.ops_module, self._records(types)), self.bindings)

    def _pieces(self, block: Block) -> list[PieceText]:
        """The texts of the block's pieces, in order."""
        found: list[PieceText] = []
        for piece in (item for item in block.body if isinstance(item, Piece)):
            name = f"{piece.scope}_{block.label}" + (f"_{len(found) + 1}" if found else "")
            while name in self.roots:  # the user's code reads something of that name
                name += "_"
            found.append(self._bound(_text(self.program, piece, self.environment, name)))
        return found

    def _bound(self, text: PieceText) -> PieceText:
        """The piece with its free names bound; one that another function binds to something else is renamed."""
        values = bind(text.free, self.environment)
        values.pop(OPS, None)
        renamed = {name: fresh for name, value in values.items() if (fresh := self._binding(name, value)) != name}
        if not renamed:
            return text
        statements = tuple(each.renamed(renamed) for each in text.statements)
        return replace(text, statements=statements)

    def _binding(self, name: str, value: Any) -> str:
        """The name by which generated code knows `value`: `name`, unless that means something else already."""
        fresh, number = name, 0
        while self.bindings.get(fresh, value) is not value or is_reserved(fresh) or (number and fresh in self.taken):
            number += 1
            fresh = f"{name.lstrip('_')}_{number}"  # what is reserved starts with an underscore
        self.bindings[fresh] = value
        return fresh

    def _records(self, types: Iterable[Type]) -> tuple[str, ...]:
        """The names of the classes of all named tuples and dataclasses in `types`."""
        found = dict.fromkeys(record for type_ in types for record in records(type_))
        return tuple(self._binding(record.__name__, record) for record in found)
