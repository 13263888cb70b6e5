"""What batched functions do to the objects that they are given: which they change, and which they give back.

A batched function gets values, so that its caller's objects stay as they are. Python's would change with it:

    def step(p):            def main(p):
        p.x += 1.0              y = step(p)
        return p.x              return y + p.x      # Python: the new p.x

So a call is refused where an object that the callee changes is read later, under whatever name; where the callee gives
back what it was given, the result counts as a further name. Stores into arrays are not meant: arrays are values there.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.frontend.translate.changed_objects import changed_by, objects_related
from pcbatch.frontend.translate.references import ANY, LIMIT, NEW, Path, Place, Taking
from pcbatch.frontend.translate.same_objects import Facts, fact_of, may_be_inside
from pcbatch.ir.program import Block, Call, Function, Op, Primitive, Store, writes

GIVEN = "given "
"""Begins the names of the objects that a function is given, by parameter."""


@dataclass(frozen=True)
class Summary:
    """What a function changes, by parameter and path, and where; what its result gives back: path, parameter, path.

    `twins` are pairs of parts of its result that may be one object, `return [q, q]`.
    """

    parameters: tuple[str, ...] = ()
    changes: Mapping[tuple[str, Path], Span | None] = field(default_factory=dict)
    returns: frozenset[tuple[Path, str, Path]] = frozenset()
    twins: frozenset[tuple[Path, Path]] = frozenset()


def at_the_start(function: Function) -> Facts:
    """The facts at the entry of a function: each parameter holds what it is given."""
    return frozenset(fact_of((name, ()), (GIVEN + name, ())) for name in function.parameters)


def is_hidden(name: str) -> bool:
    """Whether a name of the analysis is none of the program."""
    return name.startswith((NEW, GIVEN))


def changed_in_call(call: Call, summaries: Mapping[str, Summary]) -> Iterator[tuple[Place, Span | None]]:
    """The objects of the caller that a call changes, and where."""
    summary = summaries.get(call.function, Summary())
    given = dict(zip(summary.parameters, call.arguments, strict=False))
    for (parameter, path), span in summary.changes.items():
        yield (given[parameter], path), span


def taken_by_call(call: Call, summaries: Mapping[str, Summary]) -> tuple[Taking, ...]:
    """What the result of a call may be made of."""
    summary = summaries.get(call.function, Summary())
    given = dict(zip(summary.parameters, call.arguments, strict=False))
    (output,) = call.outputs
    back = [(output, (path, (given[name], inside))) for path, name, inside in sorted(summary.returns, key=repr)]
    twins: list[Taking] = [
        (output, (path, (f"{NEW}twin {at}", ())))
        for at, paths in enumerate(sorted(summary.twins, key=repr))
        for path in paths
    ]
    return (*back, *twins)


def changes_of(
    op: Op, facts: Facts, summaries: Mapping[str, Summary], is_object: bool, inside: Collection[Place]
) -> Iterator[tuple[str, Path, Span | None]]:
    """Which of the objects that its function is given `op` changes; an element store does if it `is_object`.

    A method of the user's changes what is `inside`, too.
    """
    change = changed_by(op)
    places: list[tuple[Place, Span | None]] = []
    if isinstance(op, Call):
        places += changed_in_call(op, summaries)
    elif isinstance(op, Store):
        places += [((op.array, ()), op.span)] if is_object else []
    elif change is not None and not change.is_put_back and (is_object or not change.is_element):
        places += [(place, op.span) for place in (change.place, *inside)]
    for place, span in places:
        for name, path in objects_related(place, facts):
            if name.startswith(GIVEN):
                yield name.removeprefix(GIVEN), path, span


def returns_of(result: str, facts: Facts) -> Iterator[tuple[Path, str, Path]]:
    """What of the objects that a function is given is in its result."""
    for fact in facts:
        for (name, path), (other, inside) in (fact, fact[::-1]):
            if name == result and other.startswith(GIVEN):
                yield path[:LIMIT], other.removeprefix(GIVEN), inside[:LIMIT]


def twins_of(result: str, facts: Facts) -> Iterator[tuple[Path, Path]]:
    """Which parts of the result of a function may be one object."""
    for (name, path), (other, path2) in facts:
        if name == other == result:
            yield path[:LIMIT], path2[:LIMIT]


def refusal(call: Call, place: Place, others: list[str], changed_at: Span | None) -> Diagnostic:
    """Why a call is refused that changes what is read later, under the names `others`."""
    if call.function in others:
        return Diagnostic(
            "PCB211",
            f"`{call.function}` changes an object that is the default of a parameter",
            call.span,
            "Python has one object for all calls, and would show the change in the next one",
            "make the object in the function: `p=None` as the default, and `if p is None:` first",
            (Note(changed_at, "changed here"),) if changed_at is not None else (),
        )
    listed = ", ".join(f"`{each}`" for each in others) or f"`{place[0]}`"
    return Diagnostic(
        "PCB211",
        f"`{call.function}` changes an object that it is given and that may be read later as {listed}",
        call.span,
        f"Python would show the change in {listed}; a batched function gets a value of its own",
        f"return the object and take what comes back, `p = {call.function}(p, ..)`; or hand over `copy.copy(p)`",
        (Note(changed_at, "changed here"),) if changed_at is not None else (),
    )


def replaced_behind(
    block: Block, at: int, facts: Facts, changed: Collection[Place], numbers: Mapping[str, int]
) -> Place | None:
    """The place that gets the result of the call at op `at`, or a part of it, right behind it, if it is known.

    As in `ps[0] = paid(ps[0])`, and where a method gives back its object. An element at a position that differs by
    lane is one of several: what is `changed` of it must be none of another's. That it has a part with that in
    common, as in `[Pair(x, 2.0), Pair(1.0, x)]`, does not matter.
    """
    results = set(writes(block.ops[at]))
    for op in block.ops[at + 1 :]:
        change = changed_by(op)
        match op:
            case Store(array=array, indices=(index,), value=value) if value in results:
                return (array, (numbers[index],)) if index in numbers else None
            case Primitive(outputs=(name,)) if name in numbers:
                pass
            case Primitive() if change is None and set(op.inputs) & results:
                results |= set(op.outputs)
            case _ if change is not None and change.step is not None:
                given = [each.id for each in change.given if isinstance(each, ast.Name)]
                root, path = change.place
                common = (place for fact in facts if fact[0][0] == fact[1][0] == root for place in fact)
                are_apart = not any(may_be_inside(each, place) for place in common for each in changed)
                is_known = (are_apart or ANY not in (*path, change.step)) and len(path) < LIMIT
                return (root, (*path, change.step)) if is_known and set(given) & results else None
            case _:
                return None
    return None
