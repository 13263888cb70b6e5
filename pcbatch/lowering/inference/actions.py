"""What a function does, as type inference sees it: runs of primitives as pieces, stores and calls, block by block."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pcbatch.errors import CompileError, Diagnostic, Span, raise_all
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import live_after_each_op, liveness
from pcbatch.ir.code import Code, assign
from pcbatch.ir.pseudo_builtins import STORED
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import function_variables
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import PieceText, Statement, compile_piece, write_piece
from pcbatch.lowering.inference import complaints
from pcbatch.lowering.inference.static import Known, Static, is_static, plain
from pcbatch.lowering.inference.unchanged import guarded, helpers

KNOWN = "_pcb_known"
"""The name by which a traced piece knows the function that looks for static values."""


@dataclass(frozen=True, eq=False)
class Run:
    """A maximal run of primitives in a block: its piece and the spans of its outputs' last assignments.

    `users` has the user's names of variables that have another. `wanted` are those of its outputs whose values should
    be found if they are static. `checked()` is the piece with checks of literal indices, for a piece that fails.
    """

    function: str
    users: Mapping[str, str]
    text: PieceText
    spans: Mapping[str, Span | None]
    wanted: tuple[str, ...]
    checked: Callable[[], PieceText]


Straight = ir.Primitive | ir.Enter | ir.Exit
"""The ops that a piece consists of."""

Action = tuple[int, Run | ir.Store | ir.Call]
"""One thing that a block does, with the index of its (last) op."""


class Actions:
    """The actions of the functions of one program; each function is read once."""

    def __init__(self, environment: Environment):
        self.environment = environment
        self.prepared: dict[int, tuple[ir.Function, list[tuple[ir.Block, list[Action]]]]] = {}
        self.part_stores: dict[tuple[int, tuple[str, ...]], tuple[ir.Store, ir.Primitive, Run]] = {}
        self.overruns: set[Span] = set()
        """The statements in which a literal index is out of range."""
        self.traced: dict[tuple[int, tuple[Known | None, ...]], tuple[Known, ...] | CompileError] = {}

    def of(
        self, function: ir.Function, users: Mapping[str, str], wanted: frozenset[str]
    ) -> list[tuple[ir.Block, list[Action]]]:
        """The function's blocks as actions."""
        if id(function) not in self.prepared:
            live = liveness(function)
            blocks = [
                (block, list(self._actions(function, users, block, live[block.label].end, wanted)))
                for block in function.blocks
            ]
            self.prepared[id(function)] = (function, blocks)
        return self.prepared[id(function)][1]

    def _actions(
        self,
        function: ir.Function,
        users: Mapping[str, str],
        block: ir.Block,
        live_out: frozenset[str],
        wanted: frozenset[str],
    ) -> Iterator[Action]:
        live_after = live_after_each_op(block, live_out)
        run: list[Straight] = []
        for index, op in enumerate(block.ops):
            if isinstance(op, Straight):
                run.append(op)
                if index + 1 == len(block.ops) or not isinstance(block.ops[index + 1], Straight):
                    yield index, self._run(function, users, block.label, run, live_after[index], wanted)
                    run = []
            elif isinstance(op, (ir.Store, ir.Call)):
                yield index, op
            else:
                raise TypeError(f"not an op of the cfg dialect: {op!r}")

    def _run(
        self,
        function: ir.Function,
        users: Mapping[str, str],
        label: str,
        ops: list[Straight],
        live: frozenset[str],
        wanted: frozenset[str],
    ) -> Run:
        spans = {name: op.span for op in ops for name in ir.writes(op)}
        writes = tuple(name for name in spans if name in live)
        variables = function_variables(function)
        name = f"{function.name}_{label}"
        write = partial(write_piece, name, ops, writes, variables, self.environment, function.name, _no_site)
        text = write(is_literal=lambda number: ops[number].span in self.environment.overruns)
        known = tuple(name for name in writes if name in wanted)
        return Run(function.name, users, text, spans, known, write)

    def part_store(
        self,
        function: ir.Function,
        users: Mapping[str, str],
        label: str,
        store: ir.Store,
        known: Mapping[str, Known | None],
    ) -> tuple[ir.Primitive, Run]:
        """`store` into a structure as a statement, indices that are `known` written out, and the run that it is."""
        texts = tuple(index_text(index, known[index], function) for index in store.indices)
        key = (id(store), texts)
        if key not in self.part_stores:
            value = ast.parse(f"{STORED}({store.array}, {store.value}, {', '.join(texts)})", mode="eval").body
            code = assign(store.array, value)
            inputs = tuple(name for name in code.reads if name in function_variables(function))
            op = ir.Primitive((store.array,), inputs, code, store.span)
            live = frozenset((store.array,))
            self.part_stores[key] = store, op, self._run(function, users, label, [op], live, frozenset())
        return self.part_stores[key][1:]

    # -- tracing -------------------------------------------------------------------------------------------------------

    def trace(
        self, run: Run, inputs: tuple[Known, ...], parameters: frozenset[str]
    ) -> tuple[Known, ...] | CompileError:
        """What the run gives for inputs of these types and values; the error where it does not run.

        Values of static `parameters` are there while the piece runs; those of other variables only serve to find
        further values, since the compiled program keeps them as numbers of the lanes.
        """
        key = (id(run), inputs)
        if key not in self.traced:
            try:
                self.traced[key] = self._trace(run, inputs, parameters)
            except CompileError as error:
                checked = self._overrunning(run, inputs, parameters)
                if checked is not None:
                    self.traced[key] = checked
                    return checked
                self.traced[key] = CompileError([_in_users_words(each, run.users) for each in error.diagnostics])
        return self.traced[key]

    def _overrunning(self, run: Run, inputs: tuple[Known, ...], parameters: frozenset[str]) -> tuple[Known, ...] | None:
        """What a run that fails gives if its literal indices are checked, lane by lane; None if that does not help."""
        checked = run.checked()
        if checked == run.text:
            return None
        try:
            found = self._trace(replace(run, text=checked), inputs, parameters)
        except CompileError:
            return None
        pairs = zip(run.text.statements, checked.statements, strict=True)
        self.overruns |= {new.span for old, new in pairs if old.code != new.code and new.span is not None}
        return found

    def _trace(self, run: Run, inputs: tuple[Known, ...], parameters: frozenset[str]) -> tuple[Known, ...]:
        given = dict(zip(run.text.reads, inputs, strict=True))
        every = {name: known for name, known in given.items() if isinstance(known, Static)}
        fixed = {name: known for name, known in every.items() if name in parameters}
        found: dict[str, Static] = {}
        types: tuple[Type, ...] | None = None
        if run.wanted:
            try:
                types = self._types(run, given, every, found)
            except CompileError:
                if every == fixed:
                    raise
                found.clear()  # it may be that only this value of a variable does not run, which has others too
        if types is None or (every != fixed and len(found) < len(run.text.writes)):
            types = self._types(run, given, fixed)
        return tuple(found.get(name, type_) for name, type_ in zip(run.text.writes, types, strict=True))

    def _types(
        self,
        run: Run,
        given: Mapping[str, Known],
        bound: Mapping[str, Static],
        found: dict[str, Static] | None = None,
    ) -> tuple[Type, ...]:
        """The types of the run's outputs under the values of `bound`; `found` takes the static values among them."""
        values: dict[str, Any] = {
            **helpers(self.environment.backend),
            **{name: known.value for name, known in bound.items()},
        }
        written = (name for each in run.text.statements for name in each.code.writes)
        statements = tuple(guarded(run.text.statements, frozenset((*run.text.reads, *written))))
        if found is not None:
            values[KNOWN] = partial(self._note, found)
            looks = (Statement(Code(f"{n} = {KNOWN}({n!r}, {n})"), run.spans[n]) for n in run.wanted)
            statements = (*statements, *looks)
        reads = tuple(name for name in run.text.reads if name not in bound)
        types = [plain(given[name]) for name in reads]
        for name, type_ in zip(reads, types, strict=True):
            if type_ is None:
                span = next((each.span for each in statements if name in each.code.reads), None)
                raise_all([complaints.not_kept(name, given[name], span)])
        piece = compile_piece(
            replace(run.text, reads=reads, statements=statements), self.environment, run.function, given=values
        )
        shared = [self.environment.operand_types[name] for name in piece.shared]
        return self.environment.backend.abstract_eval(piece, types, shared)  # type: ignore[arg-type]

    def _note(self, found: dict[str, Static], name: str, value: Any) -> Any:
        """`value`, noted in `found` if it is static; something of a type in place of what has none."""
        if not is_static(value, self.environment.backend):
            return value
        found[name] = Static(value)
        return 0 if plain(found[name]) is None else value


def index_text(name: str, known: Known | None, function: ir.Function) -> str:
    """How an index of a store into a structure is written: as what it is known to be, else as its variable.

    It is known as a static value, or by the way it is assigned: a number, or something from around the function.
    """
    if isinstance(known, Static) and isinstance(known.value, int | str):
        return repr(known.value)
    makers = [op for block in function.blocks for op in block.ops if name in ir.writes(op)]
    if len(makers) == 1 and name not in function.parameters and isinstance(makers[0], ir.Primitive):
        code = ir.statement(makers[0])
        if code.value is not None and not set(code.reads) & function_variables(function):
            return ast.unparse(code.value)
    return name


def _in_users_words(diagnostic: Diagnostic, users: Mapping[str, str]) -> Diagnostic:
    """`diagnostic` with the user's names of variables in place of those of their webs."""

    def words(text: str) -> str:
        return re.sub(r"`(\w+)`", lambda found: f"`{users.get(found[1], found[1])}`", text)

    return replace(diagnostic, message=words(diagnostic.message), label=words(diagnostic.label))


def _no_site(number: int, status: LaneStatus, message: str) -> int:
    """Sites are numbered at emission; types do not depend on them."""
    return 0
