"""The text of the generated module: headed functions, then the table as one readable expression."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.machine import FaultSite
from pcbatch.ir.types import Type
from pcbatch.lowering.codegen.pieces import PieceText
from pcbatch.lowering.codegen.translate import MIDDLE, OPS

INDENT = "    "
_RESERVED = re.compile(rf"PROGRAM|_pcb|{OPS}|_at\d*|{MIDDLE}\d+")


def is_reserved(name: str) -> bool:
    """Whether generated source uses `name` for something of its own."""
    return _RESERVED.fullmatch(name) is not None


@dataclass
class BlockParts:
    """What emission makes of one block: texts of pieces, and the table's entries as text."""

    label: str
    function: str
    span: Span | None
    pops: tuple[str, ...]
    sync: bool = False
    cost: float | None = None
    dead: tuple[str, ...] = ()
    answer: ir.Branch | None = None
    """How the head goes on that the block jumps to; the block has the head's statements."""
    body: list[PieceText | tuple[ir.Store, int]] = field(default_factory=list)
    sites: list[tuple[int, ...]] = field(default_factory=list)
    pushes: list[tuple[str, str | None]] = field(default_factory=list)


class TableText:
    """Collects the blocks of a program and prints the module."""

    def __init__(self, program: ir.Program, origin: Mapping[str, str], numbers: Mapping[str, int]):
        self.program = program
        self.origin = origin
        self.numbers = numbers
        self.functions: list[str] = []
        self.blocks: list[str] = []
        self.files: dict[str, str] = {}

    # -- one block -----------------------------------------------------------------------------------------------------

    def add(self, parts: BlockParts, terminator: ir.Terminator, site: int, steps_site: int) -> None:
        """Print one block: its pieces' functions, and its entry in the table."""
        body = []
        for entry, sites in zip(parts.body, parts.sites, strict=True):
            if isinstance(entry, PieceText):
                self.functions.append(f"{self._header(parts, entry, terminator)}\n{entry.source()}")
                spans = f"spans=({self._spans(entry.spans())})"
                checks = f", sites={_tuple(sites)}" if sites else ""
                shared = f", shared={_tuple(entry.shared)}" if entry.shared else ""
                reads, writes = _tuple(entry.reads), _tuple(entry.writes)
                body.append(f"_pcb.Piece({entry.name}, {reads}, {writes}{shared}{checks}, {spans})")
            else:
                store, place = entry
                body.append(f"_pcb.Store({store.array!r}, {_tuple(store.indices)}, {store.value!r}, {place})")
        pushes = [
            f"_pcb.Push({name!r})" if saved is None else f"_pcb.Push({name!r}, {saved!r})"
            for name, saved in parts.pushes
        ]
        lines = [
            f"{parts.label!r},",
            f"body=({''.join(f'{entry}, ' for entry in body).rstrip()}),",
            f"terminator={self._terminator(terminator, parts.answer, site)},",
            *([f"pops={_tuple(parts.pops)},"] if parts.pops else []),
            *([f"pushes=({''.join(f'{push}, ' for push in pushes).rstrip()}),"] if pushes else []),
            f"function={self.origin[parts.function]!r},",
            f"span={self._span(parts.span)},",
            *([f"steps_site={steps_site},"] if steps_site >= 0 else []),
            *(["sync=True,"] if parts.sync else []),
            *([f"cost={parts.cost!r},"] if parts.cost is not None else []),
            *([f"dead={_tuple(parts.dead)},"] if parts.dead else []),
        ]
        inner = "".join(f"{INDENT * 3}{line}\n" for line in lines)
        self.blocks.append(f"{INDENT * 2}_pcb.Block(\n{inner}{INDENT * 2}),\n")

    def _header(self, parts: BlockParts, piece: PieceText, terminator: ir.Terminator) -> str:
        """A comment with the user's source lines that a piece comes from."""
        spans = [s for s in (*piece.spans(), terminator.span) if s is not None]
        lines = {(span.file, span.line): span.text.strip() for span in spans}
        name = self.origin[parts.function]
        quoted = [f"#   {line}: {text}" for (_, line), text in sorted(lines.items()) if text]
        return "\n".join([f"# {name}, block {parts.label}", *quoted])

    def _terminator(self, terminator: ir.Terminator, answer: ir.Branch | None, site: int) -> str:
        """The table's entry; where a jump or call leads to a head, it goes on by the head's `answer`."""
        number = self.numbers

        def place(label: str) -> str:
            return str(number[label]) if answer is None else branch(answer)

        def branch(to: ir.Branch) -> str:
            return f"_pcb.Branch({to.condition!r}, {number[to.true]}, {number[to.false]})"

        match terminator:
            case ir.Jump(target=target, turn=turn):
                return f"_pcb.Jump({place(target)}{', turn=True' if turn else ''})"
            case ir.Branch():
                return branch(terminator)
            case ir.Return():
                return "_pcb.Return()"
            case ir.Fault():
                return f"_pcb.Fault({site})"
            case ir.PushJump(target, back):
                return f"_pcb.PushJump({place(target)}, {number[back]}, {site})"
        raise TypeError(f"not a terminator: {terminator!r}")

    # -- the module ----------------------------------------------------------------------------------------------------

    def source(
        self,
        *,
        ops_module: str,
        parameters: Sequence[str],
        results: Sequence[str],
        types: Mapping[str, Type],
        storage: Mapping[str, str | None],
        faults: Sequence[FaultSite],
        shared: Mapping[str, Type | None],
        records: Sequence[str],
    ) -> str:
        """The whole generated module."""
        sites = "".join(f"{INDENT * 2}{self._fault(fault)},\n" for fault in faults)
        package, _, module = ops_module.rpartition(".")
        table = [
            f"{self.program.entry.name!r},",
            f"parameters={_tuple(parameters)},",
            f"results={_tuple(results)},",
            f"types={_types(types, records)},",
            f"storage={_dict(storage)},",
            f"shared={_tuple(tuple(shared))},",
            f"shared_types={_types(shared, records)},",
            f"faults=(\n{sites}{INDENT}),",
            f"blocks=(\n{''.join(self.blocks)}{INDENT}),",
        ]
        files = "".join(f"{alias} = _pcb.at({file!r})\n" for file, alias in self.files.items())
        return (
            f'"""{self.program.entry.name}, compiled by pcbatch: the pieces of its blocks, then their table."""\n\n'
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

    def _spans(self, spans: Sequence[Span | None]) -> str:
        return "".join(f"{self._span(span)}, " for span in spans).rstrip()

    def _span(self, span: Span | None) -> str:
        if span is None:
            return "None"
        alias = self.files.setdefault(span.file, "_at" if not self.files else f"_at{len(self.files)}")
        return f"{alias}({span.line}, {span.column}, {span.end_line}, {span.end_column})"


def _tuple(names: Sequence[object]) -> str:
    return f"({', '.join(repr(name) for name in names)}{',' if len(names) == 1 else ''})"


def _dict(entries: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key!r}: {value!r}" for key, value in entries.items()) + "}"


def _types(types: Mapping[str, Type | None], records: Sequence[str]) -> str:
    if not types:
        return "{}"
    return "_pcb.types(" + ", ".join([*records, *(f'{name}="{type_}"' for name, type_ in types.items())]) + ")"
