"""Emission: a machine program as Python source that builds the table the machine runs.

One function for each piece, headed by the user's source lines that it comes from, then the table of what each block
does. What this module returns is what `f.source()` shows and what is executed; there is no second form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir.machine import (
    Block,
    Branch,
    Deferred,
    Fault,
    FaultSite,
    Fork,
    ForkedCall,
    Jump,
    LaneStatus,
    Piece,
    Program,
    Push,
    PushJump,
    Return,
    Store,
    Terminator,
)
from pcbatch.ir.types import Type, records
from pcbatch.lowering.codegen.environment import NO_SITE, OPS, Environment
from pcbatch.lowering.codegen.pieces import PieceText, bind, compile_piece, execute, write_piece
from pcbatch.lowering.codegen.steps import Steps, shared_types

# -- text of the table -------------------------------------------------------------------------------------------------


INDENT = "    "
_RESERVED = re.compile(rf"PROGRAM|_pcb|{OPS}|_at\d*")


def is_reserved(name: str) -> bool:
    """Return whether generated source uses `name` for something of its own."""
    return _RESERVED.fullmatch(name) is not None


class TableText:
    """Collects the blocks of a program and prints the module."""

    def __init__(self, program: Program):
        self.program = program
        self.functions: list[str] = []
        self.blocks: list[str] = []
        self.files: dict[str, str] = {}

    # -- one block -----------------------------------------------------------------------------------------------------

    def add(self, block: Block, pieces: Sequence[PieceText]) -> None:
        """Print one block: its pieces' functions, of these texts, and its entry in the table."""
        texts = iter(pieces)
        body = []
        for item in block.body:
            if isinstance(item, Piece):
                text = next(texts)
                self.functions.append(f"{self._header(block, text)}\n{text.source()}")
                body.append(self._piece(item, text))
            else:
                body.append(self._store(item))
        lines = [
            f"{block.label!r},",
            f"body=({_list(body)}),",
            f"terminator={_terminator(block.terminator)},",
            *([f"pops={_tuple(block.pops)},"] if block.pops else []),
            *([f"pushes=({_list(map(_push, block.pushes))}),"] if block.pushes else []),
            f"function={block.function!r},",
            f"span={self._span(block.span)},",
            *([f"steps_site={block.steps_site},"] if block.steps_site >= 0 else []),
            *(["sync=True,"] if block.sync else []),
            *([f"cost={block.cost!r},"] if block.cost is not None else []),
            *([f"dead={_tuple(block.dead)},"] if block.dead else []),
            *([f"deferred={_deferred(block.deferred)},"] if block.deferred is not None else []),
        ]
        inner = "".join(f"{INDENT * 3}{line}\n" for line in lines)
        self.blocks.append(f"{INDENT * 2}_pcb.Block(\n{inner}{INDENT * 2}),\n")

    def _piece(self, piece: Piece, text: PieceText) -> str:
        shared = f", shared={_tuple(piece.shared)}" if piece.shared else ""
        checks = f", sites={_tuple(piece.sites)}" if piece.sites else ""
        spans = f", spans=({_list(map(self._span, text.spans()))})"
        asked = f", predicate={piece.predicate!r}" if piece.predicate is not None else ""
        asked += ", speculative=True" if piece.speculative else ""
        return f"_pcb.Piece({text.name}, {_tuple(piece.reads)}, {_tuple(piece.writes)}{shared}{checks}{spans}{asked})"

    def _store(self, store: Store) -> str:
        asked = f", predicate={store.predicate!r}" if store.predicate is not None else ""
        return f"_pcb.Store({store.array!r}, {_tuple(store.indices)}, {store.value!r}, {store.site}{asked})"

    def _header(self, block: Block, piece: PieceText) -> str:
        """A comment with the user's source lines that a piece comes from."""
        spans = [s for s in (*piece.spans(), block.terminator.span) if s is not None]
        lines = {(span.file, span.line): span.text.strip() for span in spans}
        quoted = [f"#   {line}: {text}" for (_, line), text in sorted(lines.items()) if text]
        return "\n".join([f"# {block.function}, block {block.label}", *quoted])

    # -- the module ----------------------------------------------------------------------------------------------------

    def source(self, ops_module: str, records: Sequence[str]) -> str:
        """The whole generated module; `records` are the names of the classes of named tuples and dataclasses."""
        program = self.program
        sites = "".join(f"{INDENT * 2}{self._fault(fault)},\n" for fault in program.faults)
        package, _, module = ops_module.rpartition(".")
        table = [
            f"{program.name!r},",
            f"parameters={_tuple(program.parameters)},",
            f"results={_tuple(program.results)},",
            f"types={_types(program.types, records)},",
            f"storage={_dict(program.storage)},",
            f"shared={_tuple(program.shared)},",
            f"shared_types={_types(program.shared_types, records)},",
            *([f"pointers={_dict(program.pointers)},"] if program.pointers else []),
            *([f"order={_tuple(program.order)},"] if program.order else []),
            f"faults=(\n{sites}{INDENT}),",
            f"blocks=(\n{''.join(self.blocks)}{INDENT}),",
            *(
                [f"structure={_types({'results': program.structure}, records)}['results'],"]
                if program.structure is not None
                else []
            ),
        ]
        files = "".join(f"{alias} = _pcb.at({file!r})\n" for file, alias in self.files.items())
        return (
            f'"""{program.name}, compiled by pcbatch: the pieces of its blocks, then their table."""\n\n'
            f"from pcbatch.runtime.machine import generated as _pcb\n"
            f"from {package} import {module} as {OPS}\n"
            + "\n\n".join(["", *self.functions])
            + f"\n\n{files}PROGRAM = _pcb.Program(\n"
            + "".join(f"{INDENT}{line}\n" for line in table)
            + ")\n"
        )

    def _fault(self, fault: FaultSite) -> str:
        arguments = f", arguments={_tuple(fault.arguments)}" if fault.arguments else ""
        span = f", span={self._span(fault.span)}" if fault.span is not None else ""
        return f"_pcb.FaultSite(_pcb.LaneStatus.{fault.status.name}, {fault.message!r}{arguments}{span})"

    def _span(self, span: Span | None) -> str:
        if span is None:
            return "None"
        alias = self.files.setdefault(span.file, "_at" if not self.files else f"_at{len(self.files)}")
        return f"{alias}({span.line}, {span.column}, {span.end_line}, {span.end_column})"


def _terminator(terminator: Terminator) -> str:
    match terminator:
        case Jump(target, turn):
            return f"_pcb.Jump({_target(target)}{', turn=True' if turn else ''})"
        case Branch(fork=None):
            return _target(terminator)
        case Branch(fork=Fork() as fork):
            return f"{_target(terminator)[:-1]}, fork={_fork(fork)})"
        case Return():
            return "_pcb.Return()"
        case Fault(site):
            return f"_pcb.Fault({site})"
        case PushJump(target, back, site, fork=fork):
            if fork is None:
                return f"_pcb.PushJump({_target(target)}, {back}, {site})"
            return f"_pcb.PushJump({_target(target)}, {back}, {site}, fork={_fork(fork)})"
    raise TypeError(f"not a terminator: {terminator!r}")


def _fork(fork: Fork) -> str:
    def call(each: ForkedCall) -> str:
        condition = "" if each.condition is None else f", {each.condition!r}"
        return f"_pcb.ForkedCall({_tuple(each.given)}, {_tuple(each.results)}{condition})"

    return f"_pcb.Fork(({_list(map(call, fork.calls))}), {fork.join})"


def _target(target: int | Branch) -> str:
    if isinstance(target, int):
        return str(target)
    return f"_pcb.Branch({target.condition!r}, {target.true}, {target.false})"


def _deferred(each: Deferred) -> str:
    return f"_pcb.Deferred({each.turn!r}, {each.count!r}, {each.most}, {each.of})"


def _push(push: Push) -> str:
    return f"_pcb.Push({push.variable!r})" if push.saved is None else f"_pcb.Push({push.variable!r}, {push.saved!r})"


def _list(items: Iterable[str]) -> str:
    """The inside of a tuple."""
    return "".join(f"{item}, " for item in items).rstrip()


def _tuple(names: Sequence[object]) -> str:
    return f"({', '.join(repr(name) for name in names)}{',' if len(names) == 1 else ''})"


def _dict(entries: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key!r}: {value!r}" for key, value in entries.items()) + "}"


def _types(types: Mapping[str, Type], records: Sequence[str]) -> str:
    if not types:
        return "{}"
    return "_pcb.types(" + ", ".join([*records, *(f'{name}="{type_}"' for name, type_ in types.items())]) + ")"


# -- emission ----------------------------------------------------------------------------------------------------------


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
