"""Emission: the optimised stack program as Python source that builds the table the machine runs.

One function for each piece, headed by the user's source lines that it comes from, then the table of what each block
does. What this module returns is what `f.source()` shows and what is executed; there is no second form.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import machine as table
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import liveness
from pcbatch.ir.code import copy_of
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import Type, records
from pcbatch.lowering.captures.captured import free_roots
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.heads import head_of, heads
from pcbatch.lowering.codegen.pieces import PieceText, bind, compile_piece, execute, write_piece
from pcbatch.lowering.codegen.tabletext import BlockParts, TableText, is_reserved
from pcbatch.lowering.codegen.translate import OPS, OUT_OF_RANGE
from pcbatch.runtime.machine.limits import DEFAULT_MAX_DEPTH

DEPTH_MESSAGE = f"RecursionError: more than max_depth calls deep ({DEFAULT_MAX_DEPTH} unless max_depth=.. says more)"


@dataclass(frozen=True)
class Emitted:
    """Generated source, and the values of the names that it reads from the user's modules."""

    source: str
    bindings: Mapping[str, Any]

    def load(self) -> table.Program:
        """Execute the source: the table of the program."""
        namespace = dict(self.bindings)
        execute(self.source, namespace)
        program = namespace["PROGRAM"]
        assert isinstance(program, table.Program)
        return program


def emit(program: ir.Program, origin: Mapping[str, str], environment: Environment, shared: tuple[str, ...]) -> Emitted:
    """Source for `program`.

    `origin` gives the user's function of each function, `environment` the meaning of names in each, `shared` the
    entry's parameters that all lanes share.
    """
    return _Emission(program, origin, environment, shared).emitted()


class _Emission:
    def __init__(
        self, program: ir.Program, origin: Mapping[str, str], environment: Environment, shared: tuple[str, ...]
    ):
        self.program = program
        self.origin = origin
        self.environment = environment
        self.shared_parameters = shared
        self.variables = {v.name: v for function in program.functions for v in function.variables}
        self.types: dict[str, Type] = {}
        self.faults: list[table.FaultSite] = []
        self.bindings: dict[str, Any] = {}
        self.taken = frozenset(self.variables) | frozenset(environment.operand_types)
        self.roots = free_roots(program)
        self.heads = heads(program)
        self.live = liveness(program)

    def emitted(self) -> Emitted:
        numbers = {block.label: number for number, block in enumerate(self.program.blocks())}
        text = TableText(self.program, self.origin, numbers)
        for function in self.program.functions:
            for block in function.blocks:
                parts = self._block(function, block)
                site = self._terminator_site(block.terminator)
                text.add(parts, block.terminator, site, self._steps_site(block.terminator))
        entry = self.program.entry
        storage = {
            name: v.storage
            for name, v in self.variables.items()
            if v.storage != "temporary" and name not in self.shared_parameters and v.type is not None
        }
        self._note_types(storage)
        shared = {
            **{name: self.variables[name].type for name in self.shared_parameters},
            **self.environment.operand_types,
        }
        source = text.source(
            ops_module=self.environment.backend.ops_module,
            parameters=tuple(name for name in entry.parameters if name not in self.shared_parameters),
            results=entry.results,
            types=self.types,
            storage=storage,
            faults=self.faults,
            shared=shared,
            records=self._records((*self.types.values(), *shared.values())),
        )
        return Emitted(source, self.bindings)

    def _site(self, span: Span | None, status: LaneStatus, message: str, arguments: tuple[str, ...] = ()) -> int:
        self.faults.append(table.FaultSite(status, message, arguments, span))
        return len(self.faults) - 1

    def _terminator_site(self, terminator: ir.Terminator) -> int:
        match terminator:
            case ir.Fault(message, arguments, kind, span):
                status = LaneStatus.ASSERTION if kind == "assert" else LaneStatus.RAISED
                return self._site(span, status, message, arguments)
            case ir.PushJump(span=span):
                return self._site(span, LaneStatus.MAX_DEPTH, DEPTH_MESSAGE)
        return -1

    def _steps_site(self, terminator: ir.Terminator) -> int:
        match terminator:
            case ir.Jump(turn=True, span=span) | ir.PushJump(span=span):
                return self._site(span, LaneStatus.MAX_STEPS, "more than max_steps loop turns and calls")
        return -1

    # -- one block -----------------------------------------------------------------------------------------------------

    def _block(self, function: ir.Function, block: ir.Block) -> BlockParts:
        spans = [node.span for node in (*block.ops, block.terminator) if node.span is not None]
        pops = tuple(name for op in block.ops if isinstance(op, ir.Pop) for name in op.variables)
        span = min(spans, default=None)
        parts = BlockParts(block.label, function.name, span, pops, block.sync, function.cost)
        statements: list[ir.Primitive | ir.Enter | ir.Exit] = []
        written: set[str] = set()
        for index, op in enumerate(block.ops):
            match op:
                case ir.Primitive() | ir.Update():
                    statements.append(ir.Primitive(op.outputs, op.inputs, op.code, op.span))
                    written |= set(op.outputs)
                case ir.Enter() | ir.Exit():
                    statements.append(op)
                    written |= set(ir.writes(op))
                case ir.Push(outputs, inputs, code, span):
                    for name in outputs:
                        statements += self._push(parts, name, written, op)
                    if not ir.is_identity(op):
                        statements.append(ir.Primitive(outputs, inputs, code, span))
                    written |= set(outputs)
                case ir.Store(array=array, span=span):
                    self._piece(parts, function, statements, self._needed_after(block, index))
                    statements = []
                    parts.body.append((op, self._site(span, *OUT_OF_RANGE)))
                    parts.sites.append(())
                    written.add(array)
        self._piece(parts, function, statements, self._needed_after(block, len(block.ops)))
        if (head := head_of(block, self.heads)) is not None:
            owner, asking = head
            assert isinstance(asking.terminator, ir.Branch)
            parts.answer = asking.terminator
            asked = [op for op in asking.ops if isinstance(op, ir.Primitive)]
            self._piece(parts, owner, asked, self._needed_after(asking, len(asking.ops)))
        parts.dead = self._dead(block, asking if head is not None else block)
        return parts

    def _dead(self, block: ir.Block, last: ir.Block) -> tuple[str, ...]:
        """The stored variables to which `block` gives values that nobody reads behind it; it ends as `last` does."""
        live = self.live[last.label].end | set(ir.reads(last.terminator))
        stored = {op.array for op in block.ops if isinstance(op, ir.Store)}
        given = dict.fromkeys(name for op in block.ops for name in ir.writes(op))
        return tuple(n for n in given if self._stored(n) and n not in live | stored and n not in self.shared_parameters)

    def _push(self, parts: BlockParts, name: str, written: set[str], op: ir.Push) -> Iterator[ir.Primitive]:
        """Note the push of `name`; where its saved value is not the old top, the statement that keeps it."""
        if name not in written:
            parts.pushes.append((name, None))
        elif ir.is_identity(op):
            parts.pushes.append((name, name))
        else:
            saved = f"{name}_saved"
            while saved in self.taken:
                saved += "_"
            self.types[saved] = self._type(name)
            parts.pushes.append((name, saved))
            yield ir.Primitive((saved,), (name,), copy_of(saved, name), op.span)

    def _needed_after(self, block: ir.Block, index: int) -> frozenset[str]:
        """The temporaries that the block needs from a piece that ends before op `index`."""
        later = [name for op in block.ops[index:] for name in ir.reads(op)]
        return frozenset((*later, *ir.reads(block.terminator)))

    def _piece(
        self,
        parts: BlockParts,
        function: ir.Function,
        ops: Sequence[ir.Primitive | ir.Enter | ir.Exit],
        needed: frozenset[str],
    ) -> None:
        if not ops:
            return
        saved = {name for _, name in parts.pushes if name is not None}
        outputs = dict.fromkeys(name for op in ops for name in ir.writes(op))
        writes = tuple(name for name in outputs if name in needed or name in saved or self._stored(name))
        self._note_types(writes)
        number = sum(isinstance(each, PieceText) for each in parts.body)
        name = f"{function.name}_{parts.label}" + (f"_{number + 1}" if number else "")
        while name in self.roots:  # the user's code reads something of that name
            name += "_"
        variables = self.taken_variables(outputs)
        write = partial(write_piece, name, ops, writes, variables, self.environment, function.name)
        places: list[tuple[Span | None, LaneStatus, str]] = []

        def place(*what: Any) -> int:
            places.append(what)
            return len(places) - 1

        text = write(site=place)
        self._note_types(text.reads)
        sites: list[int] = []
        if places:
            checked = self._checked(text, function.name)
            numbers = {at: self._site(*what) for at, what in enumerate(places) if at in checked}
            sites = list(numbers.values())
            text = write(site=partial(_numbered, itertools.count(), numbers))
        parts.body.append(self._bound(self._shared(text), function.name))
        parts.sites.append(tuple(sites))

    def _checked(self, text: PieceText, function: str) -> frozenset[int]:
        """Which places of a piece can fail on the types that its variables have."""
        piece = compile_piece(text, self.environment, function)
        shared = [self.environment.operand_types[name] for name in piece.shared]
        return self.environment.backend.checked_sites(piece, [self.types[name] for name in piece.reads], shared)

    def taken_variables(self, outputs: Mapping[str, None]) -> frozenset[str]:
        """Every name that is a variable inside a piece."""
        return frozenset(self.variables) | frozenset(outputs)

    def _shared(self, text: PieceText) -> PieceText:
        """The piece with shared parameters among its shared operands."""
        shared = tuple(name for name in text.reads if name in self.shared_parameters)
        reads = tuple(name for name in text.reads if name not in shared)
        return PieceText(text.name, reads, (*shared, *text.shared), text.writes, text.statements, text.free)

    def _bound(self, text: PieceText, function: str) -> PieceText:
        """The piece with its free names bound; one that another function binds to something else is renamed."""
        values = bind(text.free, self.environment, function)
        values.pop(OPS, None)
        renamed = {name: fresh for name, value in values.items() if (fresh := self._binding(name, value)) != name}
        if not renamed:
            return text
        statements = tuple(replace(each, code=each.code.renamed(renamed)) for each in text.statements)
        return PieceText(text.name, text.reads, text.shared, text.writes, statements, text.free)

    def _binding(self, name: str, value: Any) -> str:
        """The name by which generated code knows `value`: `name`, unless that means something else already."""
        fresh, number = name, 0
        while self.bindings.get(fresh, value) is not value or is_reserved(fresh) or (number and fresh in self.taken):
            number += 1
            fresh = f"{name.lstrip('_')}_{number}"  # what is reserved starts with an underscore
        self.bindings[fresh] = value
        return fresh

    def _records(self, types: Iterable[Type | None]) -> tuple[str, ...]:
        """The names of the classes of all named tuples and dataclasses in `types`."""
        found = dict.fromkeys(record for type_ in types if type_ is not None for record in records(type_))
        return tuple(self._binding(record.__name__, record) for record in found)

    def _stored(self, name: str) -> bool:
        variable = self.variables.get(name)
        return variable is not None and variable.storage != "temporary"

    def _note_types(self, names: Iterable[str]) -> None:
        """Take the types of `names` into the table; saved values have theirs there already."""
        self.types.update({name: self._type(name) for name in names if name not in self.types})

    def _type(self, name: str) -> Type:
        type_ = self.variables[name].type
        assert type_ is not None, f"{name} has no type"
        return type_


def _numbered(
    places: Iterator[int], numbers: Mapping[int, int], span: Span | None, status: LaneStatus, message: str
) -> int:
    """The fault site of the next place that may fail; -1, which nothing reads, for one that cannot."""
    return numbers.get(next(places), -1)
