"""What a function does, as type inference sees it: runs of primitives as pieces, stores and calls, block by block."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pcbatch.errors import Change, CompileError, Diagnostic, InPlace, PrimitiveError, Span
from pcbatch.ir import program as ir
from pcbatch.ir import records
from pcbatch.ir.analysis.dataflow import live_after_each_op, liveness
from pcbatch.ir.called import in_users_words as called_in_users_words
from pcbatch.ir.called import is_of_call
from pcbatch.ir.code import Code, assign
from pcbatch.ir.machine import Piece
from pcbatch.ir.pseudo_builtins import STORED
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import Type, leaves
from pcbatch.ir.values import copied
from pcbatch.lowering.captures.captured import function_variables
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import PieceText, Statement, compile_piece, write_piece
from pcbatch.lowering.inference import complaints, unchanged
from pcbatch.lowering.inference.constants import Candidates, is_literal
from pcbatch.lowering.inference.looks import Looks
from pcbatch.lowering.inference.runs import Failure, Outcome, Run
from pcbatch.lowering.inference.static import Known, Static, is_static, plain
from pcbatch.lowering.inference.unchanged import Reaching, guarded, helpers
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.syntax import parse

ONE_BY_ONE = 3
"""So many statements of a run are tried to be written leniently one by one; then all that are left are."""
KNOWN = "_pcb_known"
"""The name by which a traced piece knows the function that looks for static values."""


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
        self.lenient: set[Span] = set()
        """The statements that run only if they are written leniently (`translate`)."""
        self.around = unchanged.Known()
        self.traced: dict[tuple[int, tuple[Known | None, ...]], Outcome | Failure] = {}

    def of(
        self, function: ir.Function, users: Mapping[str, str], wanted: frozenset[str], constants: Candidates
    ) -> list[tuple[ir.Block, list[Action]]]:
        """The function's blocks as actions."""
        if id(function) not in self.prepared:
            live = liveness(function)
            blocks = [
                (block, list(self._actions(function, users, block, live[block.label].end, wanted, constants)))
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
        constants: Candidates,
    ) -> Iterator[Action]:
        live_after = live_after_each_op(block, live_out)
        run: list[Straight] = []
        for index, op in enumerate(block.ops):
            if isinstance(op, Straight):
                run.append(op)
                if index + 1 == len(block.ops) or not isinstance(block.ops[index + 1], Straight):
                    yield index, self._run(function, users, block.label, run, live_after[index], wanted, constants)
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
        constants: Candidates,
    ) -> Run:
        spans = {name: op.span for op in ops for name in ir.writes(op)}
        writes = tuple(name for name in spans if name in live)
        variables = function_variables(function)
        name = f"{function.name}_{label}"
        write = partial(write_piece, name, ops, writes, variables, self.environment, function.name, _no_site)

        def written(lenient: Collection[Span | None]) -> PieceText:
            return write(is_lenient=lambda number: ops[number].span in lenient)

        return Run(function.name, users, written(self.lenient), spans, wanted, constants, written, function.made)

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
            value = parse(f"{STORED}({store.array}, {store.value}, {', '.join(texts)})", mode="eval").body
            code = assign(store.array, value)
            inputs = tuple(name for name in code.reads if name in function_variables(function))
            op = ir.Primitive((store.array,), inputs, code, store.span)
            live, nothing = frozenset((store.array,)), Candidates(frozenset(), {})
            self.part_stores[key] = store, op, self._run(function, users, label, [op], live, frozenset(), nothing)
        return self.part_stores[key][1:]

    # -- tracing -------------------------------------------------------------------------------------------------------

    def trace(self, run: Run, inputs: tuple[Known, ...], parameters: frozenset[str]) -> Outcome | Failure:
        """What the run gives for inputs of these types and values, or why it does not run.

        Values of static `parameters` and of constants are there while the piece runs; those of other variables only
        serve to find further values, since the compiled program keeps them as numbers of the lanes.
        """
        key = (id(run), inputs)
        if key not in self.traced:
            found = self._leniently(run, inputs, parameters)
            if isinstance(found, Failure):
                found = self._with_others(found, run, inputs, parameters)
                words = CompileError([_in_users_words(each, run.users, run.made) for each in found.error.diagnostics])
                found = replace(found, error=words)
            self.traced[key] = found
        return self.traced[key]

    def _with_others(
        self, failure: Failure, run: Run, inputs: tuple[Known, ...], parameters: frozenset[str]
    ) -> Failure:
        """The failure of a run, with those of statements that do not depend on the one that fails.

        So all that they ask for is granted at once, and the user is told of all of them; of those that ask for nothing
        only once it is known what methods do.
        """
        diagnostics, last, rest = [*failure.error.diagnostics], failure, run
        asked = [*failure.asked]
        while last.error.diagnostics and (span := last.error.diagnostics[0].span) is not None and not last.is_final:
            fewer = rest.without(span)
            if not fewer.text.statements or len(fewer.text.statements) == len(rest.text.statements):
                break
            rest, found = fewer, self._leniently(fewer, inputs, parameters)
            asked += found.asked
            if not isinstance(found, Failure):
                break
            diagnostics += found.error.diagnostics
            last = found
        if asked:
            wanting = (each for each in diagnostics if each.wants is not None and each.trait != "final")
            return replace(failure, error=CompileError(dict.fromkeys((*asked, *wanting))))
        return failure if last is failure else replace(failure, error=CompileError(diagnostics))

    def _leniently(self, run: Run, inputs: tuple[Known, ...], parameters: frozenset[str]) -> Outcome | Failure:
        """What the run gives if each statement that fails is written leniently; why it does not, if that does not help.

        So TensorFlow's own operators stay what they are where they do, and an index is checked where it must be.
        """
        spans = {each.span for each in run.text.statements if each.span is not None}
        before = lenient = spans & self.lenient
        found = self._trace(replace(run, text=run.written(lenient)), inputs, parameters)
        while isinstance(found, Failure):
            failed = found.place
            if failed is None or failed not in spans - lenient:
                return found
            wanted = lenient | {failed} if len(lenient - before) < ONE_BY_ONE else spans
            other = self._trace(replace(run, text=run.written(wanted)), inputs, parameters)
            while isinstance(other, Failure) and other.place in wanted - lenient and other.place != failed:
                wanted = wanted - {other.place}
                other = self._trace(replace(run, text=run.written(wanted)), inputs, parameters)
            if isinstance(other, Failure) and other.place == failed:
                return other
            lenient, found = wanted, other
        self.lenient |= lenient
        return found

    def _trace(self, run: Run, inputs: tuple[Known, ...], parameters: frozenset[str]) -> Outcome | Failure:
        """The first that runs: with all values that are known, with those of constants, with static parameters alone.

        It may be that only this value of a variable does not run, which has others too.
        """
        given = dict(zip(run.text.reads, inputs, strict=True))
        known_ones = ((name, known) for name, known in given.items() if isinstance(known, Static))
        every = {name: known if name in parameters else _own(known) for name, known in known_ones}
        fixed = {name: known for name, known in every.items() if name in parameters}
        constants = {
            name: known
            for name, known in every.items()
            if name in parameters or name in run.candidates.paths or is_literal(known.value)
        }
        failure: Failure | None = None
        found: dict[str, Static] = {}
        if run.sought and every != constants:
            first = self._types(run, given, every, found)
            if isinstance(first, Failure) and first.is_final:
                return first
        written = {name for each in run.text.statements for name in each.code.writes}
        if not written.isdisjoint(constants.keys() - fixed.keys()):  # Python would take them for the piece's own
            constants = fixed
        for bound in (constants, fixed) if constants != fixed else (fixed,):
            values = dict(found)
            outcome = self._types(run, given, bound, values if run.sought else None)
            if isinstance(outcome, Outcome):
                known = (values.get(n, type_) for n, type_ in zip(run.text.writes, outcome.known, strict=True))
                return replace(outcome, known=tuple(known), bound=frozenset(bound.keys() - parameters))
            if outcome.is_final:
                return outcome
            failure = failure or outcome
        assert failure is not None
        return failure

    def _types(
        self,
        run: Run,
        given: Mapping[str, Known],
        bound: Mapping[str, Static],
        found: dict[str, Static] | None = None,
    ) -> Outcome | Failure:
        """The types of the run's outputs under the values of `bound`; `found` takes the static values among them."""
        variables = frozenset((*run.text.reads, *(n for each in run.text.statements for n in each.code.writes)))
        reaching = Reaching(self.environment, run.function, variables, self.around)
        looks = Looks()
        reads = tuple(name for name in run.text.reads if name not in bound)
        statements = tuple(guarded(run.text.statements, reads, variables, self.environment, reaching, looks))
        values: dict[str, Any] = {
            **helpers(self.environment.backend, reaching),
            **looks.helpers(self.environment.backend),
            **{name: known.value for name, known in bound.items()},
        }
        noted: dict[str, Static] = {}
        if found is not None:
            values[KNOWN] = partial(self._note, run, noted)
            notes = (Statement(Code(f"{n} = {KNOWN}({n!r}, {n})"), run.spans[n]) for n in run.sought)
            statements = (*statements, *notes)
        types: list[Type] = []
        for name in reads:
            type_ = plain(given[name])
            if type_ is None:
                return Failure(CompileError([complaints.not_kept(name, given[name], run.place(name))]))
            types.append(type_)
        text = replace(run.text, reads=reads, statements=statements)
        piece = compile_piece(text, self.environment, run.function, given=values)
        shared = [self.environment.operand_types[name] for name in piece.shared]
        backend = self.environment.backend
        with backend.tracing_once():
            try:
                known = backend.abstract_eval(piece, types, shared)
                signature = Signature(types, shared, known)
                wrong = reaching.diagnostics(partial(self._is_the_same_again, piece, signature))
                if wrong:
                    return Failure(PrimitiveError(wrong), asked=looks.found)
            except CompileError as error:
                return Failure(error, self._sized(piece, types, shared), looks.found)
            if found is not None:
                found.update(noted)
            return Outcome(known, sized=self._sized(piece, types, shared), asked=looks.found)

    def _is_the_same_again(self, piece: Piece, signature: Signature) -> bool:
        """Whether a piece that changes something around it does the same when it is traced again."""
        backend = self.environment.backend
        first = backend.described(piece, signature)
        with backend.tracing_once({}):
            return first is not None and first == backend.described(piece, signature)

    def _sized(self, piece: Piece, types: Sequence[Type], shared: Sequence[Type]) -> frozenset[str]:
        """The variables of lanes on which shapes depend in a piece; only an int can be such, or several."""
        if not any(map(_holds_ints, types)):
            return frozenset()
        return self.environment.backend.sizes(piece, types, shared)

    def _note(self, run: Run, found: dict[str, Static], name: str, value: Any) -> Any:
        """`value`, noted in `found` if it is static; something of a type in place of what has none."""
        worthy = name in run.wanted or name in run.candidates.paths or is_literal(value)
        if not worthy or not is_static(value, self.environment.backend):
            return value
        found[name] = Static(value)
        return 0 if plain(found[name]) is None else value


def _own(known: Static) -> Static:
    """What is known, made anew if it is an object that a call may change."""
    return Static(copied(known.value)) if records.is_called(known.value) else known


def _holds_ints(type_: Type) -> bool:
    return any(leaf.dtype.startswith(("int", "uint")) for leaf in leaves(type_))


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


_WITHOUT_NAME = "what is called here changes an object that it is given"
_NAME_IT = (
    "a method changes its object where that has a name: write a loop in place of a comprehension, `for p in ps:` and "
    "`total += p.method(..)`, or assign the object first; have a helper return a new object"
)


def _in_users_words(diagnostic: Diagnostic, users: Mapping[str, str], made: Collection[str]) -> Diagnostic:
    """`diagnostic` with the user's names of variables in place of those of their webs; nobody knows those `made`."""

    def words(text: str) -> str:
        return re.sub(r"`(\w+)`", lambda found: f"`{users.get(found[1], found[1])}`", text)

    wants = diagnostic.wants
    if isinstance(wants, Change):
        if wants.names[0] in made:
            diagnostic = replace(diagnostic, message=_WITHOUT_NAME, help=_NAME_IT)
        wants = replace(wants, names=tuple(users.get(name, name) for name in wants.names))
    if isinstance(wants, InPlace) and is_of_call(wants.method):
        wants = replace(wants, method=called_in_users_words(wants.method, users))
    return replace(diagnostic, message=words(diagnostic.message), label=words(diagnostic.label), wants=wants)


def _no_site(number: int, status: LaneStatus, message: str) -> int:
    """Sites are numbered at emission; types do not depend on them."""
    return 0
