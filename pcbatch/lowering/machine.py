"""Stacks to the machine dialect: blocks get numbers, statements become pieces, and whatever may fail a fault site.

The lowering is naive on purpose, as that of calls is: every check has a site, every parameter is the lane's own, every
stack has its own pointer. The passes of `pcbatch.optimize.machine` take away what is not needed, each visibly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pcbatch.errors import Span
from pcbatch.ir import debugging, machine
from pcbatch.ir import program as ir
from pcbatch.ir.debugging import text_of
from pcbatch.ir.expressions import Input, call
from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.payload import Compute, Copy
from pcbatch.ir.types import TensorType, Type
from pcbatch.lowering.codegen.environment import OUT_OF_RANGE, Environment
from pcbatch.lowering.codegen.pieces import write_piece
from pcbatch.runtime.machine.state import DEFAULT_MAX_DEPTH

DEPTH_MESSAGE = f"RecursionError: more than max_depth calls deep ({DEFAULT_MAX_DEPTH} unless max_depth=.. says more)"
STEPS_MESSAGE = "more than max_steps loop turns and calls"


def lower_stacks(program: ir.Program, origin: Mapping[str, str], environment: Environment) -> machine.Program:
    """The machine program of a typed stack program.

    `origin` gives the user's function of each function, `environment` the meaning of names in each.
    """
    return _Lowering(program, origin, environment).program()


class _Lowering:
    def __init__(self, source: ir.Program, origin: Mapping[str, str], environment: Environment):
        self.source, self.origin, self.environment = source, origin, environment
        self.variables = {v.name: v for function in source.functions for v in function.variables}
        self.numbers = {block.label: number for number, block in enumerate(source.blocks())}
        self.taken = frozenset(self.variables) | frozenset(environment.operand_types)
        self.types: dict[str, Type] = {}
        self.faults: list[machine.FaultSite] = []
        self.record = self._record()

    def program(self) -> machine.Program:
        blocks: tuple[machine.Block, ...] = () if self.record is None else (self._recording(self.record),)
        blocks += tuple(self._block(function, block) for function in self.source.functions for block in function.blocks)
        storage = {
            name: variable.storage
            for name, variable in self.variables.items()
            if variable.storage not in (None, "temporary") and variable.type is not None
        }
        self._note_types(storage)
        entry, operands = self.source.entry, self.environment.operand_types
        return machine.Program(
            name=entry.name,
            parameters=entry.parameters,
            results=entry.results,
            types=self.types,
            storage={name: kind for name, kind in storage.items() if kind is not None},
            blocks=blocks,
            faults=tuple(self.faults),
            shared=tuple(operands),
            shared_types=operands,
            externs={function.name: function.externs for function in self.source.functions if function.externs},
        )

    def _site(self, span: Span | None, status: LaneStatus, message: str, arguments: tuple[str, ...] = ()) -> int:
        self.faults.append(machine.FaultSite(status, message, arguments, span))
        return len(self.faults) - 1

    # -- what `pcbatch.debug` records ----------------------------------------------------------------------------------

    def _record(self) -> str | None:
        """The variable of the record, in programs that have one; blocks then come behind one that empties it."""
        if all(text_of(op) is None for block in self.source.blocks() for op in block.ops):
            return None
        name, free = debugging.NAME, {each for function in self.source.functions for each in function.externs}
        while not free.union(self.taken).isdisjoint((name, *self._stored(name))):
            name += "_"
        self.variables[name] = ir.Variable(name, debugging.TYPE, "register")
        self.taken |= {name, *self._stored(name)}
        self.numbers = {label: number + 1 for label, number in self.numbers.items()}
        return name

    def _stored(self, record: str) -> tuple[str, str, str]:
        """The temporaries of where an entry goes, of where the count is, and of the count."""
        return f"{record}_place", f"{record}_head", f"{record}_count"

    def _recording(self, record: str) -> machine.Block:
        """The first block of a program with a record."""
        function = self.source.entry
        empty = ir.Primitive((record,), (), Compute(call(debugging.EMPTY)))
        (piece,) = self._piece(function, [empty], [], frozenset((record,)))
        return machine.Block("start", (piece,), machine.Jump(1), function=self.origin[function.name])

    def _entry(
        self,
        function: ir.Function,
        op: ir.Primitive | ir.Update,
        statements: Sequence[machine.Straight],
        pushes: Sequence[machine.Push],
        needed: frozenset[str],
    ) -> Iterator[machine.Piece | machine.Store]:
        """The statements up to `op`, which makes an entry, and the store of that."""
        text, record, (entry,) = text_of(op), self.record, op.outputs
        assert text is not None and record is not None
        names = self._stored(record)
        place, head, count = names
        self.types |= dict.fromkeys(names, TensorType("int32"))
        self.types[entry] = TensorType("int32", (debugging.WORDS,))
        code = Compute(call(debugging.STORED, Input(0)), (None, None, None))
        made = ir.Primitive(op.outputs, op.inputs, op.code, op.span)
        stored = ir.Primitive(names, (record,), code, op.span)
        yield from self._piece(function, [*statements, made, stored], pushes, needed | {entry, *names})
        site = self._site(op.span, LaneStatus.OK, debugging.message_of(text), (record,))
        yield machine.Store(record, (place,), entry, site)
        yield machine.Store(record, (head, head), count, site)

    # -- one block -----------------------------------------------------------------------------------------------------

    def _block(self, function: ir.Function, block: ir.Block) -> machine.Block:
        spans = [node.span for node in (*block.ops, block.terminator) if node.span is not None]
        body: list[machine.Piece | machine.Store] = []
        pushes: list[machine.Push] = []
        statements: list[machine.Straight] = []
        written: set[str] = set()
        for index, op in enumerate(block.ops):
            match op:
                case ir.Pop():
                    continue
                case ir.Primitive() | ir.Update() if text_of(op) is not None:
                    body += self._entry(function, op, statements, pushes, _needed_after(block, index + 1))
                    statements = []
                case ir.Primitive() | ir.Update():
                    statements.append(ir.Primitive(op.outputs, op.inputs, op.code, op.span))
                case ir.Enter() | ir.Exit():
                    statements.append(op)
                case ir.Push():
                    for name in op.outputs:
                        saved, keeping = self._saved(name, written, op)
                        pushes.append(machine.Push(name, saved))
                        statements += keeping
                    if not ir.is_identity(op):
                        statements.append(ir.Primitive(op.outputs, op.inputs, op.code, op.span))
                case ir.Store(array, indices, value, span):
                    body += self._piece(function, statements, pushes, _needed_after(block, index))
                    statements = []
                    body.append(machine.Store(array, indices, value, self._site(span, *OUT_OF_RANGE)))
                case _:
                    raise TypeError(f"not an op of the stack dialect: {op!r}")
            written |= set(ir.writes(op))
        body += self._piece(function, statements, pushes, _needed_after(block, len(block.ops)))
        return machine.Block(
            block.label,
            tuple(body),
            self._terminator(block.terminator),
            tuple(name for op in block.ops if isinstance(op, ir.Pop) for name in op.variables),
            tuple(pushes),
            self.origin[function.name],
            min(spans, default=None),
            self._steps_site(block.terminator),
            block.sync,
            function.cost,
        )

    def _saved(self, name: str, written: set[str], op: ir.Push) -> tuple[str | None, list[ir.Primitive]]:
        """Return the variable that a push of `name` saves, None for the old top, and the statement that keeps it."""
        if name not in written:
            return None, []
        if ir.is_identity(op):
            return name, []
        saved = f"{name}_saved"
        while saved in self.taken:
            saved += "_"
        type_ = self.variables[name].type
        assert type_ is not None, f"{name} has no type"
        self.types[saved] = type_
        return saved, [ir.Primitive((saved,), (name,), Copy(), op.span)]

    def _piece(
        self,
        function: ir.Function,
        ops: Sequence[machine.Straight],
        pushes: Sequence[machine.Push],
        needed: frozenset[str],
    ) -> Iterator[machine.Piece]:
        """The piece of these statements, none if there are none."""
        if not ops:
            return
        saved = {push.saved for push in pushes}
        outputs = dict.fromkeys(name for op in ops for name in ir.writes(op))
        writes = tuple(name for name in outputs if name in needed or name in saved or self._is_stored(name))
        sites: list[list[int]] = [[] for _ in ops]

        def site(number: int, status: LaneStatus, message: str) -> int:
            sites[number].append(self._site(ops[number].span, status, message))
            return sites[number][-1]

        text = write_piece("piece", ops, writes, self.environment, site)
        self._note_types((*writes, *text.reads, *outputs))
        yield machine.Piece(
            None,
            text.reads,
            writes,
            text.shared,
            tuple(number for each in sites for number in each),
            statements=tuple(machine.Statement(op, tuple(own)) for op, own in zip(ops, sites, strict=True)),
            scope=function.name,
        )

    def _terminator(self, terminator: ir.Terminator) -> machine.Terminator:
        number, span = self.numbers, terminator.span
        match terminator:
            case ir.Jump(target, turn):
                return machine.Jump(number[target], turn, span)
            case ir.Branch(condition, true, false):
                return machine.Branch(condition, number[true], number[false], span)
            case ir.Return():
                return machine.Return(span)
            case ir.Fault(message, arguments, kind):
                status = LaneStatus.ASSERTION if kind == "assert" else LaneStatus.RAISED
                return machine.Fault(self._site(span, status, message, arguments), span)
            case ir.PushJump(target, back):
                site = self._site(span, LaneStatus.MAX_DEPTH, DEPTH_MESSAGE)
                return machine.PushJump(number[target], number[back], site, span)
        raise TypeError(f"not a terminator: {terminator!r}")

    def _steps_site(self, terminator: ir.Terminator) -> int:
        match terminator:
            case ir.Jump(turn=True, span=span) | ir.PushJump(span=span):
                return self._site(span, LaneStatus.MAX_STEPS, STEPS_MESSAGE)
        return -1

    # -- variables -----------------------------------------------------------------------------------------------------

    def _is_stored(self, name: str) -> bool:
        variable = self.variables.get(name)
        return variable is not None and variable.storage != "temporary"

    def _note_types(self, names: Iterable[str]) -> None:
        """Take the types of `names` into the program; saved values have theirs there already."""
        for name in names:
            if name not in self.types and name in self.variables:
                type_ = self.variables[name].type
                if type_ is not None:  # what is never read has none
                    self.types[name] = type_


def _needed_after(block: ir.Block, index: int) -> frozenset[str]:
    """The variables that the block needs from a piece that ends before op `index`."""
    later = [name for op in block.ops[index:] for name in ir.reads(op)]
    return frozenset((*later, *ir.reads(block.terminator)))
