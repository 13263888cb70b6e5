"""`with` statements: context managers of libraries, which are entered in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from pcbatch.ir import program as ir
from pcbatch.ir.expressions import resolved
from pcbatch.ir.payload import Compute, Pattern
from pcbatch.ir.types import TensorType
from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.reading.builtins import Builtins
from pcbatch.reading.core import RefusedError
from pcbatch.reading.described import a
from pcbatch.reading.operations import (
    Named,
    ObjectOperation,
    Operation,
    expressions_of,
    held_in,
    library,
    method_of_held,
)
from pcbatch.reading.templates import Template
from pcbatch.reading.values import NONE, Bound, Host, Lane, Value


class Contexts(Builtins):
    """`with` statements."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._entered_at: dict[str, tuple[Any, Any, int]] = {}
        """Results of context managers that no lane can keep, with the block, and its number of ops before."""

    def visit_With(self, node: Any) -> None:
        value = self._with(node.items, node)
        if value is not None:
            self.returned(value)

    def _with(self, items: Sequence[Any], node: Any) -> Value | None:
        """Interpret a `with` statement: return the value of the `return` at its end, if there is one."""
        if not items:
            return self._inside(node)
        item, *rest = items
        operation, arguments, keywords = self._manager(item.context_expr)
        if self.connected is None or self.connected_in is not self.emitter.current:
            self.connected, self.connected_in = {}, self.emitter.current
        manager = self.manager_of(operation, arguments, keywords, item.context_expr)
        self.contexts.append(manager)
        try:
            with self.symbols.entered(manager) as found:
                self._entered(operation, arguments, keywords, item, found)
                value = self._with(rest, node)
        finally:
            self.contexts.pop()
        self.emitter.append(ir.Exit(self.span(node)))
        return value

    def _inside(self, node: Any) -> Value | None:
        """Interpret what stands in a `with` statement: it is one piece with it, which is left before it returns."""
        block = self.emitter.current
        for statement in node.body:
            if isinstance(statement, gast.Return) and statement is node.body[-1]:
                return NONE if statement.value is None else self.expression(statement.value)
            self.statements([statement])
            if self.emitter.current is not block:
                raise self.refusal(
                    "PCB107",
                    "control flow inside of `with`",
                    "keep assignments in the block, and decide after it",
                    node=statement,
                    label="this leaves the block, or branches in it",
                )
        return None

    def _no_manager(self, node: Any) -> RefusedError:
        return self.refusal(
            "PCB107",
            "this is no context manager of a library's",
            "write the call that makes it: `with tf.GradientTape() as tape:`",
            node=node,
            label="entered here",
        )

    def manager_of(self, operation: Operation, arguments: Sequence[Any], keywords: dict[str, Any], node: Any) -> Any:
        """The context manager that a call gives."""
        template, _ = self.tried(operation, arguments, keywords, is_manager=True)
        if not hasattr(template.value, "__enter__"):
            raise self._no_manager(node)
        return template.value

    def _manager(self, node: Any) -> tuple[Any, list[Any], dict[str, Any]]:
        """The call that makes a context manager."""
        if not isinstance(node, gast.Call):
            raise self._no_manager(node)
        function = self.expression(node.func)
        arguments = [self.pattern(each) for each in self.evaluated(node.args)]
        keywords = {name: self.pattern(each) for name, each in self._keywords(node).items()}
        match function:
            case Bound(str() as name, Host(place=Place(kind="held")) as held):  # `with tape.stop_recording():`
                return method_of_held(name), [self.bound(held), *arguments], keywords
            case Host(value) if callable(value):
                pass
            case _:
                raise self._no_manager(node)
        text = self.bound(function).text
        return library(function.value, text, None, is_steady=False), arguments, keywords

    def _entered(
        self, operation: Any, arguments: Sequence[Any], keywords: dict[str, Any], item: Any, found: Any
    ) -> None:
        """Write where a context manager is entered, and bind what it gives."""
        made = operation.made(*expressions_of(operation, arguments, keywords))
        known = [each.text for pattern in (*arguments, *keywords.values()) for each in held_in(pattern)]
        code, inputs = resolved(made, self.types.keys() | known)
        target = item.optional_vars
        if target is None:
            self.emitter.append(ir.Enter((), inputs, Compute(code), self.span(item.context_expr)))
            return
        self._results: list[Any] = []
        template = self.template(found)
        lanes_of: list[Lane] = []
        held: dict[str, Any] = {}
        names: list[str] = []
        pattern = self._given(template, target.id if isinstance(target, gast.Name) else "", names, lanes_of, held)
        assert self.connected is not None
        self.connected |= {lane.name: each for lane, each in zip(lanes_of, self._results, strict=True)}
        block = self.emitter.current
        assert block is not None
        self._entered_at |= {name: (each, block, len(block.ops)) for name, each in held.items()}
        self.emitter.append(ir.Enter(tuple(names), inputs, Compute(code, pattern), self.span(item.context_expr)))
        values = iter([Host(each, Place("held", None, name, name)) for name, each in held.items()])
        self.store(target, self.built(template, iter(lanes_of), values))

    def bound(self, value: Host) -> Named:
        found = super().bound(value)
        if isinstance(found, ObjectOperation):
            known, block, start = self._entered_at[found.text]
            is_here = self.emitter.current is block and known is found.value
            if not is_here or any(isinstance(op, ir.Call | ir.Store) for op in block.ops[start:]):
                raise self.refusal(
                    "PCB404",
                    f"`{found.text}` is {a(type(found.value).__name__)}, which a lane cannot keep",
                    "use it before the next branch, loop, call or store: `slope = tape.gradient(y, x)`",
                    label="a branch, a loop, a call or a store stands before this",
                )
        return found

    def _given(
        self, template: Template, hint: str, names: list[str], lanes: list[Lane], held: dict[str, Any]
    ) -> Pattern | None:
        """Return the pattern of a context manager's result, and note the names of its arrays and of its objects."""
        if template.type is not None:
            assert isinstance(template.type, TensorType)
            lanes.append(Lane(self.emitter.fresh(template.type, hint), template.type))
            names.append(lanes[-1].name)
            return None
        if template.kind == "host":
            names.append(self.names.fresh(hint))
            held[names[-1]] = template.value
            return None
        if template.kind not in ("tuple", "list") or not template.items:
            raise self.refusal("PCB107", "what this context manager gives is no array, and no tuple or list of arrays")
        return tuple(self._given(each, "", names, lanes, held) for each in template.items)
