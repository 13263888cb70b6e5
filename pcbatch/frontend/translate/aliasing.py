"""Element stores and shared arrays: where plain Python would show `a[i] = v` under a second name, it is refused.

Batched arrays are values: a store rebinds one name. Python's are objects: after `b = a` a store shows in both. The two
agree unless another name of the same object is read later. Which names may be the same object is found by a forward
analysis whose facts are pairs of *places*: a variable and a path into it, such as `t` and `(0,)` for `t[0]`. Pairs,
rather than sets of objects for each variable, keep `a, b = b, a` in a loop apart.

A batched function takes and gives arrays as values, so its result is new. What another function gives is known when it
is traced: where a store would be wrong if a result were an argument, a check stands behind the call (`__apart__`).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.changed_arguments import (
    Summary,
    at_the_start,
    changed_in_call,
    changes_of,
    is_hidden,
    refusal,
    returns_of,
    taken_by_call,
    twins_of,
)
from pcbatch.frontend.translate.changed_objects import (
    Change,
    change_in,
    changed_by,
    changed_name,
    objects_related,
    takings,
    without_replaced,
)
from pcbatch.frontend.translate.possible_names import PossibleNames, Spot
from pcbatch.frontend.translate.references import ANY, LIMIT, KindOf, Path, Place, Taking, free_arguments, kind_of_calls
from pcbatch.frontend.translate.same_objects import Facts, facts_after, parts_related
from pcbatch.frontend.translate.sequences import ELEMENT
from pcbatch.frontend.translate.sure_lists import depths_of_lists
from pcbatch.ir.analysis.dataflow import Analysis, live_after_each_op, liveness, solve
from pcbatch.ir.code import Code
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
    reads,
    statement,
    writes,
)

APART = "__apart__"
"""The pseudo-builtin `__apart__((b,), (a,))`, which refuses a `b` that is, or has for a part, what `a` is or has."""


def shared_stores(
    functions: Sequence[Function], sources: Mapping[str, FunctionSource]
) -> tuple[list[Diagnostic], list[Function]]:
    """A diagnostic for each store to an array that may have another name whose value is read later, or is elsewhere.

    Also the functions, with checks behind calls of which it must be known that they give new arrays.
    """
    if not any(changed_name(op) for function in functions for block in function.blocks for op in block.ops):
        return [], list(functions)
    every = [_Aliases(function, sources[function.name]) for function in functions]
    if any(aliases.has_changes for aliases in every):
        _summarise(every)
    found: list[Diagnostic] = []
    checked: list[Function] = []
    for aliases in every:
        violations = aliases.violations()
        found += [aliases.refusal(each) for each in violations] + aliases.changing_calls()
        checked.append(aliases.function if violations else aliases.checked())
    return found, checked


def _summarise(every: Sequence[_Aliases]) -> None:
    """Find out what each function does to what it is given; a round for each call on the way."""
    while True:
        summaries = {aliases.function.name: aliases.summary() for aliases in every}
        if all(aliases.summaries == summaries for aliases in every):
            return
        for aliases in every:
            aliases.summaries = summaries


@dataclass(frozen=True)
class Violation:
    """A store or a change of what `text` says, which has other names."""

    op: Op
    text: str
    others: tuple[str, ...]


@dataclass
class _Aliases:
    """Which names of one function may be one object."""

    function: Function
    source: FunctionSource
    taken: dict[tuple[Code, bool], tuple[Taking, ...]] = field(default_factory=dict)
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    """What functions do to what they are given, by name; empty where none changes an object."""
    objects: bool = False
    """Whether objects are followed that arrays do not have: lists and records inside each other."""

    def __post_init__(self) -> None:
        written = {name for block in self.function.blocks for op in block.ops for name in writes(op)}
        self.variables = frozenset({*self.function.parameters, *written})
        self.kind_of: KindOf = kind_of_calls(self.source.scope, self.variables.__contains__)
        self.has_changes = any(changed_by(op) is not None for block in self.function.blocks for op in block.ops)
        ops = [op for block in self.function.blocks for op in block.ops]
        assigned = Counter(name for op in ops for name in writes(op))
        known = ((op.outputs[0], _number(assigned_value(op))) for op in ops if isinstance(op, Primitive) and op.outputs)
        self.numbers = {name: n for name, n in known if n is not None and assigned[name] == 1}
        self.depths = depths_of_lists(self.function, self.kind_of)
        self.live = {
            block.label: live_after_each_op(block, facts[block.label].end)
            for facts in [liveness(self.function)]
            for block in self.function.blocks
        }

    # -- what is asked -------------------------------------------------------------------------------------------------

    def violations(self) -> list[Violation]:
        """Stores and changes of what has other names, with these: of variables that are read later, or free ones."""
        found: list[Violation] = []
        for objects in (False, True) if self.summaries else (False,):
            self.objects = objects
            for block, at, facts in self._before_each_op():
                op = block.ops[at]
                change = changed_by(op)
                place: Place
                if isinstance(op, Store) and not objects:
                    place, text = (op.array, ()), op.array
                elif change is not None and not change.is_put_back and objects:
                    place, text = change.place, change.text
                else:
                    continue
                related = {each for each in objects_related(place, facts) if not is_hidden(each[0])}
                names = {name for name, path in related if name != place[0] or (place[1] and path != place[1])}
                later = self.live[block.label][at] - (set(writes(op)) - {place[0]})
                others = names & later | names - self.variables
                found += [Violation(op, text, tuple(sorted(others)))] if others else []
        return found

    def changing_calls(self) -> list[Diagnostic]:
        """Calls that change what is read later, here or elsewhere, or what they are given twice."""
        found: list[Diagnostic] = []
        self.objects = True
        for block, at, facts in self._before_each_op() if self.summaries else ():
            op = block.ops[at]
            if not isinstance(op, Call):
                continue
            for place, span in changed_in_call(op, self.summaries):
                kept = self._replaced_behind(op, block, at)
                places = {place, *objects_related(place, facts)}
                names = {each[0] for each in places if not is_hidden(each[0]) and not _is_inside(each, kept)}
                elsewhere = names - self.variables
                twice = {name for name in names if op.arguments.count(name) > 1 or name != place[0]} & set(op.arguments)
                others = sorted(names & self.live[block.label][at] - set(op.outputs) | elsewhere | twice)
                if others:
                    users = [name for name in others if name in self.source.locals or name in elsewhere]
                    found.append(refusal(op, place, users, span))
                    break
        return found

    def _replaced_behind(self, call: Call, block: Block, at: int) -> Place | None:
        """The place that gets the result of a call right behind it, if it is known: `ps[0] = paid(ps[0])`."""
        for op in block.ops[at + 1 :]:
            change = changed_by(op)
            match op:
                case Store(array=array, indices=(index,), value=value) if value in call.outputs:
                    return (array, (self.numbers[index],)) if index in self.numbers else None
                case Primitive(outputs=(name,)) if name in self.numbers:
                    pass
                case _ if change is not None and change.step is not None and not change.is_put_back:
                    given = [each.id for each in change.given if isinstance(each, ast.Name)]
                    root, path = change.place
                    is_known = ANY not in (*path, change.step) and len(path) < LIMIT
                    return (root, (*path, change.step)) if is_known and set(given) & set(call.outputs) else None
                case _:
                    return None
        return None

    def summary(self) -> Summary:
        """What the function does to the objects that it is given, as far as `summaries` says it of its callees."""
        self.objects = True
        changes: dict[tuple[str, Path], Span | None] = {}
        returns: set[tuple[Path, str, Path]] = set()
        twins: set[tuple[Path, Path]] = set()
        for block, _, op, facts in self._steps():
            for name, path, span in changes_of(op, facts, self.summaries) if op is not None else ():
                changes.setdefault((name, path), span)
            if op is None and isinstance(block.terminator, Return):
                returns |= {each for result in self.function.results for each in returns_of(result, facts)}
                twins |= {each for result in self.function.results for each in twins_of(result, facts)}
        return Summary(self.function.parameters, changes, frozenset(returns), frozenset(twins))

    def checked(self) -> Function:
        """The function with a check behind each call that must give something new for its stores to be right."""
        possible = PossibleNames(self.function, self.kind_of, self.live)
        with_parts = possible.calls_with_parts()
        spots = list(dict.fromkeys((*possible.calls_to_check(), *with_parts)))
        blocks = {block.label: block for block in self.function.blocks}
        self.objects = bool(self.summaries)
        before = {(block.label, at): facts for block, at, facts in (self._before_each_op() if spots else ())}
        checks = {
            spot: self._check(
                blocks[spot[0]], spot[1], possible.related(spot), before[spot], has_parts=spot in with_parts
            )
            for spot in spots
        }
        return with_ops_behind(self.function, checks)

    # -- the effect of ops ---------------------------------------------------------------------------------------------

    def _solved(self) -> dict[str, Facts]:
        """What holds at the start of each block."""
        nothing: Facts = frozenset()

        def through(block: Block, facts: Facts) -> Facts:
            return self._through_block(block, facts)

        given = {self.function.entry: at_the_start(self.function)} if self.objects else {}
        analysis = Analysis("forward", given, nothing, frozenset.union, through)
        return {label: facts.start for label, facts in solve(self.function.blocks, analysis).items()}

    def _before_each_op(self) -> Iterator[tuple[Block, int, Facts]]:
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
        """What holds after `op`: a Store changes an object, and names none; it may be a list that it stores into."""
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
                if (code, objects) not in self.taken:
                    self.taken[code, objects] = takings(code, self.kind_of, objects=objects)
                facts = facts if change is None else without_replaced(change, facts)
                return facts_after(frozenset(code.writes), self.taken[code, objects], facts)
        return facts_after(frozenset(writes(op)), (), facts)

    def _is_into_list(self, change: Change) -> bool:
        """Whether an element is stored into what is surely a list, which holds it then: an array has a copy."""
        root, path = change.place
        return change.is_element and len(path) < self.depths.get(root, 0)

    # -- what is said --------------------------------------------------------------------------------------------------

    def _check(
        self, block: Block, at: int, related: frozenset[str], facts: Facts, *, has_parts: bool
    ) -> tuple[Primitive, ...]:
        """The check behind op `at` of `block`: what it assigns is nothing that it read, or that is read later.

        An object may keep what its method is given, unless that may be read later, under whatever name.
        """
        op = block.ops[at]
        live = self.live[block.label][at]
        later = live - set(writes(op))
        given_on = set(reads(op)) if changed_by(op) is None else set(reads(op)) & live
        others = (related & live | given_on) & self.variables - set(writes(op))
        assert isinstance(op, Coded)
        given = [*sorted(others), *free_arguments(statement(op), self.variables)]
        if changed_by(op) is not None:
            kept = (part for name in reads(op) if name not in live for part in parts_related(name, facts, later))
            given += dict.fromkeys(kept)
        if not given and len(writes(op)) == 1 and not has_parts:
            return ()
        every = [each for each_block in self.function.blocks for each in each_block.ops]
        stores = (each for each in every if isinstance(each, Store) or ((c := changed_by(each)) and c.is_element))
        arrays = any(changed_name(each) in related | set(writes(op)) for each in stores)
        code = Code(f"{APART}({_tuple(writes(op))}, {_tuple(given)}{'' if arrays else ', False'})")
        return (Primitive((), tuple(name for name in code.reads if name in self.variables), code, op.span),)

    def refusal(self, violation: Violation) -> Diagnostic:
        """Why a store or a change is refused."""
        op, text, others = violation.op, violation.text, violation.others
        user_names = self.source.locals
        is_store = isinstance(op, Store)
        what, kind = (
            (f"an element of `{text}` is assigned", "array") if is_store else (f"`{text}` is changed", "object")
        )
        elsewhere = [name for name in others if name not in self.variables]
        if elsewhere:
            copied = f"tf.identity({elsewhere[0]})" if is_store else f"copy.copy({elsewhere[0]})"
            return Diagnostic(
                "PCB204",
                f"{what}, which may be the same {kind} as `{elsewhere[0]}`",
                op.span,
                "this belongs to another scope",
                f"copy it first, `own = {copied}`, and return the result",
            )
        changing = {text.partition(".")[0].partition("[")[0], *others}
        earlier = self._earlier(op, changing)
        listed = ", ".join(f"`{other}`" for other in others if other in user_names)
        if not listed:
            copied = f"for x in {'tf.identity' if is_store else 'copy.copy'}({text}):"
            return Diagnostic(
                "PCB205",
                f"`{text}` is changed here, while a loop goes over it",
                op.span,
                "Python would show the change to the loop too",
                f"loop over a copy, `{copied}`, or over the positions, `range(len(..))`",
                tuple(Note(span, "the loop") for span in earlier[-1:]),
            )
        if not is_store and self._is_element(changing):
            help_ = (
                "make new ones, `ps = [dataclasses.replace(p, x=..) for p in ps]`, or write the steps out: "
                "`ps[0].x = ..`, `ps[1].x = ..`"
            )
        elif not is_store and len(changing) == 1:
            help_ = (
                "one object stands at two places of it: make each of them anew, `[Body(0.0) for _ in range(n)]`, "
                "`[[0.0] * 3 for _ in range(n)]`, or copy it, `copy.copy(p)`"
            )
        elif is_store:
            help_ = "copy the array where it gets its second name, `b = tf.identity(a)`, or use one name only"
        else:
            help_ = (
                "use one name only; or copy the object where it gets its second name, `q = copy.copy(p)`, "
                "`ys = [*xs]`, `e = {**d}`"
            )
        return Diagnostic(
            "PCB205",
            f"`{text}` is changed here, and the same {kind} may be read later as {listed}",
            op.span,
            f"Python would show the change in {listed} too",
            help_,
            tuple(Note(span, "a second name may come from here") for span in earlier[-1:]),
        )

    def _is_element(self, names: set[str]) -> bool:
        """Whether one of `names` is what a loop takes from another."""
        ops = (each for block in self.function.blocks for each in block.ops if isinstance(each, Primitive))
        taking = (each for each in ops if names & set(writes(each)) and names & set(reads(each)))
        return any(ELEMENT in statement(each).text for each in taking)

    def _earlier(self, op: Op, names: set[str]) -> list[Span]:
        """Places before `op` from which the second name may come: what reads one of `names` and assigns another."""
        ops = [each for block in self.function.blocks for each in block.ops]
        assigning = [each for each in ops if names & set(writes(each)) and changed_name(each) is None]
        linking = [each for each in ops if len(names & {*reads(each), *writes(each)}) > 1 and names & set(writes(each))]
        for found in (linking, assigning):
            spans = [each.span for each in found if each.span is not None and op.span is not None]
            if earlier := [span for span in spans if op.span is not None and span < op.span]:
                return earlier
        return []


def _is_inside(place: Place, whole: Place | None) -> bool:
    """Whether a place is `whole`, or a part of it."""
    return whole is not None and place[0] == whole[0] and place[1][: len(whole[1])] == whole[1]


def _number(value: ast.expr | None) -> int | None:
    match value:
        case ast.Constant(value=int(number)) if number >= 0:
            return number
    return None


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def with_ops_behind(function: Function, more: Mapping[Spot, Sequence[Op]]) -> Function:
    """`function` with more ops behind some of its ops."""
    blocks = (
        replace(
            block,
            ops=tuple(each for at, op in enumerate(block.ops) for each in (op, *more.get((block.label, at), ()))),
        )
        for block in function.blocks
    )
    return replace(function, blocks=tuple(blocks))
