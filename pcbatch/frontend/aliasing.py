"""Element stores and shared arrays: where plain Python would show `a[i] = v` under a second name, it is refused.

Batched arrays are values: a store rebinds one name. Python's are objects: after `b = a` a store shows in both. The two
agree unless another name of the same object is read later. What a name may denote is found by a forward analysis.

An *object* is a place where values come into being (a parameter, an assignment of a computed value), whether it is the
newest value made there or an older one (made in an earlier turn of a loop), and a path into it: `t[0]`, `a[i]`. A *value* is
a set of `(path, object)`: its part at `path` may be the object. A call of any function gives a new object.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pcbatch.diagnostics import Diagnostic, Note
from pcbatch.ir.dataflow import Analysis, live_after_each_op, liveness, solve
from pcbatch.ir.program import Block, Call, Function, Op, Primitive, Store

Path = tuple[int | str, ...]
ANY = "*"
"""The path step of an index that is not known here."""
LIMIT = 8
"""Longer paths are cut: an object stands for everything below it."""


class Object(NamedTuple):
    """Something that may be changed in place."""

    site: str
    newest: bool
    path: Path = ()


Value = frozenset[tuple[Path, Object]]
NOTHING: Value = frozenset()


@dataclass(frozen=True)
class State:
    """What each variable may denote; None where control cannot come from."""

    values: Mapping[str, Value] | None

    def merge(self, other: State) -> State:
        """What holds if either does."""
        if self.values is None or other.values is None:
            return other if self.values is None else self
        names = {**self.values, **other.values}
        return State({name: self.values.get(name, NOTHING) | other.values.get(name, NOTHING) for name in names})


def shared_stores(function: Function) -> list[Diagnostic]:
    """A diagnostic for each store to an array that may have another name whose value is read later."""
    entry = State({name: frozenset({((), Object(name, True))}) for name in function.parameters})
    analysis = Analysis("forward", {function.entry: entry}, State(None), State.merge, _through_block)
    states, live = solve(function.blocks, analysis), liveness(function)
    found: list[Diagnostic] = []
    for block in function.blocks:
        state = states[block.label].start
        after = live_after_each_op(block, live[block.label].end)
        for index, op in enumerate(block.ops):
            if isinstance(op, Store) and state.values is not None:
                found += _conflicts(op, state.values, after[index], function)
            state = _through(op, f"{block.label}.{index}", state)
    return found


def _conflicts(op: Store, values: Mapping[str, Value], live: frozenset[str], function: Function) -> list[Diagnostic]:
    stored = [object_ for path, object_ in values.get(op.array, NOTHING) if path == ()]
    others = sorted(
        name
        for name in live - {op.array}
        if any(_contains(object_, target) for _, object_ in values.get(name, NOTHING) for target in stored)
    )
    origins = {
        name: each.span
        for block in function.blocks
        for each in block.ops
        if isinstance(each, Primitive) and each.span is not None
        for name in each.outputs
    }
    return [
        Diagnostic(
            "PCB205",
            f"`{op.array}` is changed here while `{other}` may be the same array and is read later",
            op.span,
            f"Python would show the change in `{other}` too",
            f"make a copy where the second name is given: `{other} = tf.identity(..)`",
            tuple(Note(origins[name], f"`{name}` is assigned here") for name in (other,) if name in origins),
        )
        for other in others
    ]


def _contains(outer: Object, inner: Object) -> bool:
    """Whether a change of `inner` is a change of `outer` or of a part of it."""
    if (outer.site, outer.newest) != (inner.site, inner.newest) or len(outer.path) > len(inner.path):
        return False
    return all(a == b or ANY in (a, b) for a, b in zip(outer.path, inner.path, strict=False))


# -- the effect of ops -----------------------------------------------------------------------------------------------------


def _through_block(block: Block, state: State) -> State:
    for index, op in enumerate(block.ops):
        state = _through(op, f"{block.label}.{index}", state)
    return state


def _through(op: Op, site: str, state: State) -> State:
    if state.values is None:
        return state
    values = {name: frozenset((path, _aged(object_, site)) for path, object_ in v) for name, v in state.values.items()}
    match op:
        case Primitive(code=code):
            (statement,) = ast.parse(code).body
            if isinstance(statement, ast.Assign):
                value = _value(statement.value, values, site)
                for target in statement.targets:
                    _bind(target, value, values)
        case Call(outputs=outputs):
            for output in outputs:
                values[output] = frozenset({((), Object(f"{site}:{output}", True))})
    return State(values)


def _aged(object_: Object, site: str) -> Object:
    """The object as it is called once `site` makes new ones."""
    return object_._replace(newest=False) if object_.site.startswith(f"{site}:") else object_


def _value(node: ast.expr, values: Mapping[str, Value], site: str) -> Value:
    """What an expression's value may share memory with."""

    def inside(part: ast.expr) -> Value:
        return _value(part, values, site)

    match node:
        case ast.Name(id=name):
            return values.get(name, NOTHING)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return frozenset(
                ((index, *path)[:LIMIT], object_) for index, part in enumerate(parts) for path, object_ in inside(part)
            )
        case ast.Dict(values=parts):
            return frozenset(((ANY, *path)[:LIMIT], object_) for part in parts for path, object_ in inside(part))
        case ast.IfExp(body=body, orelse=orelse):
            return inside(body) | inside(orelse)
        case ast.BoolOp(values=parts):
            return NOTHING.union(*map(inside, parts))
        case ast.Subscript(value=value, slice=index):
            return _element(inside(value), _step(index))
        case ast.Constant():
            return NOTHING
    place = f"{site}:{node.lineno}.{node.col_offset}"
    return frozenset({((), Object(place, True))})


def _step(index: ast.expr) -> int | str | None:
    """The path step of an index; None for a slice, which gives a view of the whole."""
    match index:
        case ast.Constant(value=int(value)) if value >= 0:
            return value
        case ast.Slice():
            return None
        case ast.Tuple(elts=parts) if any(isinstance(part, ast.Slice) for part in parts):
            return None
    return ANY


def _element(value: Value, step: int | str | None) -> Value:
    """What the element of `value` at `step` may be."""
    if step is None:
        return value
    found: set[tuple[Path, Object]] = set()
    for path, object_ in value:
        if not path:
            found.add(((), object_._replace(path=(*object_.path, step)[:LIMIT])))
        elif path[0] == step or ANY in (path[0], step):
            found.add((path[1:], object_))
    return frozenset(found)


def _bind(target: ast.expr, value: Value, values: dict[str, Value]) -> None:
    match target:
        case ast.Name(id=name):
            values[name] = value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for index, part in enumerate(parts):
                _bind(part, _element(value, index), values)
