"""Ops that compute nothing: they copy a variable, take a structure apart, or put it together again as it was.

The parts of a structure are paths into it: after `a, (b, c) = x` the value of `c` is the part `("x", 1, 1)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pcbatch.ir import program as ir
from pcbatch.ir.expressions import Apply, Attribute, Constant, Expression, Input, Items, Names, Operator
from pcbatch.ir.payload import Pattern, pattern_of
from pcbatch.ir.types import StructType, Type

Path = tuple[str | int, ...]


def parts_of(op: ir.Op, types: Mapping[str, Type | None]) -> dict[str, Type | None] | None:
    """The type of the part that each output of `op` takes of its only input; None where `op` computes something.

    In a program without types every part is of type None, and only copies and tuples of names are seen.
    """
    if not isinstance(op, (ir.Primitive, ir.Update)) or len(op.inputs) != 1:
        return None
    if not op.outputs:
        return None
    names = iter(op.outputs)
    try:
        return dict(_targets(pattern_of(op.code), names, _type(ir.expression(op), op.inputs, types)))
    except _ComputesError:
        return None


class _ComputesError(Exception):
    """A value that is no plain part of a structure."""


def _type(node: Expression, inputs: Names, types: Mapping[str, Type | None]) -> Type | None:
    match node:
        case Input(place) if inputs[place] in types:
            return types[inputs[place]]
        case Attribute(value, field):
            whole = _type(value, inputs, types)
            if isinstance(whole, StructType) and whole.kind != "dict" and field in whole.keys:
                return whole.items[whole.keys.index(field)]
        case Apply(Operator("[]"), (value, Constant(int(number)))):
            items = _items(_type(value, inputs, types))
            if items is not None and 0 <= number < len(items):
                return items[number]
    raise _ComputesError


def _targets(pattern: Pattern | None, names: Iterator[str], type_: Type | None) -> Iterator[tuple[str, Type | None]]:
    if pattern is None:
        yield next(names), type_
        return
    items = (None,) * len(pattern) if type_ is None else _items(type_)
    if items is None or len(items) != len(pattern):
        raise _ComputesError
    for part, item in zip(pattern, items, strict=True):
        yield from _targets(part, names, item)


def _items(type_: Type | None) -> tuple[Type, ...] | None:
    """Return the parts of a tuple or a list of this type; None for all else: a record may iterate over anything."""
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
        """Return whether `op` gives its only output the value that it has."""
        if not isinstance(op, (ir.Primitive, ir.Update)) or len(op.outputs) != 1:
            return False
        if pattern_of(op.code) is not None:
            return False
        return self._path(ir.expression(op), op.inputs) == self.paths.get(op.outputs[0], op.outputs)

    def note(self, op: ir.Op) -> None:
        """Follow the writes of `op`."""
        is_one = isinstance(op, ir.Primitive | ir.Push | ir.Update)
        path = self._path(ir.expression(op), op.inputs) if is_one else None  # type: ignore[union-attr, arg-type]
        written = set(ir.writes(op))
        self.paths = {name: p for name, p in self.paths.items() if written.isdisjoint((name, p[0]))}
        self.lengths = {p: length for p, length in self.lengths.items() if p[0] not in written}
        if path is not None and path[0] not in written and written:
            self._take_apart(pattern_of(op.code), iter(op.outputs), path)  # type: ignore[union-attr]

    def _take_apart(self, pattern: Pattern | None, names: Iterator[str], path: Path) -> None:
        if pattern is None:
            self.paths[next(names)] = path
            return
        self.lengths[path] = len(pattern)
        for number, part in enumerate(pattern):
            self._take_apart(part, names, (*path, number))

    def _path(self, node: Expression, inputs: Names) -> Path | None:
        """The part of a variable that the value of `node` is."""
        match node:
            case Input(place):
                return self.paths.get(inputs[place], (inputs[place],))
            case Attribute(value, key) | Apply(Operator("[]"), (value, Constant(int(key)))):
                whole = self._path(value, inputs)
                return None if whole is None else (*whole, key)
            case Items("tuple", (first, *_) as elements):
                whole = (self._path(first, inputs) or ())[:-1]
                paths = [self._path(element, inputs) for element in elements]
                same = paths == [(*whole, number) for number in range(len(elements))]
                return whole if same and self.lengths.get(whole) == len(elements) else None
        return None
