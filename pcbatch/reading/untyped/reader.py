"""Programs that are read without types: what Python's statements and calls do to values of which nothing is known.

An operation on such a value is an operation of the program that gives another one; a loop over it goes by its length; a
condition on it is a branch. What is refused otherwise because a lane's value stands where a known one is needed is an
operation here, written as in the source: with types it may be known. Batched functions take and give unknown values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import gast

from pcbatch.ir import program as ir
from pcbatch.ir.expressions import Attribute, Name, call, operation, resolved
from pcbatch.ir.payload import Compute
from pcbatch.ir.types import TensorType
from pcbatch.reading.calls import BatchedFunction
from pcbatch.reading.core import Here, RefusedError
from pcbatch.reading.expressions import DEAD
from pcbatch.reading.kinds import Kind, Returning, Specialisation
from pcbatch.reading.operations import BINARY, Operation, call_of, expression_of, method
from pcbatch.reading.sequences import VIEWS_OF_DICTS
from pcbatch.reading.untyped.as_written import CHANGED
from pcbatch.reading.untyped.parts import TAKING, Parts
from pcbatch.reading.untyped.values import is_data, python
from pcbatch.reading.values import NONE, Function, Host, Lane, Lazy, Ref, Tuple, Value, is_none, is_number
from pcbatch.runtime.backends.untyped import TRUTH, UNKNOWN, VARYING

T = TypeVar("T")
CALL = Operation(
    "call",
    lambda given, named: call_of(given[0], given[1:], named),
    lambda ops, given, named: ops.call(*given, **named),
)
SUPER = CALL.called
PLAIN = (int, float, complex, str, bytes, tuple, list, dict, set, range, type(None))
"""Classes of the world's values that may be a lane's where they are handed to a function."""
IS = Operation("is", lambda given, named: operation("is", *given), lambda ops, given, named: ops.equal(*given))


def _final(name: str) -> Any:
    """A method of the reader's whose refusals have nothing to do with types."""
    return lambda self, *given: self.finally_refused(lambda: getattr(super(Untyped, self), name)(*given))


class Untyped(Parts):
    """The reader of programs without types."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self.entered: set[str] = set()
        """Variables that the `with` statements around have bound."""
        self.statics: dict[Any, frozenset[str]] = {}
        """Static parameters, by the tree of the function."""

    def parameters_of(self, spec: Specialisation) -> dict[str, Value]:
        found = super().parameters_of(spec)
        function = spec.function
        given = function.tree.args
        positional = [each.id for each in (*given.posonlyargs, *given.args)]
        defaults = dict(zip(reversed(positional), reversed(function.defaults), strict=False))
        optional = {name for name, value in {**defaults, **function.keyword_defaults}.items() if is_none(value)}
        known = optional | self.statics.get(function.tree, frozenset())
        return {
            name: Lane(value.name, VARYING) if isinstance(value, Lane) and name not in known else value
            for name, value in found.items()
        }

    def _call_batched(self, batched: BatchedFunction, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        self.statics[batched.tree] = batched.statics
        return super()._call_batched(batched, arguments, keywords)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: Any) -> Value:
        if not isinstance(node.func, gast.Attribute):
            return super().visit_Call(node)
        here = self.mark()
        receiver = self.expression(node.func.value)
        if not self._is_container(receiver, here):
            return super().visit_Call(node)
        if not self.is_unknown(receiver):
            self.back_to(here)
            try:
                return super().visit_Call(node)
            except RefusedError as error:
                if node.func.attr not in TAKING or error in self.final:
                    raise
            receiver = self._forgotten(here, node.func.value)
        receiver, arguments, keywords = self._arguments(receiver, node)
        return self.method(receiver, node.func.attr, arguments, keywords) if self.is_live else DEAD

    def _super(self, node: Any) -> Value:
        frame = self.frame
        while frame.function.frame is not None and frame.function.owner is None:
            frame = frame.function.frame
        first = [*frame.function.tree.args.posonlyargs, *frame.function.tree.args.args][:1]
        receiver = self.state.names.get((frame.number, first[0].id)) if first else None
        if node.args or receiver is None or not self.is_unknown(receiver):
            return super()._super(node)
        given = [self.pattern(receiver)]
        return self.emit(Operation(None, lambda given, named: call("super", *given), SUPER), given)

    def visit_Expr(self, node: Any) -> None:
        match node.value:
            case gast.Call(func=gast.Attribute(value=whole, attr=name)):
                here = self.mark()
                receiver = self.expression(whole)
                if self._is_container(receiver, here):
                    self._statement(node, receiver, whole, name, here)
                    return
        super().visit_Expr(node)

    def _statement(self, node: Any, receiver: Value, whole: Any, name: str, here: Here) -> None:
        """A call of a method that stands by itself."""
        if not self.is_unknown(receiver):
            self.back_to(here)
            try:
                super().visit_Expr(node)
                return
            except RefusedError as error:
                if error in self.final:
                    raise
            receiver = self._forgotten(here, whole)
        receiver, arguments, keywords = self._arguments(receiver, node.value)
        if self.is_live:
            self._for_effect(receiver, name, arguments, keywords)

    def _is_container(self, receiver: Value, here: Here) -> bool:
        """Tell whether a method may change a value; if not, it is as if nothing had been evaluated since `here`."""
        found = self.is_live and (
            (self.is_unknown(receiver) and not self.is_opaque(receiver))
            or self.kind(receiver) in ("list", "dict", "set")
        )
        if not found:
            self.back_to(here)
        return found

    def _forgotten(self, here: Here, node: Any) -> Value:
        """A container of which nothing is known any more, since what is done to it depends on types."""
        self.back_to(here)
        receiver = self.expression(node)
        assert isinstance(receiver, Ref)
        self.forget(receiver)
        return receiver

    def _arguments(self, receiver: Value, node: Any) -> tuple[Value, list[Value], dict[str, Value]]:
        """The arguments of a method, and its object, which may have become another one meanwhile."""
        with self.kept([receiver]) as row:
            row.append(*self.evaluated(node.args))
            keywords = self._keywords(node)
            receiver, *arguments = row
        return receiver, arguments, keywords

    def _for_effect(self, receiver: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> None:
        """A method of an unknown value that is called for what it does."""
        if not (isinstance(receiver, Lane) and receiver.name in self.entered):
            if isinstance(receiver, Host):
                self.refuse_method(name)
            self.changed(receiver, name, arguments, keywords)
            return
        given, named = self.patterns(arguments, keywords)
        of = {key: expression_of(each) for key, each in named.items()}
        made = call_of(Attribute(Name(receiver.name), name), [*map(expression_of, given)], of)
        code, inputs = resolved(made, self.types)
        self.emitter.append(ir.Primitive((), inputs, Compute(code), self.span()))

    def call_value(self, function: Value, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        if isinstance(function, Lane | Ref) and self.is_unknown(function):
            given = [self.pattern(each) for each in (function, *arguments)]
            return self.emit(CALL, given, {name: self.pattern(each) for name, each in keywords.items()})
        return super().call_value(function, arguments, keywords)

    def call_of_program(
        self,
        function: Function,
        given: Mapping[str, Value],
        statics: frozenset[str],
        cost: float | None = None,
        *,
        is_by_value: bool = False,
    ) -> Value:
        if is_by_value:
            given = {name: self._packed(value) for name, value in given.items()}
            statics = frozenset()
        return super().call_of_program(function, given, statics, cost, is_by_value=is_by_value)

    bind, _refuse_forbidden, _refuse_on_a_tape = map(_final, ("bind", "_refuse_forbidden", "_refuse_on_a_tape"))

    def captured_change(self, value: Host, node: Any = None) -> RefusedError:
        error = super().captured_change(value, node)
        self.final.append(error)
        return error

    def _debug(self, node: Any) -> Value:
        if node.args and not isinstance(node.args[0], gast.Constant):
            return super()._debug(node)
        return self.finally_refused(lambda: super(Untyped, self)._debug(node))

    def call_reversed(self, value: Value) -> Value:
        whole = self.known(value)
        if not isinstance(whole, Lazy) or whole.kind in VIEWS_OF_DICTS:
            return super().call_reversed(value)
        return self.finally_refused(lambda: super(Untyped, self).call_reversed(value))

    def refuse_inside(self, what: str) -> None:
        if what == "a batched call":
            self.finally_refused(lambda: super(Untyped, self).refuse_inside(what))
        else:
            super().refuse_inside(what)

    def finally_refused(self, what: Callable[[], T]) -> T:
        """Return what `what` gives; it refuses nothing that may be right with types."""
        try:
            return what()
        except RefusedError as error:
            self.final.append(error)
            raise

    def _packed(self, value: Value) -> Value:
        """A value as one that is unknown; functions stay what they are."""
        if isinstance(value, Host) and not self.is_opaque(value) and self.type_of(value) is not None:
            return value
        return self.lane(value) if is_data(self, value) and not self.is_code(value) else value

    def is_code(self, value: Value) -> bool:
        """Tell whether a value is a module, a function, a class, or an object with methods, and so none of a lane's."""
        if self.is_opaque(value):
            name = value.value.opaque_name  # type: ignore[union-attr]
            return bool(name.origin) or name.is_object
        return isinstance(value, Host) and not isinstance(value.value, PLAIN) and not self.is_array(value.value)

    def kind_of(self, value: Value, leaves: list[Value], seen: dict[Any, int], *stays: Any) -> Kind:
        if self.is_opaque(value) and self.is_code(value):
            return Kind("host", value=value)
        kind = super().kind_of(value, leaves, seen, *stays)
        return replace(kind, type=UNKNOWN) if kind.form == "lane" else kind

    def hand_back(self, spec: Specialisation, found: Sequence[Returning]) -> None:
        self._ends_with_values = any(self._is_no_none(each) for each in found)
        super().hand_back(spec, found)

    def with_none(self, spec: Specialisation, found: Sequence[Returning]) -> Sequence[Returning]:
        return found

    def _is_no_none(self, end: Returning) -> bool:
        """Tell whether what a function gives at one of its ends is not None, whatever the types are."""
        type_ = self.in_state(end.state, lambda: self.type_of(end.value))
        is_known = isinstance(end.value, Tuple) or (isinstance(end.value, Host) and is_number(end.value.value))
        return is_known or type_ in (VARYING, TRUTH)

    def _kind_of_end(self, spec: Specialisation, value: Value, leaves: list[Value]) -> Kind:
        if is_none(value) and self._ends_with_values and not self.is_doubtful:
            return Kind("host", value=NONE)
        if not is_data(self, value):
            return super()._kind_of_end(spec, value, leaves)
        if not spec.is_by_value:
            return super()._kind_of_end(spec, self.lane(value), leaves)
        leaves.append(value)
        return Kind("lane", UNKNOWN)

    # -- what a value is -----------------------------------------------------------------------------------------------

    def constant(self, value: Value, what: str) -> Any:
        if self.is_opaque(value):
            raise self.no_constant("PCB313", f"{what} must be known when the function is compiled")
        return super().constant(value, what)

    def is_whole(self, value: Value) -> bool:
        return self.is_unknown(value) or (isinstance(value, Host) and isinstance(value.value, int))

    def is_one(self, a: Value, b: Value) -> Host | Lane:
        if not any(map(self.is_unknown, (a, b))):
            return super().is_one(a, b)
        found = self.emit(IS, [self.pattern(self.read(a)), self.pattern(self.read(b))])
        assert isinstance(found, Lane)
        return found

    def compare(self, op: type, a: Value, b: Value) -> Value:
        is_plain = op in BINARY and op not in (gast.In, gast.NotIn)
        if is_plain and any(map(self.is_unknown, (a, b))) and not any(isinstance(each, Tuple) for each in (a, b)):
            return self.emit(BINARY[op], [self.pattern(a), self.pattern(b)])
        return super().compare(op, a, b)

    def contains(self, whole: Value, item: Value) -> Host | Lane:
        if not self.is_unknown(whole):
            return super().contains(whole, item)
        return self.truth(self.emit(BINARY[gast.In], [self.pattern(self.read(item)), self.pattern(whole)]))

    def call_range(self, *values: Value) -> Value:
        return super().call_range(*(self.lane(each) if self.is_opaque(each) else each for each in values))

    def call_zip(self, *values: Value, strict: Value | None = None) -> Value:
        if any(self._goes_by_counter(each) and not isinstance(each, Host) for each in values):
            values = tuple(each if self._goes_by_counter(each) else self.lane(each) for each in values)
        return super().call_zip(*values, strict=strict)

    def call_isinstance(self, value: Value, classes: Value) -> Value:
        if not self.is_unknown(self.known(value)):
            return super().call_isinstance(value, classes)
        return self.emit(python(isinstance), [self.pattern(value), self.pattern(classes)])

    def _class_of(self, value: Value) -> type:
        if self.is_unknown(value):
            raise self.no_constant("PCB120", "the class of a value is not known")
        return super()._class_of(value)

    def folded(self, value: Value, start: Value, step: Callable[[Value, Value], Value]) -> Value:
        self._refuse_unknown(value)
        return super().folded(value, start, step)

    def _truths(self, value: Value, is_all: bool) -> Value:
        self._refuse_unknown(value)
        return super()._truths(value, is_all)

    def _mapped(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        what, *over = arguments
        if keywords or not any(map(self.is_unknown, over)):
            return super()._mapped(function, arguments, keywords)
        whole = over[0] if len(over) == 1 else Lazy("zip", tuple(map(self.lane, over)))

        def add(found: Value, item: Value) -> Value:
            items = item.items if isinstance(item, Tuple) and len(over) > 1 else (item,)
            return self.emit(CHANGED, [self.pattern(found), "append", self.pattern(self.call_value(what, items, {}))])

        return self._looped(whole, self.lane(self.new("list", ())), add)

    def call_copy(self, value: Value) -> Value:
        self._refuse_unknown(self.known(value))
        return super().call_copy(value)

    def call_deepcopy(self, value: Value) -> Value:
        self._refuse_unknown(self.known(value))
        return super().call_deepcopy(value)

    def zero_of(self, type_: TensorType) -> Value:
        return Host(0)

    def kind_of_item(self, value: Value) -> Kind:
        return Kind("host", value=Host(0)) if self.is_unknown(value) else super().kind_of_item(value)

    def _refuse_unknown(self, value: Value) -> None:
        if self.is_unknown(value):
            raise self.no_constant("PCB130", "what is in this is not known")

    # -- statements ----------------------------------------------------------------------------------------------------

    def visit_With(self, node: Any) -> None:
        before = set(self.entered)
        try:
            super().visit_With(node)
        finally:
            self.entered = before

    def _manager(self, node: Any) -> tuple[Any, list[Any], dict[str, Any]]:
        if isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute):
            here = self.mark()
            receiver = self.expression(node.func.value)
            if isinstance(receiver, Lane) and receiver.name in self.entered:  # `with tape.stop_recording():`
                given = [self.pattern(each) for each in (receiver, *self.evaluated(node.args))]
                named = {name: self.pattern(each) for name, each in self._keywords(node).items()}
                return method(node.func.attr), given, named
            self.back_to(here)
        return super()._manager(node)

    def manager_of(self, operation: Operation, arguments: Sequence[Any], keywords: dict[str, Any], node: Any) -> Any:
        """Return what is called for a context manager: it is not called here."""
        here = self.mark()
        function = self.expression(node.func)
        self.back_to(here)
        return function.value if isinstance(function, Host) else None

    def is_on_a_tape(self) -> bool:
        return any(map(self.backend.takes_gradients, self.contexts))

    def _entered(
        self, operation: Any, arguments: Sequence[Any], keywords: dict[str, Any], item: Any, found: Any
    ) -> None:
        super()._entered(operation, arguments, keywords, item, found)
        if isinstance(item.optional_vars, gast.Name):
            value = self.state.names[self.frame.number, item.optional_vars.id]
            self.entered |= {value.name} if isinstance(value, Lane) else set()

    def _sequence_matches(self, patterns: Sequence[Any], value: Value, bindings: dict[str, Value]) -> Host | Lane:
        if not self.is_unknown(value):
            return super()._sequence_matches(patterns, value, bindings)
        stars = [place for place, each in enumerate(patterns) if isinstance(each, gast.MatchStar)]
        length = self.length(value)
        op = gast.GtE if stars else gast.Eq
        found = self.truth(self.compare(op, length, Host(len(patterns) - len(stars))))
        assert isinstance(found, Lane)
        items = self.guarded(found, lambda: self.unpacked(value, len(patterns), stars[0] if stars else None))
        return self.both(found, self.guarded(found, lambda: self._items_match(patterns, items, bindings)))
