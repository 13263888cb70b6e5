"""Element stores and shared arrays: where plain Python would show `a[i] = v` under a second name, it is refused.

Batched arrays are values: a store rebinds one name. Python's are objects: after `b = a` a store shows in both. The two
agree unless another name of the same object is read later. Which names may be the same object is found by a forward
analysis whose facts are pairs of *places*: a variable and a path into it, such as `t` and `(0,)` for `t[0]`. Pairs,
rather than sets of objects for each variable, keep `a, b = b, a` in a loop apart. A call of any function, batched or
not, gives a new object.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache

from pcbatch.diagnostics import Diagnostic, Note
from pcbatch.frontend.matching import PARTS
from pcbatch.frontend.sequences import ELEMENT
from pcbatch.ir.code import Code
from pcbatch.ir.dataflow import Analysis, live_after_each_op, liveness, solve
from pcbatch.ir.program import Block, Enter, Function, Op, Primitive, Store, writes

Path = tuple[int | str, ...]
ANY = "*"
"""The path step of an index that is not known here."""
NEW = "new "
"""Begins the names of objects that a statement makes: they hold inside the statement only."""
LIMIT = 6
"""Longer paths are cut: what is true of a part is then taken for true of what it is in."""

Place = tuple[str, Path]
Fact = tuple[Place, Place]
"""Two places, in order, that may hold the same object (and then also the same parts)."""
Facts = frozenset[Fact]
Reference = tuple[Path, Place]
"""A part of a value, by its path, and the place that it is taken from."""
Taking = tuple[str, Reference]
"""A variable that is assigned, and where a part of its new value comes from."""


def shared_stores(function: Function, user_names: Set[str]) -> list[Diagnostic]:
    """A diagnostic for each store to an array that may have another name whose value is read later.

    Names that are not among `user_names` hold what loops go over.
    """
    if not any(isinstance(op, Store) for block in function.blocks for op in block.ops):
        return []
    nothing: Facts = frozenset()
    facts = solve(function.blocks, Analysis("forward", {}, nothing, frozenset.union, _through_block))
    live = liveness(function)
    found: list[Diagnostic] = []
    for block in function.blocks:
        shared = facts[block.label].start
        for op, needed in zip(block.ops, live_after_each_op(block, live[block.label].end), strict=True):
            if isinstance(op, Store):
                others = {name for name, _ in _related((op.array, ()), shared)} & (needed - {op.array})
                found += [_refusal(op, sorted(others), function, user_names)] if others else []
            shared = _through(op, shared)
    return found


def _related(place: Place, facts: Facts) -> Iterator[Place]:
    for first, second in facts:
        if first == place:
            yield second
        if second == place:
            yield first


def _refusal(store: Store, others: list[str], function: Function, user_names: Set[str]) -> Diagnostic:
    ops = [op for block in function.blocks for op in block.ops]
    spans = [op.span for op in ops if isinstance(op, Primitive) and {*others, store.array} & set(op.outputs)]
    earlier = [span for span in spans if span is not None and store.span is not None and span < store.span]
    listed = ", ".join(f"`{other}`" for other in others if other in user_names)
    if not listed:
        return Diagnostic(
            "PCB205",
            f"`{store.array}` is changed here, while a loop goes over it",
            store.span,
            "Python would show the change to the loop too",
            f"loop over a copy, `for x in tf.identity({store.array}):`, or over the positions, `range(len(..))`",
            tuple(Note(span, "the loop") for span in earlier[-1:]),
        )
    return Diagnostic(
        "PCB205",
        f"`{store.array}` is changed here, and the same array may be read later as {listed}",
        store.span,
        f"Python would show the change in {listed} too",
        "copy the array where it gets its second name, `b = tf.identity(a)`, or use one name only",
        tuple(Note(span, "a second name may come from here") for span in earlier[-1:]),
    )


# -- the effect of ops -------------------------------------------------------------------------------------------------


def _through_block(block: Block, facts: Facts) -> Facts:
    for op in block.ops:
        facts = _through(op, facts)
    return facts


def _through(op: Op, facts: Facts) -> Facts:
    """What holds after `op`: a Store changes an object, and names none."""
    match op:
        case Store():
            return facts
        case Primitive(code=code) | Enter(code=code):
            for rebound, taken in _assignments(code):
                facts = _after(frozenset(rebound), taken, facts)
            return facts
    return _after(frozenset(writes(op)), (), facts)


def _after(rebound: frozenset[str], taken: tuple[Taking, ...], facts: Facts) -> Facts:
    """What holds after names are rebound to what they take."""
    kept = {fact for fact in facts if fact[0][0] not in rebound and fact[1][0] not in rebound}
    sources = {source for _, (_, (source, _)) in taken}
    near = [fact for fact in facts if fact[0][0] in sources or fact[1][0] in sources]
    # Every name that is not rebound keeps what it was: it is taken from itself.
    others = {name for fact in near for name, _ in fact} | sources
    staying = sorted(name for name in others - rebound if not name.startswith(NEW))
    everything = [*taken, *((name, ((), (name, ()))) for name in staying)]
    for new, other in itertools.product(taken, everything):
        if new is not other:
            kept.update(_meeting(new, other, near))
    return frozenset(kept)


def _meeting(first: Taking, second: Taking, facts: Sequence[Fact]) -> Iterator[Fact]:
    """The facts about two new values, from the old `facts` about the places that they are taken from."""
    (name, (path, (source, inside))), (name2, (path2, (source2, inside2))) = first, second
    pairs: list[tuple[Path, Path]] = [((), ())] if source == source2 else []
    pairs += [(p, q) for (x, p), (y, q) in facts if (x, y) == (source, source2)]
    pairs += [(q, p) for (x, p), (y, q) in facts if (y, x) == (source, source2)]
    for old, old2 in pairs:
        if (met := _meet(inside, old)) is None:
            continue
        below, onward = met
        if (met := _meet(inside2, (*old2, *onward))) is None:
            continue
        below2, further = met
        places = ((name, (*path, *below, *further)[:LIMIT]), (name2, (*path2, *below2)[:LIMIT]))
        if places[0] != places[1]:
            yield min(places, places[::-1], key=repr)


def _meet(first: Path, second: Path) -> tuple[Path, Path] | None:
    """What must be appended to each path so that both lead to the same part; None if they part before."""
    if any(a != b and ANY not in (a, b) for a, b in zip(first, second, strict=False)):
        return None
    return second[len(first) :], first[len(second) :]


@lru_cache(maxsize=1024)
def _assignments(code: Code) -> tuple[tuple[tuple[str, ...], tuple[Taking, ...]], ...]:
    """For each assignment of a statement, in order: the names, what they get, and from where."""
    match code.body:
        case [ast.With(items=[ast.withitem(context_expr=value, optional_vars=target)])]:
            targets = [] if target is None else [target]
        case [ast.Assign(targets=targets, value=value)]:
            pass
        case _:
            return ()
    references = tuple(_references(value))
    return ((code.writes, tuple(taking for target in targets for taking in _bound(target, references))),)


def _bound(target: ast.expr, references: tuple[Reference, ...]) -> Iterator[Taking]:
    match target:
        case ast.Name(id=name):
            yield from ((name, reference) for reference in references)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            steps = _steps(parts)
            for step, part in zip(steps, parts, strict=True):
                inner = tuple(_element(references, step))
                if isinstance(part, ast.Starred):  # a list of what is left
                    part, inner = part.value, tuple(((ANY, *path)[:LIMIT], place) for path, place in inner)
                yield from _bound(part, inner)


def _references(node: ast.expr) -> Iterator[Reference]:
    """Where the value of an expression, and its parts, come from. A new object comes from a place of its own."""
    match node:
        case ast.Name(id=name):
            yield (), (name, ())
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for step, part in zip(_steps(parts), parts, strict=True):
                yield from (((step, *path)[:LIMIT], place) for path, place in _references(part))
        case ast.Starred(value=value):
            yield from _element(tuple(_references(value)), ANY)
        case ast.Dict(keys=keys, values=parts):
            for key, part in zip(keys, parts, strict=True):
                inner = _references(part) if key is not None else _element(tuple(_references(part)), ANY)
                yield from (((ANY, *path)[:LIMIT], place) for path, place in inner)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _references(body)
            yield from _references(orelse)
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from _references(part)
        case ast.Subscript(value=value, slice=index):
            if any(isinstance(each, ast.Slice) for each in (index, *ast.iter_child_nodes(index))):
                yield from _references(value)  # a view
            else:
                references = tuple(_references(value))
                for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                    references = tuple(_element(references, _step(part)))
                yield from references
        case ast.Attribute(value=value, attr=name):
            yield from _element(tuple(_references(value)), f".{name}")
        case ast.Constant():
            pass
        case ast.Call(func=ast.Name(id=name), args=[value, _]) if name == ELEMENT:
            yield from _element(tuple(_references(value)), ANY)
        case ast.Call(func=ast.Name(id=name), args=[value, _]) if name == PARTS:
            yield from _references(value)
        case _:
            yield (), (f"{NEW}{node.lineno}:{node.col_offset}", ())


def _steps(parts: Sequence[ast.expr]) -> list[int | str]:
    """The positions of the parts of a display or a target: unknown from the first starred one on."""
    first = next((at for at, part in enumerate(parts) if isinstance(part, ast.Starred)), len(parts))
    return [at if at < first else ANY for at in range(len(parts))]


def _step(index: ast.expr) -> int | str:
    match index:
        case ast.Constant(value=int(value)) if value >= 0:
            return value
    return ANY


def _element(references: tuple[Reference, ...], step: int | str) -> Iterator[Reference]:
    """Where the element at `step` of a value comes from."""
    for path, (name, inside) in references:
        if not path:
            yield (), (name, (*inside, step)[:LIMIT])
        elif path[0] == step or ANY in (path[0], step):
            yield path[1:], (name, inside)
