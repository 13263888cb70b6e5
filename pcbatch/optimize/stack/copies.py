"""Ops that compute nothing: they copy a variable, take a structure apart, or put it together again as it was.

The parts of a structure are paths into it: after `a, (b, c) = x` the value of `c` is the part `("x", 1, 1)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pcbatch.ir import program as ir
from pcbatch.ir.types import StructType, Type

Path = tuple[str | int, ...]


def parts_of(op: ir.Op, types: Mapping[str, Type | None]) -> dict[str, Type | None] | None:
    """The type of the part that each output of `op` takes of its only input; None where `op` computes something.

    In a program without types every part is of type None, and only copies and tuples of names are seen.
    """
    if not isinstance(op, (ir.Primitive, ir.Update)) or len(op.inputs) != 1:
        return None
    found = ir.assignment(op)
    if found is None:
        return None
    target, value = found
    try:
        return dict(_targets(target, _type(value, types)))
    except _ComputesError:
        return None


class _ComputesError(Exception):
    """A value that is no plain part of a structure."""


def _type(node: ast.expr, types: Mapping[str, Type | None]) -> Type | None:
    match node:
        case ast.Name(id=name) if name in types:
            return types[name]
        case ast.Attribute(value=value, attr=field):
            whole = _type(value, types)
            if isinstance(whole, StructType) and whole.kind != "dict" and field in whole.keys:
                return whole.items[whole.keys.index(field)]
        case ast.Subscript(value=value, slice=ast.Constant(value=int(number))):
            items = _items(_type(value, types))
            if items is not None and number < len(items):
                return items[number]
    raise _ComputesError


def _targets(node: ast.expr, type_: Type | None) -> Iterator[tuple[str, Type | None]]:
    match node:
        case ast.Name(id=name):
            yield name, type_
        case ast.Tuple(elts=elements) if type_ is None:
            for element in elements:
                yield from _targets(element, None)
        case ast.Tuple(elts=elements) if len(elements) == len(items := _items(type_) or ()):
            for element, item in zip(elements, items, strict=True):
                yield from _targets(element, item)
        case _:
            raise _ComputesError


def _items(type_: Type | None) -> tuple[Type, ...] | None:
    """The parts of a tuple or a list of this type; None for all else: a record may iterate over what it likes."""
    if not isinstance(type_, StructType):
        return None
    is_named = type_.constructor is not None and issubclass(type_.constructor, tuple)
    return type_.items if is_named or type_.kind in ("tuple", "list") else None


def without_identities(block: ir.Block) -> ir.Block:
    """The block without ops that give a variable the value that it has: `x = (a, b)` behind `a, b = x`."""
    values = _Values()
    ops: list[ir.Op] = []
    for op in block.ops:
        if not values.has_already(op):
            ops.append(op)
            values.note(op)
    return block if len(ops) == len(block.ops) else ir.Block(block.label, tuple(ops), block.terminator, block.sync)


class _Values:
    """The variables that hold parts of others at a place in a block."""

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}
        self.lengths: dict[Path, int] = {}

    def has_already(self, op: ir.Op) -> bool:
        """Tell whether `op` gives its only output the value that it has."""
        if not isinstance(op, (ir.Primitive, ir.Update)) or len(op.outputs) != 1:
            return False
        found = ir.assignment(op)
        return (
            found is not None
            and isinstance(found[0], ast.Name)
            and self._path(found[1]) == self.paths.get(op.outputs[0], op.outputs)
        )

    def note(self, op: ir.Op) -> None:
        """Take in what `op` writes."""
        found = ir.assignment(op)
        path = None if found is None else self._path(found[1])
        written = set(ir.writes(op))
        self.paths = {name: p for name, p in self.paths.items() if written.isdisjoint((name, p[0]))}
        self.lengths = {p: length for p, length in self.lengths.items() if p[0] not in written}
        if found is not None and path is not None and path[0] not in written:
            self._take_apart(found[0], path)

    def _take_apart(self, target: ast.expr, path: Path) -> None:
        match target:
            case ast.Name(id=name):
                self.paths[name] = path
            case ast.Tuple(elts=elements) if not any(isinstance(element, ast.Starred) for element in elements):
                self.lengths[path] = len(elements)
                for number, element in enumerate(elements):
                    self._take_apart(element, (*path, number))

    def _path(self, node: ast.expr) -> Path | None:
        """The part of a variable that the value of `node` is."""
        match node:
            case ast.Name(id=name):
                return self.paths.get(name, (name,))
            case ast.Attribute(value=value, attr=key) | ast.Subscript(value=value, slice=ast.Constant(value=int(key))):
                whole = self._path(value)
                return None if whole is None else (*whole, key)
            case ast.Tuple(elts=[first, *_] as elements):
                whole = (self._path(first) or ())[:-1]
                paths = [self._path(element) for element in elements]
                same = paths == [(*whole, number) for number in range(len(elements))]
                return whole if same and self.lengths.get(whole) == len(elements) else None
        return None
