"""Statements into basic blocks."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Span
from pcbatch.frontend.check.refusals import gives_back
from pcbatch.frontend.source.changes import called_part, root_of, steps_of
from pcbatch.frontend.source.hints import is_debug
from pcbatch.frontend.source.iteration import range_arguments
from pcbatch.frontend.source.mapping import is_map
from pcbatch.frontend.source.nested import definition
from pcbatch.frontend.source.nodes import assigned_in, call, constant, dotted, load, store, target_leaves, unparse
from pcbatch.frontend.source.scope import Origin
from pcbatch.frontend.translate import changes
from pcbatch.frontend.translate.comprehensions import as_chain, as_list
from pcbatch.frontend.translate.contexts import emit_with
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.independent import has_calls, obstacle
from pcbatch.frontend.translate.mapped import as_map
from pcbatch.frontend.translate.matching import Match
from pcbatch.frontend.translate.messages import template
from pcbatch.frontend.translate.ranges import RangeLoop, literal
from pcbatch.frontend.translate.reductions import as_loop
from pcbatch.frontend.translate.sequences import SequenceLoop
from pcbatch.frontend.translate.stores import are_rows, row_by_row, store_indices, stored_element
from pcbatch.frontend.translate.unrolling import MOST_TURNS
from pcbatch.frontend.translate.written_out import WrittenOut
from pcbatch.ir.debugging import ENTRY, number_of
from pcbatch.ir.program import Fault, FaultKind, Return, Store
from pcbatch.ir.pseudo_builtins import ROW, UNBOUND

PARTS = gast.Subscript | gast.Attribute
"""Targets that are parts of variables."""


@dataclass(frozen=True)
class Loop:
    """Where `break` and `continue` of the innermost loop go; `turns` if `continue` is a turn of it."""

    leave: str
    again: str
    turns: bool


class Statements(Expressions):
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

    # -- assignments ---------------------------------------------------------------------------------------------------

    def _assign(self, targets: Sequence[Any], value: Any, span: Span) -> None:
        if len(targets) == 1 and are_rows(targets[0], value):
            for target, part in row_by_row(self, targets[0], value):
                self._assign([target], part, span)
        elif any(isinstance(each, PARTS) for target in targets for each in target_leaves(target)):
            self._assign_with_stores(targets, value, span)
        elif len(targets) == 1 and isinstance(targets[0], gast.Name):
            self.into(value, targets[0].id, span)
        else:
            self.primitive(targets, self.rewrite(value), span)

    def _assign_with_stores(self, targets: Sequence[Any], value: Any, span: Span) -> None:
        """Values first, then the targets from left to right, as Python does."""
        if len(targets) == 1 and isinstance(targets[0], PARTS):
            later = [step.slice for step in steps_of(targets[0]) if isinstance(step, gast.Subscript)]
            self._store(targets[0], self.operand(self._element(targets[0], value), later), span)
            return
        whole = self.operand(value, targets) if len(targets) > 1 else None
        for target in targets:
            source = value if whole is None else load(whole, value)
            for leaf, name in zip(list(target_leaves(target)), self._spread(target, source, span), strict=True):
                if isinstance(leaf, PARTS):
                    self._store(leaf, name, span)
                else:
                    self.assign(leaf.id, load(name, value), span)

    def _element(self, target: Any, value: Any) -> Any:
        """`value`, which may go into an array: what is written as a tuple or a list is then an array, too."""
        match target, value:
            case gast.Subscript(value=gast.Name(id=name)), gast.Tuple() | gast.List():
                if not self._is_named(target) and name in self.variables:
                    return gast.copy_location(call(ROW, value, load(name, target.value)), value)
        return value

    def _spread(self, target: Any, value: Any, span: Span) -> list[str]:
        """Variables for the values that the leaves of `target` get."""
        leaves = list(target_leaves(target))
        if leaves == [target]:
            return [self.operand(value)]
        names = {id(leaf): self.temporary() for leaf in leaves}

        def renamed(part: Any) -> Any:
            if id(part) in names:
                return store(names[id(part)])
            return gast.Tuple([renamed(each) for each in part.elts], gast.Store())

        self.primitive([renamed(target)], self.rewrite(value), span)
        return [names[id(leaf)] for leaf in leaves]

    def _store(self, target: Any, value: str, span: Span) -> None:
        """`array[i, j] = value`, `part.name = value`."""
        target = self._settled_target(target)
        names = [] if self._is_named(target) else self._indices(target)
        self._emit_change(target, names, value, span)

    def _settled_target(self, target: Any, later: Sequence[Any] = ()) -> Any:
        """`target`, whose part may be read again."""
        if isinstance(target.value, gast.Name):
            return target
        inside = [target.slice, *later] if isinstance(target, gast.Subscript) else later
        settled = copy.copy(target)
        settled.value = changes.readable(self, target.value, inside)
        return settled

    def _indices(self, target: Any, later: Sequence[Any] = ()) -> list[Any]:
        """The indices of an element store, which may be read again: variables; in a structure also literals."""
        indices = store_indices(target)
        is_inside = not isinstance(target.value, gast.Name)
        return [
            index
            if is_inside and literal(index) is not None
            else load(self.operand(index, [*indices[at + 1 :], *later]), index)
            for at, index in enumerate(indices)
        ]

    def _is_named(self, target: Any) -> bool:
        """Whether it is an attribute, or an entry by a key that is a text."""
        return isinstance(target, gast.Attribute) or self._is_key(target.slice)

    def _is_key(self, index: Any) -> bool:
        """Whether an index is a text, or the name of one from around the function."""
        match index:
            case gast.Constant(value=value):
                return isinstance(value, str)
            case gast.Name(id=name) if name not in self.source.locals:
                return self.source.scope.origin(name) == Origin("builtins.str")
        return False

    def _emit_change(self, target: Any, indices: Sequence[Any], value: str, span: Span) -> None:
        """Emit `target = value` for a target with a readable part."""
        match target:
            case gast.Attribute(value=part, attr=name):
                changes.assign_field(self, _loaded(part), name, value, span)
            case gast.Subscript(value=part, slice=key) if self._is_key(key):
                changes.assign_entry(self, _loaded(part), key, value, span)
            case gast.Subscript(value=gast.Name()):
                self._emit_store(target, [index.id for index in indices], value, span)
            case gast.Subscript(value=part):
                changes.assign_element(self, part, indices, value, span)

    def _emit_store(self, target: Any, indices: Sequence[str], value: str, span: Span) -> None:
        array = target.value.id
        if array not in self.source.locals or array in self.source.captured:
            self.report(
                Diagnostic(
                    "PCB204",
                    f"an element of `{array}` is assigned, which is not a local variable",
                    self.span(target.value),
                    "this belongs to another scope",
                    f"pass `{array}` as an argument, or copy it first: `own = tf.identity({array})`; return the result",
                )
            )
        places = {value: span, **{name: self.span(target.slice) for name in indices}, array: self.span(target.value)}
        self.draft.emit(Store(array, tuple(indices), value, span), places)

    def _augmented(self, node: Any) -> None:
        target, span = node.target, self.span(node)
        if isinstance(target, gast.Name):
            method = self._method_in_place(node)
            if method is not None:
                changes.augment(self, load(target.id, target), method, node.value, span)
                return
            value = gast.copy_location(gast.BinOp(load(target.id, target), node.op, node.value), node)
            self.into(value, target.id, span)
            return
        target = self._settled_target(target, [node.value])
        names = [] if self._is_named(target) else self._indices(target, [node.value])
        old = _read(target) if self._is_named(target) else stored_element(target, names)
        method = self._method_in_place(node)
        if method is not None:
            changes.augment(self, old, method, node.value, span)
            return
        value = gast.copy_location(gast.BinOp(old, node.op, node.value), node)
        self._emit_change(target, names, self.operand(value), span)

    def _method_in_place(self, node: Any) -> str | None:
        """The method that changes the target of an augmented assignment, if it is known to be a list or the like."""
        method, span = changes.IN_PLACE.get(type(node.op)), self.span(node)
        if method is None or (span, method) in self.unrolling.in_place:
            return method
        if isinstance(node.op, gast.Add) and isinstance(node.value, gast.List | gast.ListComp):
            return method
        self.unrolling.augmented[span] = method
        return None

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
                self.condition(loop.has_turns(), head, orelse)
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
        """Whether a loop goes over the rest of the arguments, of which there may be none."""
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


def _loaded(part: Any) -> Any:
    return load(part.id, part) if isinstance(part, gast.Name) else part


def _read(target: Any) -> Any:
    """The expression that reads what `target`, whose part is readable, stores into."""
    found = copy.copy(target)
    found.value, found.ctx = _loaded(target.value), gast.Load()
    return found
