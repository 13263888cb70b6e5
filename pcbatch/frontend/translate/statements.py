"""Statements into basic blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Span
from pcbatch.frontend.check.refusals import gives_back
from pcbatch.frontend.source.changes import called_part, root_of
from pcbatch.frontend.source.hints import is_debug
from pcbatch.frontend.source.iteration import range_arguments, wrapper
from pcbatch.frontend.source.mapping import is_map
from pcbatch.frontend.source.nested import definition
from pcbatch.frontend.source.nodes import assigned_in, call, constant, dotted, load, unparse
from pcbatch.frontend.translate import changes
from pcbatch.frontend.translate.assignments import Assignments
from pcbatch.frontend.translate.comprehensions import as_chain, as_list
from pcbatch.frontend.translate.contexts import emit_with
from pcbatch.frontend.translate.independent import has_calls, obstacle
from pcbatch.frontend.translate.mapped import as_map
from pcbatch.frontend.translate.matching import Match
from pcbatch.frontend.translate.messages import template
from pcbatch.frontend.translate.ranges import RangeLoop
from pcbatch.frontend.translate.reductions import as_loop
from pcbatch.frontend.translate.sequences import SequenceLoop
from pcbatch.frontend.translate.unrolling import MOST_TURNS
from pcbatch.frontend.translate.written_out import WrittenOut
from pcbatch.ir.debugging import ENTRY, number_of
from pcbatch.ir.program import Fault, FaultKind, Return
from pcbatch.ir.pseudo_builtins import UNBOUND


@dataclass(frozen=True)
class Loop:
    """Where `break` and `continue` of the innermost loop go; `turns` if `continue` is a turn of it."""

    leave: str
    again: str
    turns: bool


class Statements(Assignments):
    """Translates the statements of one function; see `Expressions` for its arguments."""

    loops: tuple[Loop, ...] = ()
    unbound: Mapping[str, Span] = MappingProxyType({})
    """Variables that are assigned behind a `for` loop only if that makes a turn, and where they are read then."""
    left_out: frozenset[str] = frozenset()
    """Those of them of which it is not known yet whether the loop makes one."""

    def function(self) -> None:
        """Translate the whole body."""
        body = self.source.tree.body
        self.body(body)
        if self.draft.current is not None:
            self.report(
                Diagnostic(
                    "PCB203",
                    f"`{self.source.qualname.rpartition('.')[2]}` can end without `return`",
                    self.span(body[-1]),
                    "after this statement the function ends",
                    gives_back(self.source.tree, self.source.name) or "return a value on every path",
                )
            )
            self.draft.end(Return(self.span(body[-1])))

    def body(self, statements: Sequence[Any]) -> None:
        """Translate statements up to the first that cannot be reached."""
        for statement in statements:
            if self.draft.current is None:
                return
            self.statement(statement)

    def statement(self, node: Any) -> None:
        """Translate one statement."""
        function = definition(node)
        if function is not None and function[0] in self.source.functions:
            for name, value in self.source.functions[function[0]].defaults.items():
                self.variables.add(name)
                self.assign(name, self.rewrite(value), self.span(node))
            return
        match node:
            case gast.FunctionDef():
                pass  # reported
            case gast.Expr(value=gast.Call() as call) if is_debug(call, self.source.locals, self.source.scope):
                self._debug(call)
            case gast.Expr(value=gast.Call() as called):  # the syntax check lets nothing else pass without a value
                if called_part(called) is not None and root_of(called.func) in self.source.locals:
                    changes.call_method(self, called)
                else:
                    self._sync(self.span(node))
            case gast.Delete(targets=targets):
                for target in targets:
                    changes.delete(self, target, self.span(node))
            case gast.Expr() | gast.Pass():
                pass
            case gast.Assign(targets=targets, value=value):
                self._assign(targets, value, self.span(node))
            case gast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._assign([target], value, self.span(node))
            case gast.AugAssign():
                self._augmented(node)
            case gast.Return(value=value):
                self._return(value, self.span(node))
            case gast.If():
                self._if(node)
            case gast.While():
                self._while(node)
            case gast.For():
                self._for(node)
            case gast.Match():
                Match(self, node, self.body).translate()
            case gast.With():
                emit_with(self, node, self.statement)
            case gast.Break():
                self.jump(self.loops[-1].leave, self.span(node))
            case gast.Continue():
                self.jump(self.loops[-1].again, self.span(node), turn=self.loops[-1].turns)
            case gast.Assert(test=test, msg=message):
                self._assert(test, message, self.span(node))
            case gast.Raise(exc=error):
                self._raise(error, self.span(node))
            case _:
                raise TypeError(f"the syntax check lets pass a statement that is not translated: {node!r}")

    def unrolled(self, node: Any) -> Any:
        """The list that a comprehension with batched calls gives; of `any(..)` and `all(..)` of one, a chain."""
        if self.effects.is_loop(node):
            return as_loop(self, node)
        if is_map(node):
            return as_map(self, node)
        if isinstance(node, gast.Call):
            return self.rewrite(as_chain(self, node.args[0], stops_if_true=node.func.id == "any"))
        return as_list(self, node)

    def take(self, node: Any) -> str:
        """Emit `xs.pop()`; gives the variable with its value."""
        return changes.take(self, node)

    def _sync(self, span: Span) -> None:
        """`pcbatch.sync()`: a block of its own begins, at which lanes wait."""
        here = self.draft.label()
        self.jump(here, span)
        self.draft.open(here, sync=True)

    def _debug(self, call: Any) -> None:
        """`pcbatch.debug(text, x, ..)`: an entry of its values, evaluated from left to right; there the block ends."""
        text, *values = call.args
        shown = [load(self.operand(value, values[place + 1 :]), call) for place, value in enumerate(values)]
        number = gast.Constant(number_of(text.value, self.span(call)), None)
        entry = gast.Call(load(ENTRY, call), [number, gast.Constant(text.value, None), *shown], [])
        self.assign(self.temporary(), gast.copy_location(entry, call), self.span(call))
        behind = self.draft.label()
        self.jump(behind, self.span(call))
        self.draft.open(behind)

    # -- control flow --------------------------------------------------------------------------------------------------

    def _return(self, value: Any, span: Span) -> None:
        if isinstance(value, gast.IfExp) and self.effects.branches(value):
            arms = [(self.draft.label(), value.body), (self.draft.label(), value.orelse)]
            self.condition(value.test, arms[0][0], arms[1][0])
            for label, arm in arms:
                self.draft.open(label)
                self._return(arm, span)
            return
        self.into(value, self.result, span)
        self.draft.end(Return(span))

    def _if(self, node: Any) -> None:
        then, otherwise, join = self.draft.label(), self.draft.label(), self.draft.label()
        self.condition(node.test, then, otherwise if node.orelse else join)
        for label, statements in ((then, node.body), (otherwise, node.orelse)):
            self.draft.open(label)
            self.body(statements)
            self.jump(join, self.span(node))
        self.draft.open(join)

    def _while(self, node: Any) -> None:
        span = self.span(node)
        head, body, orelse, leave = (self.draft.label() for _ in range(4))
        self.jump(head, span)
        self.draft.open(head)
        self.condition(node.test, body, orelse)
        self.draft.open(body)
        self._loop_body(node.body, Loop(leave, head, turns=True))
        self.jump(head, span, turn=True)
        self._orelse(node, orelse, leave)

    def _for(self, node: Any) -> None:
        span = self.span(node)
        if self.unrolling.wants(node, self.source.file) and self._written_out(node):
            return
        if self.unrolling.forking and has_calls(node, self.effects.is_batched) and self._forks(node):
            return
        head, body, again, orelse, leave = (self.draft.label() for _ in range(5))
        found = range_arguments(node.iter, self.is_builtin)
        loop = RangeLoop(self, node, *found) if found is not None else SequenceLoop(self, node)
        left_out = {name: self.unbound[name] for name in sorted(assigned_in([node]) & self.unbound.keys())}
        loop.start(is_tested=bool(left_out))
        if left_out:
            self._first_turn(loop, node, left_out, body, orelse)
        else:
            if isinstance(loop, SequenceLoop) and self._may_be_empty(node.iter):
                self.condition(loop.has_elements(), head, orelse)
            else:
                self.jump(head, span)
            self.draft.open(head)
            loop.test(body, orelse)
        self.draft.open(body)
        loop.begin_turn()
        self._loop_body(node.body, Loop(leave, again, turns=False))
        self.jump(again, span)
        self.draft.open(again)
        loop.advance()
        self.jump(head, span, turn=True)
        if left_out:
            self.draft.open(head)
            loop.test(body, orelse)
        self._orelse(node, orelse, leave)

    def _first_turn(
        self, loop: RangeLoop | SequenceLoop, node: Any, left_out: Mapping[str, Span], body: str, orelse: str
    ) -> None:
        """Begin the first turn without a test where there is one; elsewhere the variables `left_out` have no value.

        Whether there is one is known with the types. Where it is not, what reads them is refused then.
        """
        empty = self.draft.label()
        self.condition(loop.has_turns(), body, empty)
        self.draft.open(empty)
        header = f"for {unparse(node.target)} in {unparse(node.iter)}:"
        self.left_out |= left_out.keys() if self.draft.current is not None else frozenset()
        for name, place in left_out.items():
            self.assign(name, call(UNBOUND, constant(name), constant(header)), place)
        self.jump(orelse, self.span(node))

    def _forks(self, node: Any) -> bool:
        """Write a loop out whose turns make calls that need nothing of each other; noted if it stays a loop."""
        span, why = self.span(node), obstacle(node, self.effects.is_batched)
        if why is None and self._written_out(node):
            self.unrolling.for_calls.append(span)
            return True
        if why is None:
            count = WrittenOut(self, node).known()
            many = f"it makes {count} turns, and {MOST_TURNS} in all are written out at most"
            why = "lanes may make different numbers of turns" if count is None else many
        self.unrolling.apart[span] = why
        return False

    def _written_out(self, node: Any) -> bool:
        """Write a loop out, turn by turn, if it is known how many there are and they are not too many."""
        span, loop = self.span(node), WrittenOut(self, node)
        count = loop.known()
        if count is None:
            if not self.unrolling.is_known(span, self.turns):
                self.unrolling.ask(node, span.file)
                loop.start(None)
            return False
        if self.unrolling.is_long(node, span, count * self.copies):
            return False
        leave, around = self.draft.label(), (self.turns, self.copies)
        loop.start(count)
        self.copies *= max(count, 1)
        for number in range(count):
            again, following = self.draft.label(), self.draft.label()
            self.turns = (*around[0], number)
            self._loop_body(loop.turn(number), Loop(leave, again, turns=False))
            self.jump(again, span)
            self.draft.open(again)
            self.jump(following, span, turn=True)
            self.draft.open(following)
        self.turns, self.copies = around
        loop.end()
        self.body(node.orelse)
        self.jump(leave, span)
        self.draft.open(leave)
        return True

    def _may_be_empty(self, node: Any) -> bool:
        """Whether a loop goes over the rest of the arguments, or a part of it, of which there may be none."""
        if wrapper(node, self.is_builtin) is not None:
            return any(map(self._may_be_empty, node.args))
        if isinstance(node, gast.Subscript) and isinstance(node.slice, gast.Slice):
            node = node.value
        rest = {parameter.name for parameter in self.source.parameters if parameter.kind == "rest"}
        return isinstance(node, gast.Name) and node.id in rest

    def _loop_body(self, statements: Sequence[Any], loop: Loop) -> None:
        self.loops += (loop,)
        self.body(statements)
        self.loops = self.loops[:-1]

    def _orelse(self, node: Any, orelse: str, leave: str) -> None:
        """The loop's `else`, which runs when its condition fails, and the block behind the loop."""
        self.draft.open(orelse)
        self.body(node.orelse)
        self.jump(leave, self.span(node))
        self.draft.open(leave)

    # -- faults --------------------------------------------------------------------------------------------------------

    def _assert(self, test: Any, message: Any, span: Span) -> None:
        passed, failed = self.draft.label(), self.draft.label()
        self.condition(test, passed, failed)
        self.draft.open(failed)
        self._fault("AssertionError", message, "assert", span)
        self.draft.open(passed)

    def _raise(self, error: Any, span: Span) -> None:
        arguments: list[Any] = []
        if isinstance(error, gast.Call):
            error, arguments = error.func, error.args
        name = (dotted(error) or "").rpartition(".")[2]
        self._fault(name, arguments[0] if arguments else None, "raise", span)

    def _fault(self, error: str, message: Any, kind: FaultKind, span: Span) -> None:
        if self.draft.current is None:
            return
        text, fields = template(error, message)
        names = tuple(self.operand(field, fields[at + 1 :]) for at, field in enumerate(fields))
        places = {name: self.span(field) for name, field in zip(names, fields, strict=True)}
        self.draft.end(Fault(text, names, kind, span), places)
