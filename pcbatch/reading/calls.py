"""Calls: of functions of the user's, in place or as parts of the program, of classes, of built-ins and of libraries."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import gast

from pcbatch.frontend.nodes import unparse
from pcbatch.installed import IN_PYTHON
from pcbatch.ir import values
from pcbatch.reading import in_python
from pcbatch.reading.core import RefusedError
from pcbatch.reading.expressions import DEAD
from pcbatch.reading.libraries import CALLABLE, Libraries
from pcbatch.reading.opaque_calls import forbidden
from pcbatch.reading.sources import cost_of, is_users
from pcbatch.reading.values import Bound, Function, Generator, Host, Lane, OneOf, Part, Ref, Super, Tuple, Value, View


@dataclass(frozen=True, eq=False)
class BatchedFunction:
    """The reader's view of a batched function: the plain one behind it, and how it is called."""

    live: FunctionType
    tree: Any
    file: str
    statics: frozenset[str] = frozenset()
    receiver: Any = None
    cost: float | None = None
    itself: Any = None


class RecursionFoundError(Exception):
    """A function that is interpreted in place calls itself."""

    def __init__(self, tree: Any):
        self.tree = tree


class Calls(Libraries):
    """Calls."""

    # of parts above
    special: Callable[[Value, Any], Value | None]
    builtin_of: Callable[[Any], Callable[..., Value] | None]
    batches_on_tapes: Callable[[], bool]
    on_a_tape: Callable[[Function, dict[str, Value]], Value]
    as_operation: Callable[[Any, Sequence[Value], Mapping[str, Value]], Value]

    def __init__(self, *given: Any, batched_of: Callable[[Any], BatchedFunction | None], **options: Any):
        super().__init__(*given, **options)
        self._batched_of = batched_of
        self._parts: set[Any] = set()
        """Trees of functions that are parts of the program wherever they are called."""
        self._in_place: set[Any] = set()
        self.read_function: Any = None
        """The batched function that is read."""
        self.faults = 0
        """The number of times that a `raise` or an `assert` that may fail a lane was interpreted."""

    def batched(self, value: Any) -> BatchedFunction | None:
        return self._batched_of(value)

    def visit_Call(self, node: Any) -> Value:
        function = self.expression(node.func)
        if not self.is_live:
            return DEAD
        if isinstance(function, Host) and function.value is super:
            return self._super(node)
        own = self.special(function, node)
        if own is not None:
            return own
        with self.kept([function]) as row:
            row.append(*self.evaluated(node.args))
            keywords = self._keywords(node)
            function, *arguments = row
        return self.call_value(function, arguments, keywords) if self.is_live else DEAD

    def _keywords(self, node: Any) -> dict[str, Value]:
        names: list[str] = []
        with self.kept() as row:
            for each in node.keywords:
                value = self.expression(each.value)
                found = {each.arg: value} if each.arg is not None else self.entries(value)
                names += found
                row.append(*found.values())
            return dict(zip(names, row, strict=True))

    def _super(self, node: Any) -> Value:
        if node.args:
            cls, receiver = self.evaluated(node.args)
            behind = self.constant(cls, "a class")
        else:
            frame = self.frame
            while frame.function.frame is not None and frame.function.owner is None:
                frame = frame.function.frame
            if frame.function.owner is None:
                raise self.refusal("PCB208", "`super()` stands in no method of a class")
            first = [*frame.function.tree.args.posonlyargs, *frame.function.tree.args.args][0].id
            receiver, behind = self.state.names[frame.number, first], frame.function.owner
        cell = self.cell(receiver)
        cls_of = cell.cls if cell is not None else type(receiver.value) if isinstance(receiver, Host) else receiver.cls  # type: ignore[union-attr]
        if isinstance(receiver, Host) and isinstance(receiver.value, type):
            cls_of = receiver.value
        return Super(receiver, cls_of, behind)  # type: ignore[arg-type]

    # -- what is called ------------------------------------------------------------------------------------------------

    def call_value(self, function: Value, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        function = self.there(function, "TypeError: 'NoneType' object is not callable")
        match function:
            case Function():
                if function.batched is not None:
                    return self._call_batched(function.batched, arguments, keywords)
                return self.call_user(function, arguments, keywords)
            case Bound(Function() as method, receiver):
                if method.batched is not None:
                    return self._call_batched(method.batched, [receiver, *arguments], keywords)
                return self.call_user(method, [receiver, *arguments], keywords)
            case Bound(str() as name, receiver):
                return self.method(receiver, name, arguments, keywords)
            case Host():
                return self._call_host(function, arguments, keywords)
            case OneOf():
                return self.method(function, "__call__", arguments, keywords)
            case Part():
                return self.call_made(function, arguments, keywords)
        found = self.method_of(function, "__call__")
        if found is None:
            raise self.refusal("PCB423", f"{self.described(function)} is called as if it were a function", CALLABLE)
        return self.call_value(found, arguments, keywords)

    def _call_host(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        value = function.value
        batched = self.batched(value)
        if batched is not None:
            return self._call_batched(batched, arguments, keywords)
        known = self.builtin_of(value)
        if known is not None:
            return self._call_known(value.__name__, known, arguments, keywords)
        self._refuse_forbidden(value)
        found = self._in_python(value, arguments, keywords)
        if found is not None:
            return found
        if isinstance(value, functools.partial):
            inner = self.host(value.func)
            first = [self.host(each) for each in value.args]
            named = {name: self.host(each) for name, each in value.keywords.items()}
            return self.call_value(inner, [*first, *arguments], {**named, **keywords})
        if isinstance(value, MethodType) and is_users(value.__func__):
            method = self.function_of(value.__func__, _owner(value))  # type: ignore[arg-type]
            if method is not None:
                return self.call_user(method, [Host(value.__self__, function.place), *arguments], keywords)
        if is_users(value):
            known_function = self.function_of(value)
            if known_function is not None:
                return self.call_user(known_function, arguments, keywords)
        if isinstance(value, type):
            return self._construct(function, value, arguments, keywords)
        if values.is_simple_class(type(value)) or dataclasses.is_dataclass(type(value)):
            found = self.of_class(function, type(value), "__call__")
            return self.call_value(found, arguments, keywords)
        return self.opaque(function, arguments, keywords)

    def _in_python(self, value: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
        """A call of what is read in another's place; None where nothing is, or where all that is given is known."""
        mine = in_python.FUNCTIONS.get(value) if isinstance(value, Hashable) else None
        if isinstance(mine, type):
            return self._construct(Host(mine), mine, arguments, keywords)
        given = [*arguments, *keywords.values()]
        if mine is None or not (self.has_lanes(given) or any(map(self._is_own, given))):
            return None
        if isinstance(mine, functools.partial):
            arguments, mine = [*map(Host, mine.args), *arguments], mine.func
        function = self.function_of(mine) if isinstance(mine, FunctionType) else None
        return self.call_value(function or Host(mine), arguments, keywords)

    def _is_own(self, value: Value) -> bool:
        """Tell whether a value is a list that may change, or a function of the user's."""
        value = self.known(value)
        is_list = isinstance(value, Ref) and self.kind(value) == "list"
        return is_list or (isinstance(value, Host) and is_users(value.value))

    def items_of(self, value: Value) -> Value:
        found = self.method_of(value, "items")
        return value if found is None else self.call_value(found, [], {})

    def _call_known(
        self, name: str, known: Callable[..., Value], arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        """A call of a built-in function that is interpreted."""
        try:
            return known(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            message = f"TypeError: {name}() is called with arguments that it does not take"
            raise self.refusal("PCB401", message, "see Python's documentation of it") from None

    def _refuse_forbidden(self, function: Any) -> None:
        """Refuse a call of what would happen once for all lanes, or asks for what they do not have."""
        found = forbidden(function)
        if found is None:
            return
        is_call = isinstance(self.node, gast.Call)
        name = unparse(self.node.func) if is_call else getattr(function, "__name__", "it")
        raise self.refusal(found.code, f"`{name}(..)` {found.why}", found.help, label=f"`{name}` is called here")

    # -- functions of the user's ---------------------------------------------------------------------------------------

    def bind(self, function: Function, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
        """The values of a function's parameters."""
        given = function.tree.args
        positional = [each.id for each in (*given.posonlyargs, *given.args)]
        found = dict(zip(positional, arguments, strict=False))
        rest = list(arguments[len(positional) :])
        if given.vararg is not None:
            found[given.vararg.id] = Tuple(tuple(rest))
        elif rest:
            raise self._unfit(function, f"{function.name} takes {len(positional)} arguments, not {len(arguments)}")
        others = dict(keywords)
        only = [each.id for each in given.kwonlyargs]
        allowed = [each.id for each in given.args] + only
        for name in allowed:
            if name in others:
                if name in found:
                    raise self._unfit(function, f"{function.name} is given `{name}` twice")
                found[name] = others.pop(name)
        if given.kwarg is not None:
            found[given.kwarg.id] = self.new("dict", others)
        elif others:
            raise self._unfit(function, f"{function.name} has no parameter `{next(iter(others))}`")
        for name, value in zip(reversed(positional), reversed(function.defaults), strict=False):
            found.setdefault(name, value)
        for name, value in function.keyword_defaults.items():
            found.setdefault(name, value)
        missing = [name for name in (*positional, *only) if name not in found]
        if missing:
            raise self._unfit(function, f"{function.name} is called without `{missing[0]}`")
        order = [
            *positional,
            *([given.vararg.id] if given.vararg else []),
            *only,
            *([given.kwarg.id] if given.kwarg else []),
        ]
        return {name: found[name] for name in order}

    def _unfit(self, function: Function, message: str) -> RefusedError:
        """The refusal of a call whose arguments do not fit a function's parameters."""
        return self.refusal("PCB202", message, f"its parameters are ({unparse(function.tree.args)})")

    def call_user(self, function: Function, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        given = self.bind(function, arguments, keywords)
        tree = function.tree
        if isinstance(tree, gast.Lambda):
            return self.in_place(function, given)
        is_inside = any(frame.function.tree is tree for frame in self.frames[1:])
        if self.batches_on_tapes():
            if is_inside:
                raise RecursionFoundError(tree)
            return self.on_a_tape(function, given)
        if tree in self._parts:
            return self.call_of_program(function, given, frozenset())
        if function.live in in_python.ONCE and self.differs_or_may(self.known(arguments[0])):
            return self._unless_refused(function, given)
        if is_inside:
            raise RecursionFoundError(tree)
        if any(spec.is_busy and spec.function.tree is tree for spec in self.specialisations.values()):
            self._parts.add(tree)
            return self.call_of_program(function, given, frozenset())
        if tree in self._in_place:
            return self._unless_recursive(function, given)
        return self._tried_in_place(function, given)

    def _unless_recursive(self, function: Function, given: dict[str, Value]) -> Value:
        """A call in place; one of a part of the program if the function turns out to call itself."""
        mark = self.mark()
        try:
            return self.in_place(function, given)
        except RecursionFoundError as error:
            if error.tree is not function.tree:
                raise
        self.back_to(mark)
        self._parts.add(function.tree)
        return self.call_of_program(function, given, frozenset())

    def _tried_in_place(self, function: Function, given: dict[str, Value]) -> Value:
        """A call in place, if it is straight or touches what is its caller's; else of a part of the program."""
        mark = self.mark()
        written = self.emitter.written
        before, faults = dict(self.state.heap), self.faults
        arrays = {each.name for each in self.state.reachable() if isinstance(each, Lane) and _is_array(each)}
        arrays |= {
            each.name
            for each in self.state.reachable(iter(given.values()))
            if isinstance(each, Lane) and _is_array(each)
        }
        found = self._unless_recursive(function, given)
        is_straight = self.emitter.written == written and cost_of(function.live) is None
        if is_straight or function.tree in self._parts:
            return found
        touched = any(self.state.heap.get(number) is not cell for number, cell in before.items())
        tells = self.faults != faults and function.file in IN_PYTHON  # a fault is told at the line of this call
        if touched or tells or not self.is_live or not self._crosses(given):
            return found
        if not self._gives_values(found, before, arrays):
            return found
        self.back_to(mark)
        result = self._unless_refused(function, given)
        if function.tree not in self._in_place:
            self._parts.add(function.tree)
        return result

    def _unless_refused(self, function: Function, given: dict[str, Value]) -> Value:
        """A call of a part of the program, if it can be one; else in place, as all others of the function then are."""
        mark = self.mark()
        if function.tree not in self._in_place:
            try:
                return self.call_of_program(function, given, frozenset())
            except RefusedError:
                self.back_to(mark)
                self._in_place.add(function.tree)
        return self._unless_recursive(function, given)

    def _crosses(self, given: Mapping[str, Value]) -> bool:
        """Return whether arguments can be passed to a function of the program: nothing refers to frames."""
        return not any(
            isinstance(each, Generator | Super) or (isinstance(each, Bound | Function) and not isinstance(each, Host))
            for each in self.state.reachable(iter(given.values()))
        )

    def _gives_values(self, found: Value, before: Mapping[int, Any], arrays: set[str]) -> bool:
        """Return whether a call's result is new: it leads to no object or array that was there before."""

        def is_old(value: Value) -> bool:
            if isinstance(value, Ref):
                return value.cell in before or self.state.heap[value.cell].is_held
            if isinstance(value, Lane) and _is_array(value):
                return not arrays.isdisjoint({value.name, *self.state.origins.get(value.name, ())})
            return isinstance(value, Function | Generator | View)

        return not any(map(is_old, self.state.reachable(iter([found]))))

    def in_place(self, function: Function, given: Mapping[str, Value]) -> Value:
        """Interpret a call where it stands."""
        if len(self.frames) > 80:
            raise self.refusal(
                "PCB312", f"{function.name} calls itself for too long", "let what it recurses over differ by lane"
            )
        loops, self.loops = self.loops, list(self.loops)
        found = self.ran(function, given)
        self.loops = loops
        frame = self._left
        slot = (0, f" value {self.number()}")
        for each in found:
            each.state.names[slot] = each.value
        self.join([(each.block, each.state) for each in found])
        if not self.is_live:
            return DEAD
        value = self.state.names.pop(slot)
        self.leave(frame)
        return value

    def _call_batched(self, batched: BatchedFunction, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of a batched function: a part of the program."""
        function = self.function_of(batched.live)
        if function is None:
            raise self.refusal("PCB100", f"the source of {batched.live.__name__} cannot be read")
        given = list(arguments)
        if batched.receiver is not None:
            given = [Host(batched.receiver), *given]
        bound = self.bind(function, given, keywords)
        for name in sorted(batched.statics & bound.keys()):
            if any(isinstance(each, Lane) for each in self.state.reachable(iter([bound[name]]))):
                raise self.no_constant(
                    "PCB310",
                    f"the static parameter `{name}` of {function.name} must be known when it is compiled, and is given "
                    f"{self.described(bound[name])}",
                    "hand on literals, static parameters, captured values and what is computed from these alone, or "
                    f"take `{name}` out of `static_argnames`",
                )
        if self.batches_on_tapes():
            return self.as_operation(batched.itself, arguments, keywords)
        return self.call_of_program(function, bound, batched.statics, batched.cost, is_by_value=True)

    # -- classes -------------------------------------------------------------------------------------------------------

    # -- libraries -----------------------------------------------------------------------------------------------------


def _is_array(lane: Lane) -> bool:
    return bool(getattr(lane.type, "shape", ()))


def _owner(method: MethodType) -> type | None:
    """The class in which a method stands."""
    cls = method.__self__ if isinstance(method.__self__, type) else type(method.__self__)
    name = method.__func__.__name__
    return next(
        (
            base
            for base in cls.__mro__
            if getattr(vars(base).get(name), "__func__", vars(base).get(name)) is method.__func__
        ),
        None,
    )
