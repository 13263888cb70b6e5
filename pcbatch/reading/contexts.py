"""`with` statements: context managers of libraries, which are entered in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from pcbatch.ir import program as ir
from pcbatch.ir.code import Code
from pcbatch.reading.builtins import Builtins
from pcbatch.reading.emission import target_of
from pcbatch.reading.operations import lanes_in, library, text_of
from pcbatch.reading.places import Place
from pcbatch.reading.values import Host, Lane


class Contexts(Builtins):
    """`with` statements."""

    def visit_With(self, node: Any) -> None:
        self._with(node.items, node)

    def _with(self, items: Sequence[Any], node: Any) -> None:
        if not items:
            self.statements(node.body)
            return
        item, *rest = items
        operation, arguments, keywords = self._manager(item.context_expr)
        if self.connected is None or self.connected_in is not self.emitter.current:
            self.connected, self.connected_in = {}, self.emitter.current
        template, _ = self.tried(operation, arguments, keywords)
        if template.kind != "host" or not hasattr(template.value, "__enter__"):
            raise self.refusal("PCB107", "this is no context manager", node=item.context_expr)
        block = self.emitter.current
        self.contexts += 1
        try:
            with self.symbols.entered(template.value) as found:
                self._entered(operation, arguments, keywords, item, found)
                self._with(rest, node)
                if self.emitter.current is not block:
                    raise self.refusal("PCB107", "control flow, or a batched call, inside of `with`", node=node)
        finally:
            self.contexts -= 1
        self.emitter.append(ir.Exit(self.span(node)))

    def _manager(self, node: Any) -> tuple[Any, list[Any], dict[str, Any]]:
        """The call that makes a context manager."""
        if not isinstance(node, gast.Call):
            raise self.refusal(
                "PCB107", "a `with` statement calls what makes its context manager: `with f(..):`", node=node
            )
        function = self.expression(node.func)
        if not isinstance(function, Host) or not callable(function.value):
            raise self.refusal("PCB107", "this is no context manager", node=node)
        arguments = [self.pattern(each) for each in self.evaluated(node.args)]
        keywords = {name: self.pattern(each) for name, each in self._keywords(node).items()}
        text = self.bound(function).text
        return library(function.value, text, None, is_steady=False), arguments, keywords

    def _entered(
        self, operation: Any, arguments: Sequence[Any], keywords: dict[str, Any], item: Any, found: Any
    ) -> None:
        """Write where a context manager is entered, and bind what it gives."""
        texts = [text_of(each) for each in arguments]
        text = operation.written(texts, {name: text_of(each) for name, each in keywords.items()})
        lanes = [each for pattern in (*arguments, *keywords.values()) for each in lanes_in(pattern)]
        inputs = tuple(dict.fromkeys(each.name for each in lanes if each.name in self.types))
        target = item.optional_vars
        if target is None:
            self.emitter.append(ir.Enter((), inputs, Code(f"with {text}:\n    pass"), self.span(item.context_expr)))
            return
        self._results = []
        template = self.template(found)
        types = [*template.leaves()]
        if not types and template.kind == "host":
            name = self.names.fresh(target.id if isinstance(target, gast.Name) else "held")
            code = Code(f"with {text} as {name}:\n    pass")
            self.emitter.append(ir.Enter((name,), inputs, code, self.span(item.context_expr)))
            self.store(target, Host(found, Place("held", None, name, name)))
            return
        outputs = tuple(self.emitter.fresh(type_, "t") for type_ in types)
        assert self.connected is not None
        self.connected |= dict(zip(outputs, self._results, strict=True))
        code = Code(f"with {text} as {target_of(template, iter(outputs))}:\n    pass")
        self.emitter.append(ir.Enter(outputs, inputs, code, self.span(item.context_expr)))
        lanes_of = [Lane(name, type_) for name, type_ in zip(outputs, types, strict=True)]  # type: ignore[arg-type]
        self.store(target, self.built(template, iter(lanes_of)))
