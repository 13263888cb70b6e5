"""Operations that only copy or take apart other variables move to where they are needed.

    b1: update a, b, stop = result; branch stop b2 b3         b1: (the same, for `stop` only)
    b2: update result = (a, b, stop); return            -->   b2: return
    b3: ..                                                    b3: update a, b, stop = result; ..

Such an op computes nothing, but what leaves its block is written for every lane. So it goes into those blocks behind
its own that nothing else leads to, until what it gives need not be stored, or is stored in the one place that needs it
(Knoop, Ruething, Steffen, "Partial dead code elimination", PLDI 1994, for what is free to do twice). Where it meets
what puts a structure together again as it was, neither is left.

The parts of a structure are paths into it: after `a, (b, c) = x` the value of `c` is the part `("x", 1, 1)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Facts, Variables, liveness, scope
from pcbatch.ir.expressions import Apply, Attribute, Constant, Expression, Input, Items, Names, Operator
from pcbatch.ir.payload import Pattern, pattern_of
from pcbatch.ir.rewrite import FreshNames, map_blocks, popped, renamed, variables, without_unused
from pcbatch.ir.types import StructType, Type

# -- copies ------------------------------------------------------------------------------------------------------------
# Ops that compute nothing: they copy a variable, take a structure apart, or put it together again as it was.


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


# -- sinking -----------------------------------------------------------------------------------------------------------


def sink_copies(program: ir.Program) -> ir.Program:
    """Move copies into the blocks that need them, and drop those that nothing needs any more."""
    sinking = _Sinking(program)
    program = sinking.own.listed(sinking.program_after())
    program = map_blocks(program, lambda function, block: without_identities(block))
    types, live = _types(program), liveness(program, comes_back=True)

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        return _without_dead_copies(block, live[block.label].end | set(function.results), types)

    return without_unused(map_blocks(program, rewrite))


def _types(program: ir.Program) -> dict[str, Type | None]:
    known = {name: variable.type for name, variable in variables(program).items()}
    return {name: known.get(name) for name in scope(program, program.entry)}


def _without_dead_copies(block: ir.Block, live: Variables, types: Mapping[str, Type | None]) -> ir.Block:
    live = live.union(ir.reads(block.terminator))
    ops: list[ir.Op] = []
    for op in reversed(block.ops):
        if live.isdisjoint(ir.writes(op)) and parts_of(op, types) is not None:
            continue
        live = (live.union if isinstance(op, ir.Push) else live.difference)(ir.writes(op)) | set(ir.reads(op))
        ops.append(op)
    return replace(block, ops=tuple(reversed(ops)))


@dataclass(frozen=True)
class _Copy:
    """An op that computes nothing; `behind` has, for each of its outputs, the variables that it is a part of."""

    op: ir.Primitive | ir.Update
    behind: Mapping[str, frozenset[str]]


class _Sinking:
    """One way down through the blocks of a program, each after the only one that leads to it."""

    def __init__(self, program: ir.Program):
        self.program = program
        self.blocks = {block.label: block for block in program.blocks()}
        self.live: Mapping[str, Facts[Variables]] = liveness(program, comes_back=True)
        self.types = _types(program)
        self.own = FreshNames(program)
        self.storing: dict[tuple[str, frozenset[str]], dict[str, int]] = {}

    @cached_property
    def heirs(self) -> Mapping[str, tuple[str, ...]]:
        """The blocks behind each that it alone leads to, and that neither a call nor a return leads to."""
        arrivals = Counter(label for block in self.blocks.values() for label in ir.successors(block.terminator))
        arrivals.update(function.entry for function in self.program.functions)
        return {
            label: tuple(
                target
                for target in ir.successors(block.terminator)
                if arrivals[target] == 1 and not isinstance(block.terminator, ir.PushJump)
                if not popped(self.blocks[target])
            )
            for label, block in self.blocks.items()
        }

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Every block behind the one whose heir it is."""
        inheriting = {heir for heirs in self.heirs.values() for heir in heirs}
        found: list[str] = []
        work = [label for label in self.blocks if label not in inheriting]
        while work:
            found.append(work.pop())
            work += self.heirs[found[-1]]
        return tuple(found)

    def program_after(self) -> ir.Program:
        after = dict(self.blocks)
        for label in self.order:
            if self.heirs[label]:
                for heir, ops in self._sunk(after[label]).items():
                    after[heir] = replace(after[heir], ops=(*ops, *after[heir].ops))
        return map_blocks(self.program, lambda function, block: after[block.label])

    def _sunk(self, block: ir.Block) -> dict[str, tuple[ir.Op, ...]]:
        """Return the ops that go to each heir of `block`, which keeps them until its own needs are clear."""
        copies = self._copies(block)
        live_out = self.live[block.label].end
        stays = {n for copy in copies for n in copy.behind if n in live_out and self._stored(copy, n, block.label) > 1}
        sunk: dict[str, tuple[ir.Op, ...]] = {}
        for heir in self.heirs[block.label]:
            live = self.live[heir].start
            needed = live - stays
            ops: list[ir.Op] = []
            for copy in reversed(copies):
                if not needed.isdisjoint(copy.op.outputs):
                    needed |= set(copy.op.inputs) - stays
                    ops.append(self._apart(copy.op, live & stays))
            sunk[heir] = tuple(reversed(ops))
        return sunk

    def _apart(self, op: ir.Primitive | ir.Update, stored: frozenset[str]) -> ir.Op:
        """`op` with names of their own for those of its outputs that are `stored` before."""
        own = {name: self.own.name(name) for name in op.outputs if name in stored}
        if not own:
            return op
        self.types.update({own[name]: self.types[name] for name in own})
        return renamed(op, {}, own)

    def _copies(self, block: ir.Block) -> list[_Copy]:
        """The ops of `block` that compute nothing, and would still give the same at its end."""
        live_out = self.live[block.label].end
        types = dict(self.types)
        behind: dict[str, frozenset[str]] = {}
        unstored: set[str] = set()
        later = Counter(name for op in block.ops for name in ir.writes(op))
        copies: list[_Copy] = []
        for op in block.ops:
            later.subtract(ir.writes(op))
            parts = self._parts(op, types)
            touched = {*ir.reads(op), *ir.writes(op)}
            if parts is None or any(later[name] for name in touched) or not unstored.isdisjoint(ir.reads(op)):
                if not isinstance(op, ir.Pop):
                    unstored |= set(ir.writes(op)) - live_out
                continue
            assert isinstance(op, (ir.Primitive, ir.Update))
            (source,) = op.inputs
            types.update(parts)
            behind.update({name: behind.get(source, frozenset()) | {source} for name in parts})
            copies.append(_Copy(op, {name: behind[name] for name in parts}))
        return copies

    def _parts(self, op: ir.Op, types: Mapping[str, Type | None]) -> Mapping[str, Type | None] | None:
        """Return the types of the parts that `op` unpacks; None where it computes, overwrites its source, or casts."""
        parts = parts_of(op, types)
        if parts is None or not parts.keys().isdisjoint(ir.reads(op)):
            return None
        return parts if all(types[name] in (None, type_) for name, type_ in parts.items()) else None

    def _stored(self, copy: _Copy, name: str, label: str) -> int:
        """The number of blocks behind `label` that must store the output `name` of `copy` if it sinks; 2: it cannot."""
        key = (name, copy.behind[name])
        if key not in self.storing:
            found = self.storing[key] = {}
            for each in reversed(self.order):
                found[each] = self._stored_from(each, *key)
        return self._stored_behind(label, name, self.storing[key])

    def _stored_from(self, label: str, name: str, behind: frozenset[str]) -> int:
        """1 if the copy called `name` that arrives at a block has to be stored there or in one behind it, else 0."""
        block = self.blocks[label]
        written = {each for op in block.ops for each in ir.writes(op)}
        if isinstance(block.terminator, ir.Fault) and name in block.terminator.arguments:
            return 1
        if name in written or name not in self.live[label].end:
            return 0
        if not written.isdisjoint(behind) or not self.heirs[label]:
            return 1
        return min(1, self._stored_behind(label, name, self.storing[name, behind]))

    def _stored_behind(self, label: str, name: str, found: Mapping[str, int]) -> int:
        targets = [each for each in ir.successors(self.blocks[label].terminator) if name in self.live[each].start]
        return sum(found[target] if target in self.heirs[label] else 2 for target in targets)
