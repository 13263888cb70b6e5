"""A `for` loop written out, turn by turn, for what must be known in each: an index of a list, a size, a key.

    for i in range(2):           i = 0; xs = __changed__(xs, 'append', x ** 1)
        xs.append(x ** (i + 1))  i = 1; xs = __changed__(xs, 'append', x ** 2)

`break`, `continue` and `else` jump as in a loop, and each turn counts as one. Where the body leaves a target alone that
is a number, a text or something from around the function, that stands in its place (`substituted` does it); so does
`ps[0]` for an object `p` of a list `ps` of which the body changes a part, since Python shows the change in the list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gast

from pcbatch.errors import Diagnostic
from pcbatch.frontend.source.changes import changed_in, root_of, steps_of
from pcbatch.frontend.source.iteration import range_arguments, wrapper
from pcbatch.frontend.source.nodes import assigned_in, call, constant, literal, load, names_in, walk
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.ranges import INDEX
from pcbatch.frontend.translate.sequences import ELEMENT, LENGTH, SEQUENCE
from pcbatch.frontend.translate.substitution import substituted
from pcbatch.ir.pseudo_builtins import COUNT

TURNS = "__turns__"
"""The pseudo-builtin that refuses a number of turns that is not the one known."""
_VIEWS = ("items", "keys", "values")


@dataclass(frozen=True)
class _Over:
    """What a loop goes over: what says how many turns there are, and the element for a turn.

    Turns below 0 count from the end of what it goes over, which another sequence beside it may cut short.
    """

    ends: tuple[Any, ...]
    element: Callable[[int], Any]
    strict: bool = False


class WrittenOut:
    """The parts of one loop, emitted through `code` in the order start, turn, turn, .."""

    def __init__(self, code: Expressions, node: Any):
        self.code = code
        self.node = node
        self.span = code.span(node)
        self.assigned = assigned_in(node.body)
        self.changed = changed_in(node.body)
        self.count = 0

    def known(self) -> int | None:
        """How many turns there are, as far as that is known before anything is emitted."""
        seen = self._seen(self.node.iter)
        return self.code.unrolling.length(self.span, self.code.turns) if seen is None else seen

    def start(self, count: int | None) -> None:
        """Emit what the loop goes over, and what refuses another number of turns than `count`."""
        self.count = count or 0
        found = range_arguments(self.node.iter, self.code.is_builtin)
        self.over = self._range(*found) if found is not None else self._sequence(self.node.iter)
        if self._seen(self.node.iter) is None:
            self._ask(count)

    def _ask(self, count: int | None, more: dict[str, Any] | None = None) -> None:
        turns = self._placed(gast.Tuple([constant(each) for each in self.code.turns], gast.Load()))
        question = call(TURNS, self._placed(constant(count)), turns, *self.over.ends)
        options = {"strict": constant(True)} if self.over.strict else {}
        if range_arguments(self.node.iter, self.code.is_builtin) is not None:
            question.args[2:] = []
            options = {"bounds": self._tuple(*self.over.ends)}
        question.keywords = [gast.keyword(name, value) for name, value in (options | (more or {})).items()]
        self.code.assign(self.code.temporary(), question, self.span)

    def turn(self, number: int) -> list[Any]:
        """Emit what the targets are in this turn; gives the statements of its body."""
        places: dict[str, Any] = {}
        self._bind(self.node.target, self.over.element(number), places)
        return [substituted(each, places) for each in self.node.body] if places else list(self.node.body)

    def _bind(self, target: Any, value: Any, places: dict[str, Any]) -> None:
        parts = value.elts if isinstance(value, gast.Tuple) else []
        if isinstance(target, gast.Tuple | gast.List) and len(parts) == len(target.elts):
            for each, part in zip(target.elts, parts, strict=True):
                self._bind(each, part, places)
            return
        if isinstance(target, gast.Name) and target.id not in self.assigned and self._may_stand(target.id, value):
            places[target.id] = _as_path(value)
            if self._is_function(value):
                return
        self.code.primitive([target], value, self.code.span(target))

    def _may_stand(self, name: str, value: Any) -> bool:
        """Whether an element may stand for the target `name`, which the body does not assign."""
        if isinstance(value, gast.Constant) or literal(value) is not None:
            return True
        if self._is_free(value) or self._is_function(value):
            return name not in self.changed
        root = root_of(_whole(value))
        if root not in self.code.source.locals or root in self.changed or name not in self.changed:
            return False
        return self._is_object(name)

    def _is_object(self, name: str) -> bool:
        """Whether nothing in the body changes `name` as if it were an array."""
        every = (each for node in self.node.body for each in walk(node))
        stores = (each for each in every if isinstance(each, gast.Subscript) and not isinstance(each.ctx, gast.Load))
        firsts = (steps_of(each)[0] for each in stores if root_of(each) == name)
        return all(isinstance(each, gast.Attribute) or _is_text(each.slice) for each in firsts)

    def _seen(self, node: Any) -> int | None:
        """How many elements there are, where the source says it."""
        found = range_arguments(node, self.code.is_builtin)
        if found is not None:
            numbers = [each for each in map(literal, found[0]) if each is not None]
            return len(range(*numbers)) if len(numbers) == len(found[0]) else None
        match wrapper(node, self.code.is_builtin):
            case None:
                return len(node.elts) if _is_display(node) else None
            case "zip":
                strict = any(keyword.value.value for keyword in node.keywords)
                lengths = [self._seen(each) for each in node.args]
                known = [each for each in lengths if each is not None]
                return None if strict or len(known) < len(lengths) else min(known)
        return self._seen(node.args[0])

    # -- what the loop goes over ---------------------------------------------------------------------------------------

    def end(self) -> None:
        """Emit, behind the last turn, what refuses a sequence that has got longer: Python's loop would go on."""
        if self.changed & {name for each in self.over.ends for name in names_in(each)}:
            self._ask(self.count, {"is_end": constant(True)})

    def _range(self, arguments: list[Any], backwards: bool) -> _Over:
        bounds = tuple(self._bound(each) for each in arguments)
        start = bounds[0] if len(bounds) > 1 else constant(0)
        step = bounds[2] if len(bounds) > 2 else constant(1)

        def element(turn: int) -> Any:
            turn = -1 - turn if backwards else turn
            known = [each for each in map(literal, (start, step, *bounds)) if each is not None]
            if len(known) == 2 + len(bounds):
                return self._placed(constant(range(*known[2:])[turn]))
            place = self._placed(constant(turn))
            if turn < 0:
                place = self._placed(gast.BinOp(call(LENGTH, call(COUNT, *bounds)), gast.Add(), place))
            elif literal(start) is not None and literal(step) is not None:
                return self._placed(constant(known[0] + turn * known[1]))
            offset = self._placed(gast.BinOp(place, gast.Mult(), step))
            return self._placed(gast.BinOp(start, gast.Add(), offset))

        return _Over(bounds, element)

    def _bound(self, node: Any) -> Any:
        """An argument of the range, evaluated once."""
        if literal(node) is not None:
            return node
        return self._held(call(INDEX, self.code.rewrite(node)), node)

    def _sequence(self, node: Any) -> _Over:
        found = range_arguments(node, self.code.is_builtin)
        if found is not None:
            over = self._range(*found)
            return replace(over, ends=(call(COUNT, *over.ends),))
        name = wrapper(node, self.code.is_builtin)
        if name is None:
            return self._elements(node)
        inner = [self._sequence(each) for each in (node.args if name == "zip" else node.args[:1])]
        ends = tuple(end for each in inner for end in each.ends)
        strict = any(each.strict for each in inner)
        if name == "zip":
            strict |= any(keyword.value.value for keyword in node.keywords)
            return _Over(ends, lambda turn: self._tuple(*(each.element(turn) for each in inner)), strict)
        (only,) = inner
        if name == "reversed":
            last = self._last(ends)
            return _Over(ends, lambda turn: only.element(last - turn), strict)
        arguments = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
        start = self._bound(arguments[0]) if arguments else constant(0)

        def numbered(turn: int) -> Any:
            first = literal(start)
            number = constant(turn) if first is None else constant(first + turn)
            placed = self._placed(number)
            placed = self._placed(gast.BinOp(start, gast.Add(), placed)) if first is None else placed
            return self._tuple(placed, only.element(turn))

        return _Over(ends, numbered, strict)

    def _last(self, ends: tuple[Any, ...]) -> int:
        """The turn that has the last element of what is reversed: from its end, where others may cut the loop short."""
        over = [each for each in walk(self.node.iter) if wrapper(each, self.code.is_builtin) == "zip"]
        if all(len(each.args) == 1 for each in over):
            return self.count - 1
        for changed in self.changed & {name for each in ends for name in names_in(each)}:
            self.code.report(
                Diagnostic(
                    "PCB129",
                    f"`reversed({changed})` in a `zip`, and the loop changes `{changed}`",
                    self.code.span(self.node.iter),
                    "where Python's iterator is depends on how long the list was",
                    f"loop over a copy, `zip(.., reversed([*{changed}]))`",
                )
            )
        return -1

    def _elements(self, node: Any) -> _Over:
        """A sequence itself, evaluated once; what nothing in the body can change is read where it is used."""
        if _is_display(node):
            parts = [self._part(each) for each in node.elts]
            return _Over((node,), lambda turn: _at(parts, turn))
        kept = self._kept(node)
        return _Over((kept,), lambda turn: call(ELEMENT, kept, constant(turn), constant(self.count)))

    def _part(self, node: Any) -> Any:
        """An element of a tuple that is written in the loop's header."""
        if isinstance(node, gast.Tuple) and _is_display(node):
            return gast.copy_location(gast.Tuple([self._part(each) for each in node.elts], gast.Load()), node)
        is_same = isinstance(node, gast.Constant) or literal(node) is not None
        is_kept = isinstance(node, gast.Name) and node.id not in self.assigned and self._is_object(node.id)
        if is_same or is_kept or self._is_free(node) or self._is_function(node):
            return node
        return self._held(self.code.rewrite(node), node)

    def _kept(self, node: Any) -> Any:
        root = root_of(node)
        is_path = root is not None and root not in self.assigned and _is_plain_path(node)
        if is_path and (root not in self.changed or root not in self.code.source.locals):
            return node
        if is_path:  # a list or the keys of a dict: Python looks at them in each turn
            return call(SEQUENCE, node, constant(True), constant(True))
        match node:
            case gast.Call(func=gast.Attribute(value=whole, attr=name), args=[], keywords=[]) if name in _VIEWS:
                if root_of(whole) is not None and root_of(whole) not in self.assigned and _is_plain_path(whole):
                    return node  # Python reads the values of a dict in each turn
                held = self._held(self.code.rewrite(whole), whole)
                return self._placed(gast.Call(self._placed(gast.Attribute(held, name, gast.Load())), [], []))
        value = self.code.rewrite(node)
        return self._held(call(SEQUENCE, value, constant(True)), node)

    def _is_function(self, node: Any) -> bool:
        """Whether an expression is a lambda, or names a function of the function."""
        return isinstance(node, gast.Lambda) or (isinstance(node, gast.Name) and node.id in self.code.source.functions)

    def _is_free(self, node: Any) -> bool:
        """Whether an expression is a path around the function."""
        root = root_of(node)
        is_path = all(isinstance(step, gast.Attribute) for step in steps_of(node))
        return root is not None and is_path and root not in self.code.variables

    def _held(self, value: Any, node: Any) -> Any:
        """A hidden variable with the value of `node`."""
        name = self.code.temporary()
        self.code.assign(name, value, self.code.span(node))
        return self._placed(load(name))

    def _tuple(self, *parts: Any) -> Any:
        return self._placed(gast.Tuple(list(parts), gast.Load()))

    def _placed(self, node: Any) -> Any:
        return gast.copy_location(node, self.node.iter)


def _is_display(node: Any) -> bool:
    """Whether an expression is `(a, b)` or `[a, b]`."""
    return isinstance(node, gast.Tuple | gast.List) and not any(isinstance(each, gast.Starred) for each in node.elts)


def _is_text(node: Any) -> bool:
    return isinstance(node, gast.Constant) and isinstance(node.value, str)


def _is_plain_path(node: Any) -> bool:
    """Whether a path has constant indices only, so that it may be read again and again."""
    steps = [step.slice for step in steps_of(node) if isinstance(step, gast.Subscript)]
    return all(isinstance(each, gast.Constant) or literal(each) is not None for each in steps)


def _whole(value: Any) -> Any:
    """What `value` is an element of, if it is one of a written-out loop; else itself."""
    match value:
        case gast.Call(func=gast.Name(id=name), args=[whole, *_]) if name == ELEMENT:
            return whole
    return value


def _as_path(value: Any) -> Any:
    """An element as an expression that may be changed: `ps[0]`."""
    if _whole(value) is value:
        return value
    return gast.copy_location(gast.Subscript(value.args[0], value.args[1], gast.Load()), value)


def _at(parts: list[Any], turn: int) -> Any:
    """The part of a turn; any where there is none: such a `zip(.., strict=True)` is refused when it is traced."""
    within = -len(parts) <= turn < len(parts)
    return parts[turn] if within else constant(0)
