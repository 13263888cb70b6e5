"""Statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from pcbatch.reading.expressions import Ends
from pcbatch.reading.matching import Matching
from pcbatch.reading.operators import NAMES
from pcbatch.reading.values import NONE, Function, Host, Ref, Value

CONVERSIONS = {-1: "", ord("r"): "!r", ord("s"): "!s", ord("a"): "!a"}


class Statements(Matching):
    """Python's statements."""

    def statements(self, nodes: Sequence[Any]) -> None:
        for node in nodes:
            if not self.is_live:
                return
            before, self.node = self.node, node
            try:
                getattr(self, f"visit_{type(node).__name__}", self._refused_statement)(node)
            finally:
                self.node = before

    def _refused_statement(self, node: Any) -> None:
        name = type(node).__name__
        codes = {"Try": "PCB101", "TryStar": "PCB101", "ClassDef": "PCB102", "Global": "PCB103", "With": "PCB107"}
        raise self.refusal(codes.get(name, "PCB106"), f"`{name.lower()}` is not supported in a batched function")

    def visit_Pass(self, node: Any) -> None:
        pass

    def visit_Nonlocal(self, node: Any) -> None:
        pass

    def visit_Expr(self, node: Any) -> None:
        if not isinstance(node.value, gast.Constant):
            self.expression(node.value)

    def visit_Return(self, node: Any) -> None:
        value = NONE if node.value is None else self.expression(node.value, "result")
        if self.is_live:
            self.returned(value)

    # -- assignments ---------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: Any) -> None:
        value = self.expression(node.value)
        row = [value]
        self.pending.append(row)
        try:
            for target in node.targets:
                if self.is_live:
                    self.store(target, row[0])
        finally:
            self.pending.pop()

    def visit_AnnAssign(self, node: Any) -> None:
        if node.value is not None:
            value = self.expression(node.value)
            if self.is_live:
                self.store(node.target, value)

    def store(self, target: Any, value: Value) -> None:
        if not self.is_live:
            return
        match target:
            case gast.Name(id=name):
                self.assign(name, value)
            case gast.Tuple(elts=targets) | gast.List(elts=targets):
                stars = [place for place, each in enumerate(targets) if isinstance(each, gast.Starred)]
                items = self.unpacked(value, len(targets), stars[0] if stars else None)
                self.pending.append(items)
                try:
                    for place, each in enumerate(targets):
                        self.store(each.value if isinstance(each, gast.Starred) else each, items[place])
                finally:
                    self.pending.pop()
            case gast.Attribute(value=whole, attr=name):
                row = [value]
                self.pending.append(row)
                try:
                    found = self.expression(whole)
                finally:
                    self.pending.pop()
                if self.is_live:
                    self.set_attribute(found, name, row[0])
            case gast.Subscript(value=whole, slice=index):
                row = [value]
                self.pending.append(row)
                try:
                    row.append(self.expression(whole))
                    at = self.index(index)
                finally:
                    self.pending.pop()
                if self.is_live:
                    self.set_item(row[1], at, row[0])
            case _:
                raise self.refusal("PCB109", "this cannot be assigned", node=target)

    def visit_AugAssign(self, node: Any) -> None:
        target = node.target
        match target:
            case gast.Name(id=name):
                row = [self.lookup(name, target)]

                def put(value: Value) -> None:
                    self.assign(name, value)

            case gast.Attribute(value=whole, attr=name):
                row = [self.expression(whole)]
                if not self.is_live:
                    return
                row.append(self.attribute(row[0], name))

                def put(value: Value) -> None:
                    self.set_attribute(row[0], name, value)

            case gast.Subscript(value=whole, slice=index):
                row = [self.expression(whole)]
                self.pending.append(row)
                try:
                    at = self.index(index)
                finally:
                    self.pending.pop()
                if not self.is_live:
                    return
                row.append(self.item(row[0], at))

                def put(value: Value) -> None:
                    self.set_item(row[0], at, value)

            case _:
                raise self.refusal("PCB109", "this cannot be assigned", node=target)
        self.pending.append(row)
        try:
            value = self.expression(node.value)
            if self.is_live:
                found = self._augmented(type(node.op), row[-1], value)
                if self.is_live:
                    put(row[-1] if found is None else found)
        finally:
            self.pending.pop()

    def _augmented(self, op: type, old: Value, value: Value) -> Value | None:
        """The value of an augmented assignment's target; None where that is an array that has been changed in place."""
        method = self.method_of(old, f"__i{NAMES[op]}__")
        if method is not None:
            return self.call_value(method, [value], {})
        cell = self.cell(old)
        if cell is not None and cell.kind == "list" and op is gast.Add and isinstance(old, Ref):
            self.state.set_cell(old, items=(*self.state.cell(old).items, *self.sequence(value)))
            return old
        if cell is not None and cell.kind == "list" and op is gast.Mult and isinstance(old, Ref):
            self.state.set_cell(old, items=tuple(cell.items) * self.constant(value, "how often a list is repeated"))
            return old
        if cell is not None and cell.kind == "dict" and op is gast.BitOr and isinstance(old, Ref):
            self.state.set_cell(old, items={**cell.items, **self.entries(value)})
            return old
        if self.guard is None and not isinstance(old, Host) and self.added(old, op, value):
            return None
        return self.binary(op, old, value)

    def visit_Delete(self, node: Any) -> None:
        for target in node.targets:
            match target:
                case gast.Name(id=name):
                    self.unbind(name)
                case gast.Subscript(value=whole, slice=index):
                    found = self.expression(whole)
                    self.delete_item(found, self.index(index))
                case gast.Attribute(value=whole, attr=name):
                    found = self.expression(whole)
                    cell = self.cell(found)
                    if cell is None or name not in cell.items or not isinstance(found, Ref):
                        raise self.refusal("PCB104", f"there is no attribute `{name}` to delete")
                    self.state.set_cell(found, items={k: v for k, v in cell.items.items() if k != name})

    def visit_FunctionDef(self, node: Any) -> None:
        if node.decorator_list:
            raise self.refusal(
                "PCB122", "a decorator on a function inside of a batched function", "define it outside", node=node
            )
        defaults = tuple(self.evaluated(node.args.defaults))
        names = [each.id for each in node.args.kwonlyargs]
        keyword = {
            name: self.expression(each)
            for name, each in zip(names, node.args.kw_defaults, strict=True)
            if each is not None
        }
        made = Function(node.name, node, self.file, self.frame, None, defaults, keyword)
        self.escape(made)
        self.assign(node.name, made)

    # -- control -------------------------------------------------------------------------------------------------------

    def visit_If(self, node: Any) -> None:
        found = self.decided(node.test)
        if isinstance(found, Ends):
            self.either_way(found, [lambda: self.statements(node.body), lambda: self.statements(node.orelse)])
            return
        if not self.is_live:
            return
        if isinstance(found, Host):
            self.statements(node.body if found.value else node.orelse)
            return
        self.fork(found, [lambda: self.statements(node.body), lambda: self.statements(node.orelse)])

    def visit_While(self, node: Any) -> None:
        self.while_loop(node)

    def visit_For(self, node: Any) -> None:
        self.for_loop(node)

    def visit_Break(self, node: Any) -> None:
        self.loops[-1].breaks += self._here()
        self.emitter.enter(None)

    def visit_Continue(self, node: Any) -> None:
        self.loops[-1].continues += self._here()
        self.emitter.enter(None)

    # -- with ----------------------------------------------------------------------------------------------------------

    # -- faults --------------------------------------------------------------------------------------------------------

    def visit_Assert(self, node: Any) -> None:
        found = self.condition(node.test)
        if not self.is_live or (isinstance(found, Host) and found.value):
            return
        if isinstance(found, Host):
            self._fault("AssertionError", node.msg, "assert")
            return
        right, wrong = self.emitter.block(), self.emitter.block()
        state = self.state.copy()
        self.emitter.branch(found, right, wrong, self.span())
        self.emitter.enter(wrong)
        self._fault("AssertionError", node.msg, "assert")
        self.state = state
        self.emitter.enter(right)

    def visit_Raise(self, node: Any) -> None:
        match node.exc:
            case gast.Call(func=function, args=arguments):
                name = self._error_name(function)
                self._fault(name, arguments[0] if arguments else None, "raise")
            case None:
                raise self.refusal("PCB116", "`raise` without an exception")
            case other:
                self._fault(self._error_name(other), None, "raise")

    def _error_name(self, node: Any) -> str:
        value = self.expression(node)
        found = value.value if isinstance(value, Host) else None
        return getattr(found, "__name__", None) or type(found).__name__

    def _fault(self, error: str, message: Any, kind: Any) -> None:
        """Fail the lane, with a message that is made of what the lane has."""
        text, fields = self._message(error, message)
        lanes = []
        for node in fields:
            value = self.read(self.expression(node))
            if not self.is_live:
                return
            lanes.append(self.lane(value).name)
        self.emitter.fault(text, tuple(lanes), kind, self.span())

    def _message(self, error: str, message: Any) -> tuple[str, list[Any]]:
        match message:
            case None:
                return error, []
            case gast.Constant(value=value):
                return f"{error}: {_plain(value)}", []
            case gast.JoinedStr(values=parts):
                pieces: list[str] = []
                fields: list[Any] = []
                for part in parts:
                    if isinstance(part, gast.Constant):
                        pieces.append(_plain(part.value))
                        continue
                    spec = (
                        "" if part.format_spec is None else self.constant(self.expression(part.format_spec), "a format")
                    )
                    field = f"{{{CONVERSIONS[part.conversion]}{':' + spec if spec else ''}}}"
                    known = self._known_text(part.value)
                    if known is None:
                        pieces.append(field)
                        fields.append(part.value)
                    else:
                        pieces.append(_plain(field.format(known.value)))
                return f"{error}: {''.join(pieces)}", fields
        known = self._known_text(message)
        if known is not None:
            return f"{error}: {_plain(known.value)}", []
        return f"{error}: {{}}", [message]

    def _known_text(self, node: Any) -> Host | None:
        """A part of a message that is no number of a lane."""
        mark = self.mark()
        value = self.read(self.expression(node))
        if isinstance(value, Host) and self.type_of(value) is None:
            return value
        self.back_to(mark)
        return None

    # -- match ---------------------------------------------------------------------------------------------------------


def _plain(value: object) -> str:
    return str(value).replace("{", "{{").replace("}", "}}")
