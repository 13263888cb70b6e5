"""Expressions into ops: batched calls hoisted left to right, conditional operands that are expensive made control flow.

What has neither stays one expression of the user's Python. The order of evaluation is Python's as far as it can be
told: by assignments inside expressions and by which check fails first.
"""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gast

from pcbatch.errors import Span
from pcbatch.frontend.source.calls import Callees, Report, bind, spread_over
from pcbatch.frontend.source.changes import changed_in, takes
from pcbatch.frontend.source.nodes import (
    assigned_in,
    call,
    children,
    constant,
    dotted,
    load,
    names_in,
    replace_children,
    span_of,
    store,
    unparse,
    walk,
)
from pcbatch.frontend.source.scope import is_builtin
from pcbatch.frontend.source.scopes import renamed
from pcbatch.frontend.source.source import Closure, FunctionSource
from pcbatch.frontend.translate.chains import links, stops_if_true
from pcbatch.frontend.translate.draft import Draft
from pcbatch.frontend.translate.effects import Effects
from pcbatch.frontend.translate.functions import Versions, as_values, stand_here, stands_here, too_many
from pcbatch.frontend.translate.paths import is_same_later, readable
from pcbatch.frontend.translate.unrolling import Turns, Unrolling
from pcbatch.ir.code import Code
from pcbatch.ir.program import Branch, Call, Enter, Jump, Primitive


class Expressions(ABC):
    """Translates the expressions of one function into the blocks of `draft`.

    `function_name` gives the name in the program of a function that is called, `versions` those that take functions,
    `unrolling` what loops and comprehensions are written out.
    """

    def __init__(
        self,
        source: FunctionSource,
        callees: Callees,
        function_name: Callable[[FunctionSource], str],
        versions: Versions,
        unrolling: Unrolling,
        report: Report,
    ):
        self.source = source
        self.callees = callees
        self.function_name = function_name
        self.versions = versions
        self.unrolling = unrolling
        self.turns: Turns = ()
        """The turns of the loops around what is translated at present that are written out."""
        self.copies = 1
        """How many times it is written out."""
        self.standing: tuple[FunctionSource, ...] = ()
        """The functions whose bodies stand where they are called, at present."""
        self.report = report
        self.draft = Draft()
        self.effects = Effects(
            lambda node: callees.called(node) is not None,
            self.is_builtin,
            self._is_math,
            callees.has_calls,
            lambda node: unrolling.wants_comprehension(node, source.file),
            callees.is_called_key,
        )
        self.result = next(
            name
            for name in itertools.chain(["result"], map("result_{}".format, itertools.count(1)))
            if self._free(name)
        )
        self.variables = {*source.locals, self.result}
        callees.variables = self.variables
        self.made = {self.result}
        self._booleans: set[str] = set()
        self._temporaries = filter(self._free, map("t{}".format, itertools.count()))

    def _free(self, name: str) -> bool:
        return name not in self.source.names

    def is_builtin(self, name: str) -> bool:
        """Whether `name` means Python's builtin in this function."""
        return name not in self.source.locals and is_builtin(self.source.scope, name)

    def _is_math(self, function: Any) -> bool:
        root, _, rest = (dotted(function) or "").partition(".")
        origin = None if root in self.source.locals else self.source.scope.origin(root)
        return origin is not None and f"{origin.path}.{rest}".startswith("math.")

    def span(self, node: Any) -> Span:
        """The place of `node` in the user's source."""
        return span_of(node, self.source.file)

    # -- ops -----------------------------------------------------------------------------------------------------------

    def temporary(self) -> str:
        """A fresh variable of this function."""
        name = next(self._temporaries)
        self.variables.add(name)
        self.made.add(name)
        return name

    def places(self, node: Any) -> dict[str, Span]:
        """Where `node` reads variables: the first place of each."""
        found: dict[str, Span] = {}
        for each in walk(node):
            if isinstance(each, gast.Name) and isinstance(each.ctx, gast.Load) and hasattr(each, "lineno"):
                found.setdefault(each.id, self.span(each))
        return found

    def primitive(self, targets: Sequence[Any], value: Any, span: Span) -> None:
        """Emit `targets = .. = value`, a statement without batched calls."""
        self._emit_code(Primitive, unparse(gast.Assign(list(targets), value, None)), value, span)

    def effect(self, node: Any) -> None:
        """Emit the statement `node`, which is there for its effect."""
        self._emit_code(Primitive, unparse(node), node, self.span(node))

    def enter(self, item: Any, node: Any) -> None:
        """Emit the beginning of `node`, a `with` block, as far as one of its context managers."""
        value = self.rewrite(item.context_expr)
        header = gast.copy_location(gast.With([gast.withitem(value, item.optional_vars)], [gast.Pass()], None), node)
        self._emit_code(Enter, unparse(header), value, self.span(node))

    def _emit_code(self, kind: type[Primitive] | type[Enter], text: str, read: Any, span: Span) -> None:
        code = Code(text)
        inputs = tuple(name for name in code.reads if name in self.variables)
        self.draft.emit(kind(code.writes, inputs, code, span), self.places(read))

    def assign(self, name: str, value: Any, span: Span) -> None:
        """Emit `name = value`."""
        self.primitive([store(name)], value, span)
        if name not in self.source.locals and self.effects.is_boolean(value, self._booleans.__contains__):
            self._booleans.add(name)

    def jump(self, label: str, span: Span, *, turn: bool = False) -> None:
        """End the current block with a jump."""
        self.draft.end(Jump(label, turn, span))

    def branch(self, condition: str, true: str, false: str, span: Span) -> None:
        """End the current block with a branch."""
        self.draft.end(Branch(condition, true, false, span), {condition: span})

    # -- values --------------------------------------------------------------------------------------------------------

    def rewrite(self, node: Any) -> Any:
        """An expression of equal value that stays whole, what had to come before it having been emitted."""
        if not self.effects.splits(node):
            return as_values(self, node)
        if isinstance(node, gast.NamedExpr):
            self.into(node.value, node.target.id, self.span(node))
            return load(node.target.id, node.target)
        if self.effects.is_unrolled(node):
            return self.unrolled(node)
        if self._is_batched_call(node):
            return load(self._call(node), node)
        if takes(node):
            return load(self.take(node), node)
        if self.effects.branches(node):
            name = self.temporary()
            self.into(node, name)
            return load(name, node)
        parts = children(node)
        last = max(index for index, part in enumerate(parts) if self.effects.splits(part))
        settled = [self._settled_part(node, parts[index : last + 1]) for index in range(last)]
        behind = [as_values(self, part) for part in parts[last + 1 :]]
        return replace_children(node, [*settled, self.rewrite(parts[last]), *behind])

    @abstractmethod
    def take(self, node: Any) -> str:
        """Emit `xs.pop()`; gives the variable with its value. `Statements` knows how."""

    def _settled_part(self, node: Any, parts: Sequence[Any]) -> Any:
        """The first of these `parts` of `node`, rewritten; see `settled`."""
        first, *later = parts
        if isinstance(node, gast.Call) and first is node.func and is_same_later(self, first, later):
            return replace_children(first, [readable(self, first.value, later)])
        return self.settled(first, later)

    def settled(self, node: Any, later: Sequence[Any]) -> Any:
        """`node` rewritten such that it may be evaluated after `later` expressions, which follow it in the source."""
        if isinstance(node, gast.keyword | gast.Starred):
            return replace_children(node, [self.settled(node.value, later)])
        value = self.rewrite(node)
        if isinstance(value, gast.Slice):
            return value
        if self.effects.may_fault(value) or names_in(value) & _bound_in(later):
            return load(self._hold(value), node)
        return value

    def _hold(self, value: Any) -> str:
        name = self.temporary()
        self.assign(name, value, self.span(value))
        return name

    def operand(self, node: Any, later: Sequence[Any] = ()) -> str:
        """A variable that holds the value of `node`, still so after the `later` expressions have been evaluated."""
        value = self.rewrite(node)
        if isinstance(value, gast.Name) and value.id in self.variables and value.id not in _bound_in(later):
            return str(value.id)
        return self._hold(value)

    def into(self, node: Any, target: str, span: Span | None = None) -> None:
        """Emit what assigns the value of `node` to the variable `target`, reads of `target` in `node` coming before."""
        span = span or self.span(node)
        if self._is_batched_call(node):
            self._call(node, target)
        elif not self.effects.branches(node):
            self.assign(target, self.rewrite(node), span)
        elif isinstance(node, gast.IfExp):
            arms = [(self.draft.label(), node.body), (self.draft.label(), node.orelse)]
            self.condition(node.test, arms[0][0], arms[1][0])
            self._arms(arms, target)
        else:
            self._chain_into(node, target, span)

    def _arms(self, arms: Sequence[tuple[str, Any]], target: str) -> None:
        """Assign one of several values, each in its own block, and come together again."""
        join = self.draft.label()
        known = [self.effects.is_boolean(value, self._booleans.__contains__) for _, value in arms]
        for label, value in arms:
            self.draft.open(label)
            if not (isinstance(value, gast.Name) and value.id == target):
                self.into(value, target)
            self.jump(join, self.span(value))
        self._remember_boolean(target, all(known))
        self.draft.open(join)

    def _chain_into(self, node: Any, target: str, span: Span) -> None:
        """`a and b and ..` or `a or b or ..` as a value: the first link that decides, else the last."""
        tested = links(node, self.effects, self.temporary)
        clash = any(target in names_in(link) for link in tested[1:])
        name = self.temporary() if clash else target
        done = self.draft.label()
        known = [self.effects.is_boolean(link, self._booleans.__contains__) for link in tested]
        for index, link in enumerate(tested):
            if index:
                following = self.draft.label()
                ways = (done, following) if stops_if_true(node) else (following, done)
                if known[index - 1]:
                    self.branch(name, *ways, self.span(tested[index - 1]))
                else:
                    self.condition(load(name, tested[index - 1]), *ways)
                self.draft.open(following)
            self.into(link, name)
            self._remember_boolean(name, known[index])
        self._remember_boolean(name, all(known))
        self.jump(done, span)
        self.draft.open(done)
        if clash:
            self.assign(target, load(name), span)

    def _remember_boolean(self, name: str, known: bool) -> None:
        if known and name not in self.source.locals:
            self._booleans.add(name)
        elif name in self._booleans:
            self._booleans.remove(name)

    def _is_batched_call(self, node: Any) -> bool:
        return isinstance(node, gast.Call) and self.callees.called(node) is not None

    def _call(self, node: Any, target: str | None = None) -> str:
        """Emit the batched call `node`; returns the variable with its result, a temporary unless `target` is given."""
        closure = self.callees.closure(node.func)
        count = None if closure is None else spread_over(node, closure.source)
        if count is not None:
            node = self._spread_out(node, count)
        arguments = bind(node, closure.source, self.source, self.report) if closure is not None else None
        if closure is None or arguments is None or self.draft.current is None:  # reported, or never reached
            name = target or self.temporary()
            self.assign(name, gast.copy_location(constant(0), node), self.span(node))
            return name
        operands: dict[str, str] = {}
        functions: dict[str, Closure] = {}
        places: dict[str, Span] = {}
        for index, argument in enumerate(arguments):
            value = gast.copy_location(copy.copy(argument.value), node) if argument.default else argument.value
            if argument.default and closure.source.is_nested:
                value = renamed(value, closure.given)
            function = self.callees.closure(value)
            if function is not None:
                functions[argument.parameter] = self._defined(function) if isinstance(value, gast.Lambda) else function
                continue
            later = [each.value for each in arguments[index + 1 :]]
            operands[argument.parameter] = name = self.operand(value, later)
            places.setdefault(name, self.span(value))
        result = target or self.temporary()
        if not functions and stands_here(self, closure):
            stand_here(self, closure, operands, result)
            return result
        if functions and self.versions.are_many(closure.source):
            self.report(too_many(node, self.span(node)))
            self.assign(result, gast.copy_location(constant(0), node), self.span(node))
            return result
        callee, given = self.versions.version(closure, functions)
        operands |= given
        places = {**dict.fromkeys(given.values(), self.span(node)), **places}
        ordered = tuple(operands[parameter.name] for parameter in callee.parameters)
        self.draft.emit(Call((result,), self.function_name(callee), ordered, self.span(node)), places)
        return result

    def _defined(self, function: Closure) -> Closure:
        """The function that a lambda is, its defaults evaluated."""
        held = {name: self.held(value) for name, value in function.defaults.items()}
        return replace(function, given={**function.given, **held}, defaults={})

    def _spread_out(self, node: Any, count: int) -> Any:
        """`f(a, *rest)` with the `count` parts of `rest` written out."""
        *before, last = node.args
        names = [self.temporary() for _ in range(count)]
        target = gast.Tuple([store(name) for name in names], gast.Store())
        self.primitive([target], self.rewrite(last.value), self.span(last))
        parts = [load(name, last) for name in names]
        return gast.copy_location(gast.Call(node.func, [*before, *parts], node.keywords), node)

    @abstractmethod
    def statement(self, node: Any) -> None:
        """Translate a statement; see `Statements`."""

    @abstractmethod
    def unrolled(self, node: Any) -> Any:
        """A comprehension with batched calls, written out; see `Statements`."""

    def held(self, node: Any) -> str:
        """A fresh variable with the value of `node`."""
        return self._hold(self.rewrite(node))

    # -- conditions ----------------------------------------------------------------------------------------------------

    def condition(self, node: Any, true: str, false: str) -> None:
        """End the current block by going to `true` or `false` as the truth of `node` says."""
        match node:
            case gast.Constant(value=value):
                self.jump(true if value else false, self.span(node))
            case gast.UnaryOp(op=gast.Not(), operand=operand) if self.effects.controls(operand):
                self.condition(operand, false, true)
            case gast.IfExp() if self.effects.branches(node):
                arms = [(self.draft.label(), node.body), (self.draft.label(), node.orelse)]
                self.condition(node.test, arms[0][0], arms[1][0])
                for label, arm in arms:
                    self.draft.open(label)
                    self.condition(arm, true, false)
            case gast.BoolOp() | gast.Compare() if self.effects.controls(node):
                self._chain(node, true, false)
            case _:
                self.branch(self._truth(node), true, false, self.span(node))

    def _chain(self, node: Any, true: str, false: str) -> None:
        *tested, last = links(node, self.effects, self.temporary)
        for link in tested:
            following = self.draft.label()
            self.condition(link, *((true, following) if stops_if_true(node) else (following, false)))
            self.draft.open(following)
        self.condition(last, true, false)

    def _truth(self, node: Any) -> str:
        """A bool variable with the truth of `node`."""
        value = self.rewrite(node)
        if isinstance(value, gast.Name) and value.id in self._booleans:
            return str(value.id)
        if not self.effects.is_boolean(value, self._booleans.__contains__):
            value = call("bool", value) if self.is_builtin("bool") else _not(_not(value))
        return self._hold(value)


def _bound_in(nodes: Sequence[Any]) -> frozenset[str]:
    """The names that `nodes` assign, or of which they change a part."""
    return assigned_in(nodes) | changed_in(nodes)


def _not(node: Any) -> Any:
    return gast.copy_location(gast.UnaryOp(gast.Not(), node), node)
