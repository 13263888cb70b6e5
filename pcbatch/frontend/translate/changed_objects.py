"""Which object the code of a change changes, and what is a part of it afterwards; see `changes` for the code.

What Python changes in place is named here by a *place*, as in `references`: `state.pos.x = v` changes what lies at
`state` and `(".pos",)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from pcbatch.frontend.translate.reader import assignments, references_of
from pcbatch.frontend.translate.references import (
    ANY,
    LIMIT,
    NEW,
    NO_HINTS,
    Hints,
    KindOf,
    Path,
    Place,
    Reference,
    Taking,
    element,
    step_of,
)
from pcbatch.frontend.translate.same_objects import Fact, Facts, fact_of, facts_after
from pcbatch.ir.code import Code
from pcbatch.ir.method_effects import Effect, Kind
from pcbatch.ir.payload import WITH_FIELD, WITH_ITEM
from pcbatch.ir.program import Coded, Op, Store, statement
from pcbatch.ir.pseudo_builtins import CHANGED, STORED, TAKEN, WITHIN


@dataclass(frozen=True)
class Change:
    """The object at `place` changes: its part at `step`, which is then what `given` says, or any part by a method.

    `target` is the variable that gets the new value, all of it or the changed part alone (`is_part`), `taken` the one
    that gets what a method gives. Where the part has changed before and is only put back, it `is_put_back`. An element
    store into what may be an array is an `element`.
    """

    place: Place
    step: int | str | None
    given: tuple[ast.expr, ...]
    target: str
    text: str
    is_part: bool = False
    taken: str | None = None
    method: str = ""
    is_put_back: bool = False
    is_element: bool = False


def changed_by(op: Op) -> Change | None:
    """What `op` changes, None where it changes nothing; of a Store see there."""
    return change_in(statement(op)) if isinstance(op, Coded) else None


def changed_name(op: Op) -> str | None:
    """The variable of which `op` changes something in place, None where it does not."""
    if isinstance(op, Store):
        return op.array
    change = changed_by(op)
    return None if change is None or change.is_put_back else change.place[0]


@lru_cache(maxsize=16384)
def change_in(code: Code) -> Change | None:
    """The change that `code` is, None where it is none."""
    match code.assignment:
        case ast.Tuple(elts=[ast.Name(id=value), ast.Name(id=target)]), ast.Call(func=ast.Name(id=name)) as call if (
            name == TAKEN
        ):
            place = _place(call.args[0])
            given = _given(call, 2)
            text, is_part = ast.unparse(call.args[0]), place[0] != target
            return Change(place, None, given, target, text, is_part, value, method=_method(call))
        case ast.Name(id=target), ast.Call() as call:
            return _innermost(target, call)
    return None


def _innermost(target: str, call: ast.Call) -> Change | None:
    function, arguments = _name(call), call.args
    if function not in (WITH_FIELD, WITH_ITEM, STORED, CHANGED, WITHIN):
        return None
    inner = arguments[1] if function == WITHIN else None
    if isinstance(inner, ast.Call) and (found := _innermost(target, inner)) is not None:
        return found
    place, text = _place(arguments[0]), ast.unparse(arguments[0])
    match function:
        case "__changed__":
            return Change(place, None, _given(call, 2), target, text, method=_method(call))
        case "__stored__":
            step = step_of(arguments[2]) if len(arguments) == 3 else ANY
            return Change(place, step, (arguments[1],), target, text, is_element=True)
        case "__within__":
            is_field = isinstance(arguments[3], ast.Constant) and bool(arguments[3].value)
            return Change(place, _step(arguments[2], is_field), (arguments[1],), target, text, is_put_back=True)
    return Change(place, _step(arguments[2], function == WITH_FIELD), (arguments[1],), target, text)


OF_ONE = frozenset({"append", "insert", "setdefault", "pop"})
"""Methods whose arguments become elements of their object."""
OF_ELEMENTS = frozenset({"extend", "update", "__iadd__", "__ior__", "__delitem__"})
"""Methods that take elements of their arguments. What the user's own keep is seen when they are traced."""
OF_NOTHING = frozenset({"clear", "popitem", "reverse", "sort", "__imul__"})
"""Methods that keep nothing that they are given."""


def _method(call: ast.Call) -> str:
    return str(call.args[1].value) if isinstance(call.args[1], ast.Constant) else ""


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _step(key: ast.expr, is_field: bool) -> int | str:
    match key:
        case ast.Constant(value=str(name)) if is_field:
            return f".{name}"
    return step_of(key)


def _place(part: ast.expr) -> Place:
    steps: list[int | str] = []
    while isinstance(part, ast.Attribute | ast.Subscript):
        steps.insert(0, f".{part.attr}" if isinstance(part, ast.Attribute) else step_of(part.slice))
        part = part.value
    assert isinstance(part, ast.Name), "what changes is a part of a variable"
    return part.id, tuple(steps[:LIMIT])


def _given(call: ast.Call, first: int) -> tuple[ast.expr, ...]:
    """What a method is given, from argument `first` on; `d.update(k=v)` is given a dict."""
    if call.keywords and _method(call) == "update":
        keys: list[ast.expr | None] = [
            None if each.arg is None else ast.copy_location(ast.Constant(each.arg), call) for each in call.keywords
        ]
        named = ast.copy_location(ast.Dict(keys, [keyword.value for keyword in call.keywords]), call)
        return (*call.args[first:], named)
    return (*call.args[first:], *(keyword.value for keyword in call.keywords))


BUILT_IN = OF_ONE | OF_ELEMENTS | OF_NOTHING


def calls_method(op: Op) -> str:
    """The method that `op` calls and that may change its object, "" if there is none."""
    change = changed_by(op)
    return change.method if change is not None and change.step is None else ""


# -- what names take ---------------------------------------------------------------------------------------------------


def takings(
    code: Code, kind_of: KindOf, *, objects: bool = True, hints: Hints = NO_HINTS, keeps: bool = False
) -> tuple[Taking, ...]:
    """What the variables that `code` assigns get, and from where; `objects` and `hints` as in `assignments`.

    Without them an element store counts as one of a number into an array. What a method gives may be any part. If it is
    to be assumed that methods are the user's, each `keeps` what it is given.
    """
    change = change_in(code)
    if change is None:
        return assignments(code, kind_of, objects=objects, hints=hints)
    root, path = change.place
    target: list[Reference] = [((), change.place if change.is_part else (root, ()))]
    inside = _inside(change)
    taken: list[Reference] = [((), (root, (*path, ANY)[:LIMIT]))]
    for value in () if change.is_element and not objects else change.given:
        found = references_of(value, kind_of, objects=objects, hints=hints)
        if change.step is not None:
            target += _below((*inside, change.step), found)
            continue
        found = tuple(each for each in found if not each[1][0].startswith(NEW))
        if change.method in OF_ONE:
            taken += found
            target += _below((*inside, ANY), found)
        elif change.method == "__imul__":
            target += list(_below((*inside, ANY), tuple(element((((), (root, path)),), ANY)))) * 2
        elif change.method in OF_ELEMENTS:
            target += _below((*inside, ANY), tuple(element(found, ANY)))
        if keeps and change.method not in OF_ONE:
            target += _below((*inside, ANY), found)
    every = [(change.target, reference) for reference in target]
    return (*every, *((change.taken, reference) for reference in taken)) if change.taken is not None else tuple(every)


def after_method(change: Change, effects: Iterable[Effect], facts: Facts) -> Facts:
    """What holds after a method of the user's of which the `effects` are known. What it keeps is seen by `apart`.

    What its value is, or was, of the object is none of the object's parts any more unless the method `gives` that.
    """
    (root, path), value, inside = change.place, change.taken, _inside(change)
    at: dict[str, list[tuple[Path, Path]]] = {kind: [] for kind in get_args(Kind)}
    for each in effects:
        at[each.kind].append((each.path, each.place))
    given, gives = facts, []
    if value is not None:
        gave = tuple((value, (place, (root, (*path, *part)[:LIMIT]))) for part, place in at["gave"])
        every = facts_after(frozenset({value}), gave, facts)
        given = frozenset(each for each in every if {value, root} != {name for name, _ in each})
        gives = [(change.target, ((*inside, *part)[:LIMIT], (value, place))) for part, place in at["gives"]]
    moves = [
        (change.target, ((*inside, *part)[:LIMIT], (root, (*path, *place)[:LIMIT]))) for part, place in at["moves"]
    ]
    left = {(root, (*path, *part)) for part, _ in {*at["leaves"]}.difference(at["stays"])}
    staying = frozenset(fact for fact in given if not any(place in left and len(place[1]) < LIMIT for place in fact))
    rebound = frozenset({change.target})
    kept: Taking = (change.target, ((), change.place if change.is_part else (root, ())))
    after = facts_after(rebound, (kept, *gives), staying)
    moved = facts_after(rebound, (*gives, *moves), given) if moves else after
    return after | {each for each in moved if {name for name, _ in each} != rebound}


def anywhere(change: Change, facts: Facts) -> Facts:
    """`facts`, and that a part of the object of a `change` may be at any other place of it."""
    target, inside = change.target, _inside(change)
    found = set(facts)
    for fact in facts:
        for (name, path), other in (fact, fact[::-1]):
            if name == target and other[0] != target and path[: len(inside)] == inside and len(path) > len(inside):
                places = ((target, (*inside, *[ANY] * steps)) for steps in range(1, LIMIT - len(inside) + 1))
                found.update(fact_of(place, other) for place in places)
    return frozenset(found)


def _inside(change: Change) -> Path:
    """The path to what changes in the variable that gets the new value."""
    return () if change.is_part else change.place[1]


def _below(path: Path, references: Sequence[Reference]) -> Iterator[Reference]:
    return (((*path, *inner)[:LIMIT], place) for inner, place in references)


# -- facts -------------------------------------------------------------------------------------------------------------


def without_replaced(change: Change, facts: Facts) -> Facts:
    """`facts` without what was known of a part that is replaced; a method may move the parts of its object."""
    root, path = change.place
    if isinstance(change.step, str) and change.step == ANY:
        return facts

    def after(place: Place) -> Place | None:
        name, steps = place
        if name != root or steps[: len(path)] != path or len(steps) == len(path):
            return place
        if change.step is None:
            return (name, (*path, ANY, *steps[len(path) + 1 :])) if isinstance(steps[len(path)], int) else place
        return None if steps[len(path)] == change.step else place

    found: set[Fact] = set()
    for fact in facts:
        first, second = after(fact[0]), after(fact[1])
        if first is not None and second is not None and first != second:
            is_same = first is fact[0] and second is fact[1]
            found.add(fact if is_same else fact_of(first, second))
    return frozenset(found)


def objects_related(place: Place, facts: Facts) -> Iterator[Place]:
    """The other places that may hold the object at `place`."""
    name, path = place
    for fact in facts:
        for (first, steps), (second, others) in (fact, fact[::-1]):
            matching = zip(steps, path, strict=False)
            if first == name and len(steps) <= len(path) and all(a == b or ANY in (a, b) for a, b in matching):
                yield second, (*others, *path[len(steps) :])[:LIMIT]
