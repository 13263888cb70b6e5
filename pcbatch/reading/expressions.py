"""Expressions, evaluated as Python does: from the left to the right, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gast

from pcbatch.reading.core import FilteredError, NeedsBlocksError, RefusedError
from pcbatch.reading.meeting import End
from pcbatch.reading.operators import Operators
from pcbatch.reading.sources import COMPREHENSIONS
from pcbatch.reading.values import Frame, Function, Generator, Host, Lane, Tuple, Undefined, Value

DEAD = Undefined("PCB303", "nothing gets here")


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of a decided test: the blocks in which it holds, and those in which it does not."""

    true: list[End]
    false: list[End]


_PLAIN = (gast.Constant, gast.Name)
"""Expressions whose values come about without any change of what there is."""


class Expressions(Operators):
    """Python's expressions."""

    # of parts above
    attribute: Callable[[Value, str], Value]
    filtered: Callable[[Any, FilteredError], Value]
    spend: Callable[[Value], None]
    store: Callable[[Any, Value], None]

    def expression(self, node: Any, hint: str = "") -> Value:
        """The value of an expression, which goes by the name `hint`."""
        if not self.is_live:
            return DEAD
        before, self.node, self.hint = (self.node, self.hint), node, hint
        try:
            found = self._visited(node)
        finally:
            self.node, self.hint = before
        return found if self.is_live else DEAD

    def _visited(self, node: Any) -> Value:
        """The value; `DEAD` if it is refused where nothing gets, as behind a call of which no result is known yet."""
        try:
            found: Value = getattr(self, f"visit_{type(node).__name__}")(node)  # no others get through the syntax check
        except RefusedError:
            if self.is_live:
                raise
            return DEAD
        return found

    def evaluated(self, nodes: Sequence[Any]) -> list[Value]:
        """The values of expressions, one after the other; starred ones give their items."""
        if all(type(node) in _PLAIN for node in nodes):
            return [self.expression(node) for node in nodes]
        with self.kept() as row:
            for node in nodes:
                if isinstance(node, gast.Starred):
                    row.append(*self.sequence(self.expression(node.value)))
                else:
                    row.append(self.expression(node))
            return [*row]

    def visit_Constant(self, node: Any) -> Value:
        return Host(node.value)

    def visit_Name(self, node: Any) -> Value:
        return self.lookup(node.id, node)

    def visit_Attribute(self, node: Any) -> Value:
        return self.attribute(self.expression(node.value), node.attr)

    def visit_Subscript(self, node: Any) -> Value:
        with self.kept([self.expression(node.value)]) as row:
            index = self.index(node.slice)
            whole = row[0]
        return self.item(whole, index) if self.is_live else DEAD

    def visit_Tuple(self, node: Any) -> Value:
        return Tuple(tuple(self.evaluated(node.elts)))

    def visit_List(self, node: Any) -> Value:
        with self.wanting():
            return self.new_container("list", tuple(self.evaluated(node.elts)))

    def visit_Set(self, node: Any) -> Value:
        return self.set_of(self.evaluated(node.elts))

    def visit_Dict(self, node: Any) -> Value:
        with self.kept() as keys, self.kept() as row:
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    entries = self.entries(self.expression(value))
                    keys.append(*map(self.host, entries))
                    row.append(*entries.values())
                else:
                    keys.append(self.expression(key))
                    row.append(self.expression(value))
            return self.dict_of([*keys], [*row])

    def visit_BinOp(self, node: Any) -> Value:
        row = self.evaluated([node.left, node.right])
        return self.binary(type(node.op), *row) if self.is_live else DEAD

    def visit_UnaryOp(self, node: Any) -> Value:
        if isinstance(node.op, gast.Not):
            return self.negated(self.condition(node.operand)) if self.is_live else DEAD
        value = self.expression(node.operand)
        return self.unary(type(node.op), value) if self.is_live else DEAD

    def visit_NamedExpr(self, node: Any) -> Value:
        value = self.expression(node.value, node.target.id)
        if self.is_live:
            self.assign_walrus(node.target.id, value)
        return value

    def assign_walrus(self, name: str, value: Value) -> None:
        """An assignment inside of an expression: it goes to the function around comprehensions."""
        around = (each for each in self.frame.around if not isinstance(each.function.tree, COMPREHENSIONS))
        self.assign_in(next(around), name, value)

    def visit_Lambda(self, node: Any) -> Value:
        defaults = tuple(self.evaluated(node.args.defaults))
        names = [each.id for each in node.args.kwonlyargs]
        given = zip(names, node.args.kw_defaults, strict=True)
        keyword = {name: self.expression(each) for name, each in given if each is not None}
        made = Function("<lambda>", node, self.file, self.frame, None, defaults, keyword)
        self.escape(made)
        return made

    def visit_JoinedStr(self, node: Any) -> Value:
        texts = []
        for part in node.values:
            if isinstance(part, gast.Constant):
                texts.append(str(part.value))
                continue
            value = self.read(self.expression(part.value))
            spec = "" if part.format_spec is None else self.constant(self.expression(part.format_spec), "a format")
            known = self.constant_text(value)
            conversions: dict[int, Callable[[Any], Any]] = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}
            convert = conversions[part.conversion]
            texts.append(format(convert(known), spec))
        return Host("".join(texts))

    def constant_text(self, value: Value) -> Any:
        """A value that goes into a text: one that is known."""
        if isinstance(value, Lane):
            raise self.no_text()
        return self.constant(value, "what goes into a text")

    # -- truth and choice ----------------------------------------------------------------------------------------------

    def condition(self, node: Any) -> Host | Lane:
        """The truth of an expression, of which nothing else is asked."""
        if not self.is_live:
            return Host(False)
        before, self.node = self.node, node
        try:
            match node:
                case gast.BoolOp(op=op, values=values):
                    return self._all_or_any(isinstance(op, gast.And), values)
                case gast.UnaryOp(op=gast.Not(), operand=operand):
                    return self.negated(self.condition(operand))
                case gast.IfExp(test=test, body=body, orelse=orelse):
                    chosen = self.condition(test)
                    if isinstance(chosen, Host):
                        return self.condition(body if chosen.value else orelse)
                    found = self.choose(chosen, lambda: self.condition(body), lambda: self.condition(orelse))
                    return self.truth(found)
        finally:
            self.node = before
        value = self.expression(node)
        before, self.node = self.node, node
        try:
            return self.truth(value) if self.is_live else Host(False)
        finally:
            self.node = before

    def decided(self, node: Any) -> Host | Lane | Ends:
        """The truth of a test; where part of it takes blocks, the ends at which it holds, and those at which not."""
        match node:
            case gast.UnaryOp(op=gast.Not(), operand=operand):
                found = self.decided(operand)
                if isinstance(found, Ends):
                    return Ends(found.false, found.true)
                return self.negated(found)
            case gast.BoolOp(op=op, values=values) if not self.straight:
                return self._decided_by(isinstance(op, gast.And), values)
        return self.condition(node)

    def _decided_by(self, is_and: bool, values: Sequence[Any]) -> Host | Lane | Ends:
        first, *rest = values
        found = self.decided(first)
        if not rest or (not self.is_live and not isinstance(found, Ends)):
            return found
        if isinstance(found, Host):
            return self._decided_by(is_and, rest) if found.value == is_and else found
        if isinstance(found, Lane):
            return self._decided_from(is_and, found, rest)
        return self._after(is_and, found, rest)

    def _after(self, is_and: bool, found: Ends, rest: Sequence[Any]) -> Ends:
        """A test of which the first parts have been decided by blocks."""
        on, off = (found.true, found.false) if is_and else (found.false, found.true)
        self.join(on)
        last = self.ends_of(self._decided_by(is_and, rest) if self.is_live else Ends([], []))
        if is_and:
            return Ends(last.true, [*off, *last.false])
        return Ends([*off, *last.true], last.false)

    def _decided_from(self, is_and: bool, so_far: Host | Lane, rest: Sequence[Any]) -> Host | Lane | Ends:
        """A test of which the truth of the first parts together is known."""
        if not rest:
            return so_far
        if isinstance(so_far, Host):
            return self._decided_by(is_and, rest) if so_far.value == is_and else so_far
        mark = self.mark()
        counts = so_far if is_and else self.negated(so_far)
        assert isinstance(counts, Lane)
        try:
            other = self.straightly(counts, lambda: self.condition(rest[0]))
            combined = self.both if is_and else self.either
            return self._decided_from(is_and, combined(so_far, other), rest[1:])  # type: ignore[arg-type]
        except NeedsBlocksError:
            self.back_to(mark)
        return self._after(is_and, self.ends_of(so_far), rest)

    def ends_of(self, found: Host | Lane | Ends) -> Ends:
        """The ends at which a truth holds, and those at which not."""
        if isinstance(found, Ends):
            return found
        if not self.is_live:
            return Ends([], [])
        assert self.emitter.current is not None
        if isinstance(found, Host):
            here = [(self.emitter.current, self.state)]
            self.emitter.enter(None)
            return Ends(here, []) if found.value else Ends([], here)
        true, false = self.emitter.block(), self.emitter.block()
        self.emitter.branch(found, true, false, self.span())
        other = self.state.copy()
        self.state.assume(found.name, True)
        other.assume(found.name, False)
        return Ends([(true, self.state)], [(false, other)])

    def _all_or_any(self, is_and: bool, values: Sequence[Any]) -> Host | Lane:
        so_far = self.condition(values[0])
        for each in values[1:]:
            so_far = self.lazily(is_and, so_far, partial(self.condition, each))
            if not self.is_live:
                return Host(False)
        return so_far

    def lazily(self, is_and: bool, a: Host | Lane, b: Callable[[], Value]) -> Host | Lane:
        """`a and b()` or `a or b()` of truths; what `b` does counts only where Python would evaluate it."""
        if isinstance(a, Host):
            return self.truth(b()) if a.value == is_and else a
        found = self._combined(is_and, a, b)
        if found is not None:
            return found
        arms: list[Callable[[], Value]] = [lambda: self.truth(b()), lambda: Host(not is_and)]
        return self.truth(self.fork(a, arms if is_and else arms[::-1]))

    def _combined(self, is_and: bool, a: Lane, b: Callable[[], Value]) -> Host | Lane | None:
        """`a and b()` or `a or b()`, both computed; None, and nothing is done, where that takes blocks."""
        mark = self.mark()
        try:
            counts = a if is_and else self.negated(a)
            assert isinstance(counts, Lane)
            other = self.straightly(counts, lambda: self.truth(b()))
            combined = self.both if is_and else self.either
            return combined(a, other)  # type: ignore[arg-type]
        except NeedsBlocksError:
            self.back_to(mark)
        return None

    def visit_BoolOp(self, node: Any) -> Value:
        is_and = isinstance(node.op, gast.And)
        found = self.expression(node.values[0])
        for each in node.values[1:]:
            if not self.is_live:
                return DEAD
            so_far = self.truth(found)
            if isinstance(so_far, Host):
                if so_far.value == is_and:
                    found = self.expression(each)
                    continue
                return found
            other = self.chained(is_and, found, so_far, each)
            if other is not None:
                found = other
                continue
            arms: list[Callable[[], Value]] = [partial(self.expression, each), partial(self.known, found)]
            found = self.fork(so_far, arms if is_and else arms[::-1])
        return found

    def chained(self, is_and: bool, found: Value, so_far: Lane, node: Any) -> Value | None:
        """`found and node`, of which the truth of `found` is known; None where that takes blocks."""
        type_ = self.type_of(found)
        if type_ is not None and type_.dtype == "bool" and self._means_bool(node):
            return self._combined(is_and, so_far, partial(self.condition, node))

        def operand() -> Value:
            value = self.expression(node)
            self.refuse_mixture("and" if is_and else "or", found, value)
            return value

        arms: list[Callable[[], Value]] = [operand, partial(self.known, found)]
        return self.choose_straightly(so_far, *(arms if is_and else arms[::-1]))

    def _means_bool(self, node: Any) -> bool:
        match node:
            case gast.Compare() | gast.UnaryOp(op=gast.Not()):
                return True
            case gast.BoolOp(values=values):
                return all(map(self._means_bool, values))
        return False

    def visit_IfExp(self, node: Any) -> Value:
        chosen = self.condition(node.test)
        if not self.is_live:
            return DEAD
        if isinstance(chosen, Host):
            return self.expression(node.body if chosen.value else node.orelse)
        return self.choose(chosen, lambda: self.expression(node.body), lambda: self.expression(node.orelse))

    def visit_Compare(self, node: Any) -> Value:
        row = self.evaluated([node.left, node.comparators[0]])
        if not self.is_live:
            return DEAD
        found = self.compare(type(node.ops[0]), *row)
        if len(node.ops) == 1:
            return found
        middle = row[1]
        truth = self.truth(found)
        return self._chain(truth, middle, node.ops[1:], node.comparators[1:])

    def _chain(self, so_far: Host | Lane, left: Value, ops: Sequence[Any], nodes: Sequence[Any]) -> Value:
        if not ops:
            return so_far

        def rest() -> Value:
            with self.kept([left]) as row:
                right = self.expression(nodes[0])
                first = row[0]
            return self._chain(self.truth(self.compare(type(ops[0]), first, right)), right, ops[1:], nodes[1:])

        return self.lazily(True, so_far, rest)

    # -- comprehensions ------------------------------------------------------------------------------------------------

    def _scoped(self, node: Any) -> Frame:
        return Frame(self.number(), Function("comprehension", node, self.file, self.frame))

    def visit_ListComp(self, node: Any) -> Value:
        mark = self.mark()
        try:
            return self.new_container("list", tuple(self.listed(node)))
        except FilteredError as error:
            self.back_to(mark)
            return self.filtered(node, error)

    def listed(self, node: Any, first: Value | None = None) -> list[Value]:
        """The elements of a comprehension, written out one after the other."""
        with self.kept() as row:
            self._written_out(node, lambda: row.append(self.expression(node.elt)), first)
            return [*row]

    def visit_SetComp(self, node: Any) -> Value:
        return self.set_of(self.listed(node))

    def visit_DictComp(self, node: Any) -> Value:
        def add() -> None:
            keys.append(self.expression(node.key))
            row.append(self.expression(node.value))

        with self.kept() as keys, self.kept() as row:
            self._written_out(node, add)
            return self.dict_of([*keys], [*row])

    def visit_GeneratorExp(self, node: Any) -> Value:
        made = Generator(node, self.frame, self.expression(node.generators[0].iter))
        self.escape(made)
        return made

    def generated(self, value: Generator) -> list[Value]:
        """The items of a generator."""
        self.spend(value)
        return self.within_frame(value.frame, lambda: self.listed(value.tree, value.first))

    def within_frame(self, frame: Frame, what: Callable[[], Any]) -> Any:
        """Run `what` inside of a call that is around."""
        if frame is self.frame:
            return what()
        self.frames.append(frame)
        try:
            return what()
        finally:
            self.frames.pop()

    def _written_out(self, node: Any, add: Callable[[], Any], first: Value | None = None) -> None:
        first = self.expression(node.generators[0].iter) if first is None else first
        self.frames.append(self._scoped(node))
        try:
            self._over(node.generators, add, first)
        finally:
            self.leave(self.frames.pop())

    def _over(self, generators: Sequence[Any], add: Callable[[], Any], first: Value | None = None) -> None:
        if not generators:
            if self.is_live:
                add()
            return
        generator, *rest = generators
        whole = self.expression(generator.iter) if first is None else first
        for item in self.live(whole):
            if not self.is_live:
                return
            self.store(generator.target, item)
            self._if_all(generator.ifs, lambda: self._over(rest, add))

    def _if_all(self, tests: Sequence[Any], what: Callable[[], None]) -> None:
        for test in tests:
            found = self.condition(test)
            if isinstance(found, Lane):
                raise FilteredError(self.no_list(test).diagnostic)
            if not found.value:
                return
        what()
