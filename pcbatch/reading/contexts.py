"""`with` statements: context managers of libraries, which are entered in one piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any

import gast

from pcbatch.frontend.nodes import assigned_in, span_of, walk
from pcbatch.frontend.scope import LiveScope
from pcbatch.frontend.source import FunctionSource, Parameter
from pcbatch.ir import program as ir
from pcbatch.ir.expressions import dotted, resolved
from pcbatch.ir.payload import Compute, Pattern
from pcbatch.ir.types import TensorType
from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.reading.builtins import Builtins
from pcbatch.reading.calls import RecursionFoundError
from pcbatch.reading.core import NeedsBlocksError, RefusedError
from pcbatch.reading.described import a
from pcbatch.reading.emitter import Template
from pcbatch.reading.operations import (
    SITE,
    Named,
    ObjectOperation,
    Operation,
    call_of,
    expressions_of,
    held_in,
    library,
    method_of_held,
)
from pcbatch.reading.sources import known_as
from pcbatch.reading.values import NONE, Bound, Frame, Function, Host, Lane, Ref, Tuple, Undefined, Value


class Contexts(Builtins):
    """`with` statements."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._entered_at: dict[str, tuple[Any, Any, int]] = {}
        """Results of context managers that no lane can keep, with the block, and its number of ops before."""

    def on_a_tape(self, function: Function, given: dict[str, Value]) -> Value:
        """A call in place, if no blocks are needed; else one operation, for which the function is batched by itself."""
        mark = self.mark()
        self.straight += 1
        try:
            found = self._unless_recursive(function, given)
            self.straight -= 1
            return found
        except NeedsBlocksError:
            if function.live is None or function.tree.args.kwonlyargs or function.tree.args.kwarg is not None:
                raise
        except RecursionFoundError as error:
            if error.tree is not function.tree:
                raise
        self.back_to(mark)
        batched = self.read_function.inner(function.live, lambda: (function.live, None))
        return self.as_operation(batched, [*given.values()], {})

    def as_operation(self, batched: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        """A call of a batched function as one operation, through which gradients on a tape in the body go."""
        name = dotted(self.bound(Host(batched)).text)
        run = Operation(
            None,
            lambda given, named: call_of(dotted("__run__"), [name, *given], named),
            lambda ops, given, named: ops.run(batched, *given, site=SITE, **named),
        )
        named = {name: self._given_by_value(each) for name, each in keywords.items()}
        return self.emit(run, [self._given_by_value(each) for each in arguments], named)

    def _given_by_value(self, value: Value) -> Any:
        """An argument of such a call; a list is a tuple there, as nothing that is given is changed."""
        found = self.pattern(value)
        return tuple(found) if isinstance(found, list) else found

    def batches_on_tapes(self) -> bool:
        """Tell whether functions and statements are batched by themselves here: on tapes, not in forward mode."""
        is_forward = any(hasattr(each, "jvp") for each in self.contexts)
        return self.is_on_a_tape() and self.read_function is not None and not is_forward

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
            self._statement_inside(statement)
            if self.emitter.current is not block:
                raise self.refusal(
                    "PCB107",
                    "control flow inside of `with`",
                    "keep assignments in the block, and decide after it",
                    node=statement,
                    label="this leaves the block, or branches in it",
                )
        return None

    # -- what takes blocks, on a gradient tape -------------------------------------------------------------------------

    def _statement_inside(self, statement: Any) -> None:
        """Interpret a statement; on a gradient tape one that takes blocks is a batched function, and one operation."""
        if not self.batches_on_tapes():
            return self.statements([statement])
        mark = self.mark()
        self.straight += 1
        try:
            self.statements([statement])
            self.straight -= 1
            return None
        except NeedsBlocksError:
            self.back_to(mark)
        outlined = self._outlined(statement)
        if outlined is None:
            return self.statements([statement])  # which refuses it
        batched, arguments, results = outlined
        self.node = statement
        self.store(
            gast.Tuple([_name(each, gast.Store()) for each in results], gast.Store()),
            self.as_operation(batched, arguments, {}),
        )
        return None

    def _outlined(self, statement: Any) -> tuple[Any, list[Value], tuple[str, ...]] | None:
        """A statement as a batched function of what differs by lane: with its arguments, and what it assigns.

        What is known is part of it: numbers as constants, everything else as closures. None where that cannot be.
        """
        if any(isinstance(each, _UNFIT) for each in walk(statement)):
            return None
        before: list[Any] = []
        arguments: dict[str, Value] = {}
        cells: dict[str, Any] = {}
        waiting = _names(statement)
        assigned = assigned_in([statement])
        around = LiveScope(self.frame.function.outermost.live)
        for name in waiting:
            value = self._local(name)
            match value:
                case None:
                    is_around = name not in assigned and self.backend.is_variable(next(around.values(name), None))
                    if is_around:  # a gradient may be taken by it
                        arguments[name] = self.lookup(name, statement)
                case Host(None | bool() | int() | float() | str() as constant) if type(constant) in _CONSTANTS:
                    before.insert(0, gast.Assign([_name(name, gast.Store())], gast.Constant(constant, None)))
                case Host(place=Place(kind="held")):
                    return None
                case Host():
                    cells[name] = value.value
                case Function(tree=gast.FunctionDef() as tree, frame=Frame() as frame) if frame is self.frame:
                    before.append(tree)
                    waiting += [
                        each.id for each in walk(tree) if isinstance(each, gast.Name) and each.id not in waiting
                    ]
                case Function(live=live, frame=None) if live is not None:
                    cells[name] = live
                case Lane() | Tuple() | Ref():
                    arguments[name] = value
                case _:
                    return None
        after = {each.id for each in walk(self.frame.function.tree) if _is_read_behind(each, statement)}
        results = tuple(name for name in assigned if self._local(name) is not None or name in after)
        if not results and any(isinstance(value, Ref) for value in arguments.values()):
            return None  # it may be there to change what it is given
        if not results:  # lanes may fail in it: a number keeps the operation
            results = (f"_{statement.lineno}_nothing",)
            before.insert(0, gast.Assign([_name(results[0], gast.Store())], gast.Constant(0, None)))
        key = statement, tuple(arguments), tuple((n, id(v)) for n, v in cells.items()), tuple(map(gast.dump, before))
        tree = _definition(f"{self.frame.function.name}_{statement.lineno}", arguments, before, statement, results)
        batched = self.read_function.inner(key, lambda: self._live(tree, arguments, cells))
        return batched, [*arguments.values()], results

    def _live(self, tree: Any, parameters: Iterable[str], cells: Mapping[str, Any]) -> tuple[Any, FunctionSource]:
        """A function that stands for a tree, and its source."""
        around = self.frame.function.outermost.live
        free = dict(zip(around.__code__.co_freevars, around.__closure__ or (), strict=True))
        free |= {name: CellType(value) for name, value in cells.items()}
        names, used = ", ".join(parameters), ", ".join((*free, ""))
        text = f"def _around({', '.join(free)}):\n def {tree.name}({names}):\n  ({used})\n return {tree.name}"
        found: dict[str, Any] = {}
        exec(compile(text, self.frame.function.file, "exec"), found)
        code = found["_around"](*free).__code__
        function = FunctionType(code, around.__globals__, tree.name, None, tuple(free[n] for n in code.co_freevars))
        known_as(function, tree)
        file = self.frame.function.file
        given = tuple(Parameter(name, "either") for name in parameters)
        names_ = assigned_in(tree.body) | {*parameters}
        scope = LiveScope(function)
        return function, FunctionSource(tree.name, tree.name, file, tree, given, span_of(tree, file), names_, scope)

    def _local(self, name: str) -> Value | None:
        """The value of a variable of the functions that are interpreted; None where it has none."""
        values = (self.state.names.get((frame.number, name)) for frame in self.frame.around)
        found = next((each for each in values if each is not None), None)
        return None if found is None or isinstance(found, Undefined) else self.read(found)

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


_CONSTANTS = frozenset({type(None), bool, int, float, str})
_UNFIT = gast.Return | gast.Yield | gast.YieldFrom | gast.Nonlocal | gast.Import | gast.ImportFrom


def _names(tree: Any) -> list[str]:
    return list(dict.fromkeys(each.id for each in walk(tree) if isinstance(each, gast.Name)))


def _name(name: str, context: Any) -> Any:
    return gast.Name(name, context, None, None)


def _is_read_behind(node: Any, statement: Any) -> bool:
    """Tell whether a node is a name that is read behind a statement."""
    return isinstance(node, gast.Name) and isinstance(node.ctx, gast.Load) and node.lineno > statement.end_lineno


def _definition(
    name: str, parameters: Iterable[str], before: Sequence[Any], statement: Any, results: Sequence[str]
) -> Any:
    """The tree of a function of a statement."""
    given = [_name(each, gast.Param()) for each in parameters]
    arguments = gast.arguments(given, [], None, [], [], None, [])
    back = gast.Return(gast.Tuple([_name(each, gast.Load()) for each in results], gast.Load()))
    tree = gast.FunctionDef(name, arguments, [*before, statement, back], [], None, None, [])
    for node in (tree, *before, back):
        for each in walk(node):
            if not hasattr(each, "lineno"):
                gast.copy_location(each, statement)
    return tree
