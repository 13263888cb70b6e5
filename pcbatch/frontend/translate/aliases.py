"""Which names of one function may be one array or object, and which of its changes Python would show elsewhere.

A forward analysis whose facts are pairs of *places*: a variable and a path into it, such as `t` and `(0,)` for `t[0]`.
Pairs, rather than sets of objects for each variable, keep `a, b = b, a` in a loop apart.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pcbatch.errors import Diagnostic, Span
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.alias_refusals import AN_OBJECT, Violation, changed_by_method
from pcbatch.frontend.translate.changed_arguments import (
    Summary,
    at_the_start,
    changed_in_call,
    changes_of,
    is_hidden,
    refusal,
    replaced_behind,
    returns_of,
    taken_by_call,
    twins_of,
)
from pcbatch.frontend.translate.changed_objects import (
    BUILT_IN,
    Change,
    after_method,
    anywhere,
    calls_method,
    change_in,
    changed_by,
    objects_related,
    takings,
    without_replaced,
)
from pcbatch.frontend.translate.kinds import kind_of_calls
from pcbatch.frontend.translate.references import ANY, LIMIT, Hints, KindOf, Path, Place, Taking, may_give_view, text_of
from pcbatch.frontend.translate.same_objects import (
    MOST,
    Facts,
    TooManyFactsError,
    facts_after,
    is_implied,
)
from pcbatch.frontend.translate.sure_lists import depths_of_lists
from pcbatch.frontend.translate.unrolling import STORES, MethodCall, is_inside
from pcbatch.ir.analysis.dataflow import Analysis, live_after_each_op, liveness, solve
from pcbatch.ir.code import Code
from pcbatch.ir.method_effects import Effect, effects_in, is_of_effects, view_in
from pcbatch.ir.program import (
    Block,
    Call,
    Coded,
    Enter,
    Function,
    Op,
    Primitive,
    Return,
    Store,
    assigned_value,
    statement,
    writes,
)


@dataclass
class Aliases:
    """Asks one function. Of a list, a dict or another object an element store changes the object, of an array a copy.

    `in_place` has the statements that are known to change an object, see `Unrolling`.
    """

    function: Function
    source: FunctionSource
    in_place: Collection[tuple[Span, str]] = frozenset()
    assumed: bool = False
    """Whether every element store that may be into a list counts as one."""
    taken: dict[tuple[Code, bool, bool, frozenset[str] | None], tuple[Taking, ...]] = field(default_factory=dict)
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    """What functions do to what they are given, by name; empty where none changes an object."""
    objects: bool = False
    """Whether objects are followed that arrays do not have: lists and records inside each other."""
    methods: Sequence[MethodCall] = ()
    """The calls that are calls of methods."""
    after: dict[tuple[int, bool, bool, Facts], Facts] = field(default_factory=dict)
    """What holds after ops, by their `id` and what holds before: every question goes through all of them again."""

    def __post_init__(self) -> None:
        ops = [op for block in self.function.blocks for op in block.ops]
        written = {name for op in ops for name in writes(op)}
        self.variables = frozenset({*self.function.parameters, *written})
        self.kind_of: KindOf = kind_of_calls(self.source.scope, self.variables.__contains__)
        assigned = Counter(name for op in ops for name in writes(op))
        known = ((op.outputs[0], _number(assigned_value(op))) for op in ops if isinstance(op, Primitive) and op.outputs)
        self.numbers = {name: n for name, n in known if n is not None and assigned[name] == 1}
        self.depths = depths_of_lists(self.function, self.kind_of)
        attributes = {method[1:] for _, method in self.in_place if method.startswith(".")}
        methods = {name.removesuffix("()") for name in attributes if name.endswith("()")}
        self.hints = Hints(self.depths, attributes, methods)
        self.effects: dict[Span | None, list[Effect]] = {}
        for span, text in sorted(self.in_place):
            if is_of_effects(text):
                self.effects.setdefault(span, []).extend(effects_in(text))
        self.arrays: dict[Span | None, frozenset[str]] = {}
        for span, text in self.in_place:
            if view_in(text):
                self.arrays[span] = self.arrays.get(span, frozenset()) | {view_in(text)}
        self.has_changes = any(
            self.changes_object(op) if isinstance(op, Store) else changed_by(op) is not None for op in ops
        )
        self.live = {
            block.label: live_after_each_op(block, facts[block.label].end)
            for facts in [liveness(self.function)]
            for block in self.function.blocks
        }

    def hints_at(self, op: Op) -> Hints:
        """What is known at `op`; what is to be asked is not so, unless it is to be assumed."""
        variables: Collection[str] = () if self.assumed else self.variables
        return replace(self.hints, variables=variables, arrays=self.arrays.get(op.span, ()))

    # -- what is asked -------------------------------------------------------------------------------------------------

    def undecided(self) -> Iterator[Span]:
        """The element stores, and the methods, of which types alone say whether, and what, they change in place."""
        for op in (op for block in self.function.blocks for op in block.ops):
            is_open = _is_element_store(op) and not self._is_known_to_change(op)
            if op.span is not None and (is_open or calls_method(op) or _may_give_view(op)):
                yield op.span

    def readers(self) -> Iterator[Span]:
        """The statements that read attributes."""
        for op in (op for block in self.function.blocks for op in block.ops):
            if op.span is not None and _reads_attribute(op):
                yield op.span

    def changes_object(self, op: Op) -> bool:
        """Whether `op`, if it is an element store, changes an object, as far as that is known."""
        return _is_element_store(op) and (self.assumed or self._is_known_to_change(op))

    def _is_known_to_change(self, op: Op) -> bool:
        if isinstance(op, Store):
            return op.array in self.depths or (op.span, STORES) in self.in_place
        change = changed_by(op)
        return change is not None and (self._is_into_list(change) or (op.span, STORES) in self.in_place)

    def violations(self) -> list[Violation]:
        """Stores and changes of what has other names, with these: of variables that are read later, or free ones.

        Of an object that is changed with what is inside it, the object.
        """
        found: list[Violation] = []
        for objects, views in self._rounds():
            self.objects, self.hints = objects, replace(self.hints, views=views)
            for block, at, facts in self.before_each_op():
                op = block.ops[at]
                is_told = not views and any(each.op is op for each in found)
                for place, text in () if is_told else self._changed(op):
                    related = {each for each in objects_related(place, facts) if not is_hidden(each[0])}
                    names = {name for name, path in related if name != place[0] or (place[1] and path != place[1])}
                    later = self.live[block.label][at] - (set(writes(op)) - {place[0]})
                    others = names & later | names - self.variables
                    if others:
                        texts = _texts(related)
                        found.append(Violation(op, text, tuple(sorted(others)), objects, texts, self.method(op)))
                        break
        self.hints = replace(self.hints, views=True)
        return found

    def _rounds(self) -> Iterator[tuple[bool, bool]]:
        """What is looked at, one after the other: arrays, objects, and what methods change inside these."""
        yield False, True
        if self.summaries:
            yield True, True
            if any(self._changed_inside(op) for block in self.function.blocks for op in block.ops):
                yield True, False

    def _changed(self, op: Op) -> list[tuple[Place, str]]:
        """The places that `op` changes, of those that are looked at, and their texts.

        What a method changes inside its object is a list or another object: a slice of it is none of its names.
        """
        change = changed_by(op)
        if isinstance(op, Store):
            is_meant = self.hints.views and (self.changes_object(op) if self.objects else op.array not in self.depths)
            return [((op.array, ()), op.array)] if is_meant else []
        if change is None or change.is_put_back or not self.objects:
            return []
        if self.hints.views:
            return [(change.place, change.text)]
        start = len(change.place[1])
        return [(place, change.text + text_of(place[1][start:])) for place in self._changed_inside(op)]

    def method(self, op: Op) -> str:
        """The method of the user's that `op` calls, if it does: it may have the name of a list's."""
        name = calls_method(op)
        return name if name not in BUILT_IN or self.assumed or op.span in self.effects else ""

    def _changed_inside(self, op: Op) -> list[Place]:
        """The parts of its object that a method of the user's changes in place, as far as that is known.

        Where it is to be assumed, all of them.
        """
        change = changed_by(op)
        if change is None or not self.method(op):
            return []
        root, path = change.place
        if self.assumed:
            return [(root, (*path, *[ANY] * LIMIT)[:LIMIT])]
        return [(root, (*path, *each.path)[:LIMIT]) for each in self.effects.get(op.span, ()) if each.kind == "changes"]

    def changing_calls(self) -> list[Diagnostic]:
        """Calls that change what is read later, here or elsewhere, or what they are given twice."""
        found: list[Diagnostic] = []
        self.objects = True
        for block, at, facts in self.before_each_op() if self.summaries else ():
            op = block.ops[at]
            if not isinstance(op, Call):
                continue
            for place, span in changed_in_call(op, self.summaries):
                places = {place, *objects_related(place, facts)}
                kept = replaced_behind(block, at, facts, places, self.numbers)
                names = {each[0] for each in places if not is_hidden(each[0]) and not _is_inside(each, kept)}
                elsewhere = names - self.variables
                twice = {name for name in names if op.arguments.count(name) > 1 or name != place[0]} & set(op.arguments)
                twice |= {name for name, path in places if name == place[0] and path != place[1]}  # `[q, q]`
                others = sorted(names & self.live[block.label][at] - set(op.outputs) | elsewhere | twice)
                if others:
                    users = [name for name in others if name in self.source.locals or name in elsewhere]
                    names_here = {each.name for each in self.methods if _is_at(op, each.span)}
                    method = next((name for name in names_here if _is_version(op.function, name)), None)
                    if method is not None:
                        texts = _texts(places)
                        changed = _texts([place])[place[0]] if place[0] in self.source.locals else AN_OBJECT
                        found.append(changed_by_method(op, method, changed, [texts[user] for user in users], span))
                    else:
                        found.append(refusal(op, place, users, span))
                    break
        return found

    def summary(self) -> Summary:
        """What the function does to the objects that it is given, as far as `summaries` says it of its callees."""
        self.objects = True
        changes: dict[tuple[str, Path], Span | None] = {}
        returns: set[tuple[Path, str, Path]] = set()
        twins: set[tuple[Path, Path]] = set()
        for block, _, op, facts in self._steps():
            is_object = op is not None and self.changes_object(op)
            inside = self._changed_inside(op) if op is not None else []
            for name, path, span in changes_of(op, facts, self.summaries, is_object, inside) if op is not None else ():
                changes.setdefault((name, path), span)
            if op is None and isinstance(block.terminator, Return):
                returns |= {each for result in self.function.results for each in returns_of(result, facts)}
                twins |= {each for result in self.function.results for each in twins_of(result, facts)}
        return Summary(self.function.parameters, changes, frozenset(returns), frozenset(twins))

    # -- the effect of ops ---------------------------------------------------------------------------------------------

    def _solved(self) -> dict[str, Facts]:
        """What holds at the start of each block."""
        nothing: Facts = frozenset()

        def through(block: Block, facts: Facts) -> Facts:
            return self._through_block(block, facts)

        given = {self.function.entry: at_the_start(self.function)} if self.objects else {}
        analysis = Analysis("forward", given, nothing, frozenset.union, through)
        return {label: facts.start for label, facts in solve(self.function.blocks, analysis).items()}

    def before_each_op(self) -> Iterator[tuple[Block, int, Facts]]:
        yield from ((block, at, facts) for block, at, op, facts in self._steps() if op is not None)

    def _steps(self) -> Iterator[tuple[Block, int, Op | None, Facts]]:
        """What holds before each op, and, without an op, at the end of each block."""
        start = self._solved()
        for block in self.function.blocks:
            facts = start[block.label]
            for at, op in enumerate(block.ops):
                yield block, at, op, facts
                facts = self._through(op, facts)
            yield block, len(block.ops), None, facts

    def _through_block(self, block: Block, facts: Facts) -> Facts:
        for op in block.ops:
            facts = self._through(op, facts)
        return facts

    def _through(self, op: Op, facts: Facts) -> Facts:
        """What holds after `op`."""
        if isinstance(op, Call):  # what it does depends on the summaries
            return self._through_anew(op, facts)
        key = (id(op), self.objects, self.hints.views, facts)
        if key not in self.after:
            after = self.after[key] = self._through_anew(op, facts)
            if self.assumed and len(after) > MOST:
                raise TooManyFactsError
        return self.after[key]

    def _through_anew(self, op: Op, facts: Facts) -> Facts:
        """The same: a Store changes an object, and names none; it may be a list that it stores into."""
        match op:
            case Store(array=array, indices=indices, value=value) if self.objects or array in self.depths:
                step = self.numbers.get(indices[0], ANY) if len(indices) == 1 else ANY
                whole = (array, ((), (array, ()))), (array, ((step,), (value, ())))
                replaced = Change((array, ()), step, (), array, array)
                return facts_after(frozenset((array,)), whole, without_replaced(replaced, facts))
            case Store():
                return facts
            case Call() if self.objects:
                return facts_after(frozenset(op.outputs), taken_by_call(op, self.summaries), facts)
            case Primitive() | Enter():
                code = statement(op)
                change = change_in(code)
                objects = self.objects or (change is not None and self._is_into_list(change))
                if change is not None and self.method(op) and not self.assumed:
                    return after_method(change, self.effects.get(op.span, ()), facts)
                before = facts if change is None else without_replaced(change, facts)
                hints = self.hints_at(op)
                known = code, objects, hints.views, self.arrays.get(op.span)
                if known not in self.taken:
                    self.taken[known] = takings(code, self.kind_of, objects=objects, hints=hints, keeps=self.assumed)
                after = facts_after(frozenset(code.writes), self.taken[known], before)
                if change is not None and self.method(op):
                    return anywhere(change, after)
                if change is None or not change.is_put_back:
                    return after
                return frozenset(fact for fact in after if fact in before or not is_implied(fact, before))
        return facts_after(frozenset(writes(op)), (), facts)

    def _is_into_list(self, change: Change) -> bool:
        """Whether an element is stored into what is surely a list, which holds it then: an array has a copy."""
        root, path = change.place
        return change.is_element and len(path) < self.depths.get(root, 0)


def _is_element_store(op: Op) -> bool:
    """Whether an element is stored, of an array or of an object."""
    change = changed_by(op)
    return isinstance(op, Store) or (change is not None and change.is_element)


def _may_give_view(op: Op) -> bool:
    return isinstance(op, Coded) and may_give_view(statement(op))


def _reads_attribute(op: Op) -> bool:
    nodes = (node for each in statement(op).body for node in ast.walk(each)) if isinstance(op, Coded) else ()
    return any(isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store) for node in nodes)


def _is_inside(place: Place, whole: Place | None) -> bool:
    """Whether a place is `whole`, or a part of it."""
    return whole is not None and place[0] == whole[0] and place[1][: len(whole[1])] == whole[1]


def _texts(places: Iterable[Place]) -> dict[str, str]:
    """What to call a part of each variable in `places`: the shortest that is known."""
    found: dict[str, str] = {}
    for name, path in sorted(places, key=lambda place: (len(place[1]), repr(place))):
        known = () if ANY in path else path
        found.setdefault(name, name + text_of(known))
    return found


def _is_at(op: Op, span: Span) -> bool:
    return op.span is not None and is_inside(op.span, span)


def _is_version(function: str, name: str) -> bool:
    """Whether a function of the program has this name of the user's, or is a further one of it."""
    number = function.removeprefix(name)
    return function.startswith(name) and (not number or (number[0] == "_" and number[1:].isdigit()))


def _number(value: ast.expr | None) -> int | None:
    match value:
        case ast.Constant(value=int(number)) if number >= 0:
            return number
    return None
