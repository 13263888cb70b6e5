"""Statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast

from pcbatch.ir import program as ir
from pcbatch.ir.code import Code
from pcbatch.reading.builtins import Builtins
from pcbatch.reading.core import target_of
from pcbatch.reading.expressions import DEAD, Ends
from pcbatch.reading.joins import End
from pcbatch.reading.operations import lanes_in, library, text_of
from pcbatch.reading.operators import NAMES
from pcbatch.reading.places import Place
from pcbatch.reading.values import NONE, Function, Host, Lane, OneOf, Ref, Tuple, Value, View

CONVERSIONS = {-1: "", ord("r"): "!r", ord("s"): "!s", ord("a"): "!a"}


class Statements(Builtins):
    """Python's statements."""

    def statements(self, nodes: Sequence[Any]) -> None:
        for node in nodes:
            if not self.is_live:
                return
            before, self.node = self.node, node
            try:
                getattr(self, f"_do_{type(node).__name__}", self._refused_statement)(node)
            finally:
                self.node = before

    def _refused_statement(self, node: Any) -> None:
        name = type(node).__name__
        codes = {"Try": "PCB101", "TryStar": "PCB101", "ClassDef": "PCB102", "Global": "PCB103", "With": "PCB107"}
        self.refuse(codes.get(name, "PCB106"), f"`{name.lower()}` is not supported in a batched function")

    def _do_Pass(self, node: Any) -> None:
        pass

    def _do_Nonlocal(self, node: Any) -> None:
        pass

    def _do_Expr(self, node: Any) -> None:
        if not isinstance(node.value, gast.Constant):
            self.expression(node.value)

    def _do_Return(self, node: Any) -> None:
        value = NONE if node.value is None else self.expression(node.value, "result")
        if self.is_live:
            self.returned(value)

    # -- assignments ---------------------------------------------------------------------------------------------------

    def _do_Assign(self, node: Any) -> None:
        value = self.expression(node.value)
        row = [value]
        self.pending.append(row)
        try:
            for target in node.targets:
                if self.is_live:
                    self.store(target, row[0])
        finally:
            self.pending.pop()

    def _do_AnnAssign(self, node: Any) -> None:
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
                self.refuse("PCB109", "this cannot be assigned", node=target)

    def _do_AugAssign(self, node: Any) -> None:
        target = node.target
        match target:
            case gast.Name(id=name):
                row = [self.lookup(name, target)]
                put: Callable[[Value], None] = lambda value: self.assign(name, value)
            case gast.Attribute(value=whole, attr=name):
                row = [self.expression(whole)]
                if not self.is_live:
                    return
                row.append(self.attribute(row[0], name))
                put = lambda value: self.set_attribute(row[0], name, value)  # noqa: E731
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
                put = lambda value: self.set_item(row[0], at, value)  # noqa: E731
            case _:
                self.refuse("PCB109", "this cannot be assigned", node=target)
        if isinstance(row[-1], View) and isinstance(target, gast.Subscript):
            pass
        self.pending.append(row)
        try:
            value = self.expression(node.value)
        finally:
            self.pending.pop()
        if self.is_live:
            found = self._augmented(type(node.op), row[-1], value)
            if found is not None:
                put(found)

    def _augmented(self, op: type, old: Value, value: Value) -> Value | None:
        """The value of an augmented assignment's target; None where its object has been changed in place."""
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
        if self.guard is None:
            found = self.added(old, op, value) if not isinstance(old, Host) else None
            if found is not None:
                return found
        return self.binary(op, old, value)

    def _do_Delete(self, node: Any) -> None:
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
                        self.refuse("PCB104", f"there is no attribute `{name}` to delete")
                    self.state.set_cell(found, items={k: v for k, v in cell.items.items() if k != name})

    def _do_FunctionDef(self, node: Any) -> None:
        if node.decorator_list:
            self.refuse("PCB122", "a decorator on a function inside of a batched function", "define it outside", node=node)
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

    def _do_If(self, node: Any) -> None:
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

    def either_way(self, ends: Ends, arms: Sequence[Callable[[], None]]) -> None:
        """Interpret what follows where a test holds, and where not, and go on where both meet."""
        left: list[End] = []
        for own, arm in zip((ends.true, ends.false), arms, strict=True):
            self.join(own)
            if self.is_live:
                arm()
            left += self._here()
        self.join(left)

    def _do_While(self, node: Any) -> None:
        self.while_loop(node)

    def _do_For(self, node: Any) -> None:
        self.for_loop(node)

    def _do_Break(self, node: Any) -> None:
        self.loops[-1].breaks += self._here()
        self.emitter.enter(None)

    def _do_Continue(self, node: Any) -> None:
        self.loops[-1].continues += self._here()
        self.emitter.enter(None)

    # -- with ----------------------------------------------------------------------------------------------------------

    def _do_With(self, node: Any) -> None:
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
            self.refuse("PCB107", "this is no context manager", node=item.context_expr)
        block = self.emitter.current
        self.contexts += 1
        try:
            with self.symbols.entered(template.value) as found:
                self._entered(operation, arguments, keywords, item, found)
                self._with(rest, node)
                if self.emitter.current is not block:
                    self.refuse("PCB107", "control flow, or a batched call, inside of `with`", node=node)
        finally:
            self.contexts -= 1
        self.emitter.append(ir.Exit(self.span(node)))

    def _manager(self, node: Any) -> tuple[Any, list[Any], dict[str, Any]]:
        """The call that makes a context manager."""
        if not isinstance(node, gast.Call):
            self.refuse("PCB107", "a `with` statement calls what makes its context manager: `with f(..):`", node=node)
        function = self.expression(node.func)
        if not isinstance(function, Host) or not callable(function.value):
            self.refuse("PCB107", "this is no context manager", node=node)
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
        lanes_of = [Lane(name, type_) for name, type_ in zip(outputs, types, strict=True)]
        self.store(target, self.built(template, iter(lanes_of)))

    # -- faults --------------------------------------------------------------------------------------------------------

    def _do_Assert(self, node: Any) -> None:
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

    def _do_Raise(self, node: Any) -> None:
        match node.exc:
            case gast.Call(func=function, args=arguments):
                name = self._error_name(function)
                self._fault(name, arguments[0] if arguments else None, "raise")
            case None:
                self.refuse("PCB116", "`raise` without an exception")
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
            lanes.append(self.lane(value).name if not isinstance(value, Host) else self.lane(value).name)
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
                    spec = "" if part.format_spec is None else self.constant(self.expression(part.format_spec), "a format")
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

    def _do_Match(self, node: Any) -> None:
        subject = self.expression(node.subject)
        slot = (self.frame.number, f"subject_{self.number()}")
        self.state.names[slot] = subject
        self._cases(slot, node.cases)
        self.state.names.pop(slot, None)

    def _cases(self, slot: tuple[int, str], cases: Sequence[Any]) -> None:
        if not cases or not self.is_live:
            return
        case, *rest = cases
        bindings: dict[str, Value] = {}
        before, self.node = self.node, case.pattern
        try:
            found = self.matches(case.pattern, self.state.names[slot], bindings)
        finally:
            self.node = before
        if isinstance(found, Host) and not found.value:
            self._cases(slot, rest)
            return
        if case.guard is None:
            if isinstance(found, Host):
                self._bound_case(bindings, case)
                return
            self.fork(found, [lambda: self._bound_case(bindings, case), lambda: self._cases(slot, rest)])
            return
        if not bindings:
            found = self.lazily(True, found, lambda: self.condition(case.guard))
            self.either_way(
                self.ends_of(found), [lambda: self.statements(case.body), lambda: self._cases(slot, rest)]
            )
            return
        ends = self.ends_of(found)
        self.join(ends.true)
        for name, value in bindings.items():
            self.assign(name, value)
        decided = self.ends_of(self.decided(case.guard))
        self.either_way(
            Ends(decided.true, [*ends.false, *decided.false]),
            [lambda: self.statements(case.body), lambda: self._cases(slot, rest)],
        )

    def _bound_case(self, bindings: dict[str, Value], case: Any) -> None:
        """The body of a case whose pattern matches: names of the pattern are bound then."""
        for name, value in bindings.items():
            self.assign(name, value)
        self.statements(case.body)

    def matches(self, pattern: Any, value: Value, bindings: dict[str, Value]) -> Host | Lane:
        """Whether a value matches a pattern; `bindings` are the names that it binds then."""
        match pattern:
            case gast.MatchValue(value=node):
                return self.truth(self.compare(gast.Eq, value, self.expression(node)))
            case gast.MatchSingleton(value=single):
                return self.is_one(self.read(value), Host(single))
            case gast.MatchAs(pattern=None, name=name):
                if name is not None:
                    bindings[name] = value
                return Host(True)
            case gast.MatchAs(pattern=inner, name=name):
                found = self.matches(inner, value, bindings)
                bindings[name] = value
                return found
            case gast.MatchOr(patterns=patterns):
                found = Host(False)
                for each in patterns:
                    own: dict[str, Value] = {}
                    matched = self.matches(each, value, own)
                    for name in own:
                        if isinstance(matched, Lane) and name in bindings:
                            bindings[name] = self.choose(
                                matched, lambda name=name: own[name], lambda name=name: bindings[name]
                            )
                        elif isinstance(matched, Lane) or matched.value:
                            bindings.setdefault(name, own[name])
                    found = self.either(found, matched)
                return found
            case gast.MatchSequence(patterns=patterns):
                return self._sequence_matches(patterns, value, bindings)
            case gast.MatchClass(cls=cls, patterns=patterns, kwd_attrs=names, kwd_patterns=named):
                return self._class_matches(cls, patterns, names, named, value, bindings)
        self.refuse("PCB108", "this pattern is not supported", node=pattern)

    def _sequence_matches(self, patterns: Sequence[Any], value: Value, bindings: dict[str, Value]) -> Host | Lane:
        type_ = self.type_of(value)
        is_sequence = isinstance(value, Tuple) or self.kind(value) == "list" or (type_ is not None and bool(type_.shape))
        if not is_sequence:
            return Host(False)
        items = self.sequence(value)
        stars = [place for place, each in enumerate(patterns) if isinstance(each, gast.MatchStar)]
        if len(items) != len(patterns) and not (stars and len(items) >= len(patterns) - 1):
            return Host(False)
        if stars:
            behind = len(patterns) - stars[0] - 1
            middle = self.new("list", tuple(items[stars[0] : len(items) - behind]))
            items = [*items[: stars[0]], middle, *items[len(items) - behind :]]
        found: Host | Lane = Host(True)
        for each, item in zip(patterns, items, strict=True):
            if isinstance(each, gast.MatchStar):
                if each.name is not None:
                    bindings[each.name] = item
                continue
            found = self.both(found, self.matches(each, item, bindings))
        return found

    def _class_matches(
        self,
        cls: Any,
        patterns: Sequence[Any],
        names: Sequence[str],
        named: Sequence[Any],
        value: Value,
        bindings: dict[str, Value],
    ) -> Host | Lane:
        wanted = self.constant(self.expression(cls), "a class")
        known = self.call_isinstance(value, Host(wanted))
        assert isinstance(known, Host)
        if not known.value:
            return Host(False)
        fields = getattr(wanted, "__match_args__", ())
        if wanted in (int, float, bool) and patterns:
            return self.matches(patterns[0], value, bindings)
        found: Host | Lane = Host(True)
        for name, each in [*zip(fields, patterns, strict=False), *zip(names, named, strict=True)]:
            found = self.both(found, self.matches(each, self.attribute(value, name), bindings))
        return found


def _plain(value: object) -> str:
    return str(value).replace("{", "{{").replace("}", "}}")


__all__ = ["DEAD", "OneOf", "Statements"]
