"""Type and shape inference by abstract evaluation over the call graph, to a fixed point (design section 4, "Types").

No types are written by hand: a piece is traced once for each signature of its inputs, by the backend. Variables start
unknown; an unknown operand gives an unknown result unevaluated. Each round recomputes every variable as the join of
all its definitions under the previous round's types, so that a type seen before widening (a weak int that becomes a
float) leaves no trace. The functions of a recursive cycle share one signature each; others are specialised per
signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pcbatch.diagnostics import CompileError, Diagnostic, Span, raise_all
from pcbatch.ir import program as ir
from pcbatch.ir.callgraph import call_graph, components
from pcbatch.ir.dataflow import live_after_each_op, liveness
from pcbatch.ir.joins import ConflictError, join
from pcbatch.ir.types import TensorType, Type
from pcbatch.lowering import complaints
from pcbatch.lowering.captures import function_variables
from pcbatch.lowering.environment import Environment
from pcbatch.lowering.instances import Binding, Instance, Signature, Typed, assemble, reachable
from pcbatch.lowering.pieces import compile_piece, write_piece
from pcbatch.lowering.translate import OPS
from pcbatch.runtime.status import LaneStatus
from pcbatch.runtime.table import Piece

MAX_ROUNDS = 100


def infer(program: ir.Program, environment: Environment, arguments: Signature) -> Typed:
    """The typed program for a call with one example of types `arguments`; raises every type fault found."""
    raise_all(
        complaints.reserved(OPS, f.span) for f in program.functions if OPS in {*function_variables(f), *f.externs}
    )
    root = _Inference(program, environment).instance(program.entry.name, arguments)
    raise_all(diagnostic for instance in reachable(root) for diagnostic in instance.diagnostics)
    return assemble(root)


@dataclass(frozen=True)
class _Run:
    """A maximal run of primitives in a block: its piece and the spans of its outputs' last assignments."""

    piece: Piece
    spans: Mapping[str, Span | None]


Action = tuple[int, _Run | ir.Store | ir.Call]
"""One thing that a block does, as inference sees it, with the index of its (last) op."""


class _Round:
    """The bindings of one instance in the making: the last round's are read, this round's are joined anew."""

    def __init__(self, instance: Instance, report: list[Diagnostic] | None):
        self.instance = instance
        self.new: dict[str, Binding] = {}
        self.report = report

    def type(self, name: str) -> Type | None:
        """The type to read now: the last round's, or this round's where the last knew nothing."""
        known = self.instance.type(name)
        return known if known is not None or name not in self.new else self.new[name].type

    def bind(self, name: str, type_: Type | None, span: Span | None) -> None:
        """Join `type_` into the variable; a conflict leaves it as it is, and is reported with both assignments."""
        known = self.new.setdefault(name, Binding(type_, span))
        try:
            joined = join(known.type, type_)
        except ConflictError as conflict:
            if self.report is not None and type_ is not None and known.type is not None:
                self.report.append(complaints.conflict(name, known, Binding(type_, span), str(conflict)))
            return
        if joined != known.type:
            self.new[name] = Binding(joined, span)


class _Inference:
    def __init__(self, program: ir.Program, environment: Environment):
        self.program = program
        self.environment = environment
        self.cycle_of = {name: cycle for cycle in components(call_graph(program)) for name in cycle}
        self.instances: dict[tuple[str, Signature], Instance] = {}
        self.prepared: dict[str, list[tuple[ir.Block, list[Action]]]] = {}
        self.traced: dict[tuple[int, Signature], tuple[Type, ...] | CompileError] = {}

    def instance(self, name: str, signature: Signature) -> Instance:
        """The instance of function `name` at `signature`, inferred together with the cycle that it belongs to."""
        if (name, signature) not in self.instances:
            members = {member: Instance(self.program.function(member)) for member in self.cycle_of[name]}
            members[name].signature = signature
            self._settle(members, name)
            self.instances[name, signature] = members[name]
        return self.instances[name, signature]

    # -- the fixed point -----------------------------------------------------------------------------------------------

    def _settle(self, members: dict[str, Instance], entry: str) -> None:
        """Rounds until no type changes, then one more that reports."""
        before: dict[str, dict[str, Binding]] = {}
        for count in range(MAX_ROUNDS):
            self._round(members, entry, report=False)
            now = {name: instance.bindings for name, instance in members.items()}
            changed = next(_changed(before, now), None)
            if changed is None:
                break
            if count + 1 == MAX_ROUNDS:
                members[entry].diagnostics.append(complaints.unsettled(*changed))
                return
            before = now
        self._round(members, entry, report=True)
        if not any(instance.diagnostics for instance in members.values()):
            for instance in members.values():
                instance.diagnostics += self._never_returning(instance)

    def _round(self, members: dict[str, Instance], entry: str, report: bool) -> None:
        """Recompute all bindings of a cycle under the present ones."""
        rounds = {name: _Round(each, each.diagnostics if report else None) for name, each in members.items()}
        function = members[entry].function
        for parameter, type_ in zip(function.parameters, members[entry].signature, strict=True):
            rounds[entry].bind(parameter, type_, function.span)
        for name in members:
            for block, actions in self._prepare(members[name].function):
                for index, action in actions:
                    self._act(rounds, rounds[name], (block.label, index), action)
                if report and isinstance(block.terminator, ir.Branch):
                    condition = rounds[name].type(block.terminator.condition)
                    if condition not in (None, TensorType("bool")):
                        members[name].diagnostics.append(complaints.condition(condition, block.terminator.span))
        for name, instance in members.items():
            instance.bindings = rounds[name].new

    def _act(self, rounds: dict[str, _Round], mine: _Round, place: tuple[str, int], action: object) -> None:
        match action:
            case _Run(piece=piece, spans=spans):
                inputs = tuple(mine.type(variable) for variable in piece.reads)
                if any(type_ is None for type_ in inputs):
                    return
                outcome = self._trace(piece, inputs)
                if isinstance(outcome, CompileError):
                    if mine.report is not None:
                        mine.report += outcome.diagnostics
                    return
                for variable, output_type in zip(piece.writes, outcome, strict=True):
                    mine.bind(variable, output_type, spans[variable])
            case ir.Store() as store:
                mine.bind(store.array, mine.type(store.array), store.span)
                if mine.report is not None:
                    mine.report += complaints.store(store, mine.type)
            case ir.Call(function=callee, arguments=arguments, outputs=outputs, span=span):
                types = tuple(mine.type(argument) for argument in arguments)
                if callee in rounds:
                    target = rounds[callee].instance
                    for parameter, given in zip(target.function.parameters, types, strict=True):
                        rounds[callee].bind(parameter, given, span)
                elif None in types:
                    return
                else:
                    target = self.instance(callee, types)
                mine.instance.calls[place] = target
                for output, result in zip(outputs, target.results, strict=True):
                    mine.bind(output, result, span)

    def _trace(self, piece: Piece, inputs: Signature) -> tuple[Type, ...] | CompileError:
        key = (id(piece), inputs)
        if key not in self.traced:
            shared = [self.environment.operand_types[name] for name in piece.shared]
            try:
                self.traced[key] = self.environment.backend.abstract_eval(piece, inputs, shared)  # type: ignore[arg-type]
            except CompileError as error:
                self.traced[key] = error
        return self.traced[key]

    def _never_returning(self, instance: Instance) -> Iterator[Diagnostic]:
        """That the instance never returns, where its results stayed unknown though nothing else is wrong with it."""
        if None in instance.results:
            unknown = (
                action.span
                for _, actions in self._prepare(instance.function)
                for _, action in actions
                if isinstance(action, ir.Call) and any(instance.type(output) is None for output in action.outputs)
            )
            yield complaints.never_returns(instance.function.name, next(unknown, instance.function.span))

    # -- what a function does, piece by piece --------------------------------------------------------------------------

    def _prepare(self, function: ir.Function) -> list[tuple[ir.Block, list[Action]]]:
        """The function's blocks as actions; made once."""
        if function.name not in self.prepared:
            live = liveness(function)
            self.prepared[function.name] = [
                (block, list(self._actions(function, block, live[block.label].end))) for block in function.blocks
            ]
        return self.prepared[function.name]

    def _actions(self, function: ir.Function, block: ir.Block, live_out: frozenset[str]) -> Iterator[Action]:
        live_after = live_after_each_op(block, live_out)
        run: list[ir.Primitive] = []
        for index, op in enumerate(block.ops):
            if isinstance(op, ir.Primitive):
                run.append(op)
                if index + 1 == len(block.ops) or not isinstance(block.ops[index + 1], ir.Primitive):
                    yield index, self._run(function, block.label, run, live_after[index])
                    run = []
            elif isinstance(op, (ir.Store, ir.Call)):
                yield index, op
            else:
                raise TypeError(f"not an op of the cfg dialect: {op!r}")

    def _run(self, function: ir.Function, label: str, ops: list[ir.Primitive], live: frozenset[str]) -> _Run:
        spans = {name: op.span for op in ops for name in op.outputs}
        writes = tuple(name for name in spans if name in live)
        variables = function_variables(function)
        name = f"{function.name}_{label}"
        text = write_piece(name, ops, writes, variables, self.environment, function.name, _no_site)
        return _Run(compile_piece(text, self.environment, function.name), spans)


def _changed(
    before: Mapping[str, Mapping[str, Binding]], now: Mapping[str, Mapping[str, Binding]]
) -> Iterator[tuple[str, Binding, Binding]]:
    """The variables whose types differ between two rounds, with both bindings."""
    for function, bindings in now.items():
        old = before.get(function, {})
        for name in {**old, **bindings}:
            first, second = old.get(name, Binding()), bindings.get(name, Binding())
            if first.type != second.type:
                yield name, first, second


def _no_site(span: Span | None, status: LaneStatus, message: str) -> int:
    """Sites are numbered at emission; types do not depend on them."""
    return 0
