"""The nodes of batching on the fly: the code of each block, its variables renamed, so that like code is one.

Code of two blocks that does the same to values of the same types is the same code, as DyNet's signatures have it
(Neubig, Goldberg, Dyer, NIPS 2017, appendix A). A block is one node, but for two things that nobody needs to wait for:

    t = left[node]              integers: what is made of integers alone, by code of its own, the slice of the block
    h = tanh(matvec(W, h))  =>  whole: all of the block, those statements again
    a = copy b                  moves: no code at all

So a graph can go on along the integers that loops, calls and branches go by, before anything else is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pcbatch.ir.analysis.effects import written
from pcbatch.ir.machine import Block, FaultSite, Item, Piece, Program, Return, Statement, Store, checked_sites
from pcbatch.ir.program import Enter, Exit, is_copy, statement
from pcbatch.ir.rewrite.renaming import renamed
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import Type, leaves


@dataclass(frozen=True)
class Use:
    """A use of code number `code` in a block: what it `reads` there and `writes`, and its fault sites, by their place.

    `late` says whether it has to do with anything but integers.
    """

    code: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    sites: tuple[int, ...]
    late: bool


@dataclass(frozen=True)
class Split:
    """The nodes of one block; `moves` has what is a copy, with the name whose value it gets, from before the block."""

    whole: Use | None
    integers: Use | None
    moves: Mapping[str, str]


@dataclass(frozen=True)
class Nodes:
    """The code of a program's blocks, each once, as blocks of `code` with their `results`; and how each block uses it.

    `shapeless` has for every code what it has in common with the same code for values of other shapes.
    """

    code: Program
    results: tuple[tuple[str, ...], ...]
    splits: tuple[Split, ...]
    shapeless: tuple[Hashable, ...]

    def of_code(self, number: int) -> Program:
        """Code number `number` as a program of one block: it takes what it reads, and gives its results."""
        block, results = self.code.blocks[number], self.results[number]
        reads = inputs_of(block.body)
        kept = dict.fromkeys((*reads, *results), "register")
        return replace(self.code, parameters=reads, results=results, storage=kept, blocks=(block,))


def nodes_of(program: Program) -> Nodes:
    """The nodes of all blocks of `program`."""
    found = _Codes(program)
    splits = tuple(map(found.split, program.blocks))
    sites = max((len(use.sites) for each in splits for use in (each.whole, each.integers) if use), default=0)
    code = Program(
        program.name,
        parameters=(),
        results=(),
        types=found.types,
        storage={},
        blocks=tuple(found.blocks),
        faults=(FaultSite(LaneStatus.RAISED, ""),) * sites,
        shared=program.shared,
        shared_types=program.shared_types,
        externs=program.externs,
    )
    return Nodes(code, tuple(found.results), splits, tuple(found.shapeless))


class _Codes:
    """The codes found so far."""

    def __init__(self, program: Program):
        self.program = program
        self.taken = {*program.shared, *(name for names in program.externs.values() for name in names)}
        self.blocks: list[Block] = []
        self.shapeless: list[Hashable] = []
        self.results: list[tuple[str, ...]] = []
        self.types: dict[str, Type] = {}
        self._known: dict[Hashable, int] = {}
        self._names: dict[tuple[int, Type | None], str] = {}

    def split(self, block: Block) -> Split:
        """The nodes of a block."""
        seen = _KnownNodes(self.program, block)
        moves = {name: seen.origin[name] for name in written(block) if name in seen.origin}
        made = [name for name in written(block) if name not in moves]
        early = [name for name in made if not seen.is_late(name)]
        if not made and not seen.checks:
            return Split(None, None, moves)
        integers = tuple(seen.integers)
        if not seen.late_checks and len(early) == len(made):
            return Split(self._use(block, integers, False), None, moves)
        # All checks of the block are in it, so that it says which is the first that fails.
        whole = self._use(block, _for(block.body, {*made}.difference(early)), True)
        if not early:
            return Split(whole, None, moves)
        ahead = self._use(block, integers, False)
        ahead = replace(ahead, writes=tuple(name if name in early else "" for name in ahead.writes))
        return Split(whole, ahead, moves)

    def _use(self, block: Block, body: tuple[Item, ...], late: bool) -> Use:
        names = _Names(lambda place, own: self._name(place, self.program.types.get(own)), self.program.shared)
        items = tuple(map(names.of_item, body))
        own = written(replace(block, body=body))
        results = tuple(names.now[name] for name in own)
        cost = block.cost if late else None
        key = (items, results, tuple(_texts(items)), cost)
        if key not in self._known:
            number = self._known[key] = len(self.blocks)
            label = f"n{number}"
            self.blocks.append(Block(label, items, Return(), function=block.function, span=block.span, cost=cost))
            self.results.append(results)
            self.shapeless.append(self._shapeless(items))
        return Use(self._known[key], inputs_of(body), tuple(own), tuple(names.sites), late)

    def _name(self, place: int, type_: Type | None) -> str:
        """The name of the variable that occurs as the first, second, .. of its code, and has such a type."""
        if (place, type_) not in self._names:
            others = sum(each == place for each, _ in self._names)
            fresh = f"x{place}" + (f"_{others}" if others else "")
            while fresh in self.taken:
                fresh += "_"
            self._names[place, type_] = fresh
            if type_ is not None:
                self.types[fresh] = type_
        return self._names[place, type_]

    def _shapeless(self, items: Sequence[Item]) -> Hashable:
        """The texts of the items, places for names, and the dtypes of their operands."""
        places = _Names(lambda place, own: f"x{place}", self.program.shared)
        again = tuple(map(places.of_item, items))
        dtypes = [leaf.dtype for name in inputs_of(items) for leaf in leaves(self.types[name])]
        return tuple(map(str, again)), tuple(_texts(again)), tuple(dtypes)


class _KnownNodes:
    """The sources of each name of a block, statement by statement: integers alone, or it is `late`."""

    def __init__(self, program: Program, block: Block):
        self.types, self.block, self.variables = {**program.types, **program.shared_types}, block, program.storage
        self.late: set[str] = set()
        self.made: set[str] = set()
        self.origin: dict[str, str] = {}
        """Of copies, whose value from before the block it is."""
        self.checks = self.late_checks = False
        self.integers: list[Item] = []
        """The slice of the block's body that makes what is not late."""
        for item in block.body:
            if isinstance(item, Store):
                self._store(item)
            else:
                self._piece(item)

    def is_late(self, name: str) -> bool:
        """Tell whether a name's value is not made of integers alone."""
        return name in self.late or self._has_floats(name)

    def _has_floats(self, name: str) -> bool:
        type_ = self.types.get(name)
        return type_ is None or any(not leaf.dtype.startswith(("int", "uint", "bool")) for leaf in leaves(type_))

    def _store(self, store: Store) -> None:
        asked = () if store.predicate is None else (store.predicate,)
        late = any(map(self.is_late, (store.array, *store.indices, store.value, *asked)))
        self._assign((store.array,), late)
        self.checks, self.late_checks = True, self.late_checks or late
        self.integers += [] if late else [store]

    def _piece(self, piece: Piece) -> None:
        together = piece.predicate is not None or any(isinstance(each.op, Enter) for each in piece.statements)
        kept = []
        for each in piece.statements:
            op = each.op
            if isinstance(op, Exit):
                continue
            late = together or any(map(self.is_late, op.inputs)) or any(map(self._has_floats, op.outputs))
            source = self._source(op.inputs[0]) if is_copy(op) and not together else None
            self._assign(op.outputs, late)
            if source is not None:
                self.origin[op.outputs[0]] = source
            checked = any(site is not None for site in each.sites)
            self.checks, self.late_checks = self.checks or checked, self.late_checks or (checked and late)
            if not late:
                kept.append(each)
        if kept:
            self.integers.append(_of_statements(piece, kept, [name for name in piece.writes if not self.is_late(name)]))

    def _source(self, name: str) -> str | None:
        """Return the variable whose value from before the block this is; None if made in the block, or shared."""
        return self.origin.get(name, None if name in self.made or name not in self.variables else name)

    def _assign(self, names: Sequence[str], late: bool) -> None:
        for name in names:
            self.made.add(name)
            self.origin.pop(name, None)
            (self.late.add if late else self.late.discard)(name)


class _Names:
    """New names for the variables of some code, by the order in which they get values, and sites by theirs."""

    def __init__(self, name: Callable[[int, str], str], shared: Sequence[str]):
        self._name, self._count = name, 0
        self.now: dict[str, str] = {each: each for each in shared}
        self.sites: dict[int, int] = {}

    def of_item(self, item: Item) -> Item:
        """An item, renamed."""
        predicate = None if item.predicate is None else self._read(item.predicate)
        if isinstance(item, Store):
            indices, value = tuple(map(self._read, item.indices)), self._read(item.value)
            return Store(self._read(item.array), indices, value, self._site(item.site), predicate)
        reads = tuple(map(self._read, item.reads))
        if predicate is not None:  # what it does not write stays
            for name in item.writes:
                self._read(name)
        statements = tuple(self._statement(each, predicate is None) for each in item.statements)
        writes, sites = tuple(map(self._read, item.writes)), tuple(map(self._site, item.sites))
        return replace(
            item, reads=reads, statements=statements, writes=writes, sites=sites, predicate=predicate, scope=""
        )

    def _statement(self, each: Statement, anew: bool) -> Statement:
        op = each.op
        if not isinstance(op, Exit):
            reads = {name: self._read(name) for name in op.inputs}
            given = {name: self._given(name) if anew else self._read(name) for name in op.outputs}
            op = renamed(op, reads, given)
        return Statement(op, tuple(None if site is None else self._site(site) for site in each.sites))

    def _read(self, own: str) -> str:
        return self.now[own] if own in self.now else self._given(own)

    def _given(self, own: str) -> str:
        self.now[own] = self._name(self._count, own)
        self._count += 1
        return self.now[own]

    def _site(self, own: int) -> int:
        return self.sites.setdefault(own, len(self.sites))


def _for(body: Sequence[Item], wanted: set[str]) -> tuple[Item, ...]:
    """Return the items of a body that make the `wanted` names, and those that may fail."""
    found: list[Item] = []
    for item in reversed(body):
        asked = set() if item.predicate is None else {item.predicate}
        if isinstance(item, Store):
            found.insert(0, item)
            wanted = wanted | {item.array, *item.indices, item.value} | asked
            continue
        writes = [name for name in item.writes if name in wanted]
        if asked or any(isinstance(each.op, Enter) for each in item.statements):
            kept = [*item.statements] if writes or item.sites else []
            needed = wanted | {*item.reads, *item.writes} | asked
        else:
            kept, needed = [], {*wanted}
            for each in reversed(item.statements):
                checks = any(site is not None for site in each.sites)
                if not isinstance(each.op, Exit) and (checks or needed & {*each.op.outputs}):
                    kept.insert(0, each)
                    needed = (needed - {*each.op.outputs}) | {*each.op.inputs}
        if kept:
            found.insert(0, _of_statements(item, kept, writes))
            wanted = needed
    return tuple(found)


def _of_statements(piece: Piece, kept: Sequence[Statement], writes: Sequence[str]) -> Piece:
    """A part of a piece."""
    given = {name for each in kept if not isinstance(each.op, Exit) for name in each.op.outputs}
    reads = tuple(name for name in piece.reads if name in _operands(kept))
    writes = tuple(name for name in writes if name in given)
    return replace(piece, statements=tuple(kept), reads=reads, writes=writes, sites=checked_sites(kept))


def _texts(items: Sequence[Item]) -> Iterator[str]:
    """The text of every statement: by it `1` and `1.0` are told apart, which are equal."""
    for item in items:
        for each in item.statements if isinstance(item, Piece) else ():
            yield "" if isinstance(each.op, Exit) else statement(each.op)


def _operands(statements: Sequence[Statement]) -> set[str]:
    """The names that statements read before they give them a value."""
    found: set[str] = set()
    given: set[str] = set()
    for each in statements:
        if not isinstance(each.op, Exit):
            found |= {*each.op.inputs} - given
            given |= {*each.op.outputs}
    return found


def inputs_of(body: Sequence[Item]) -> tuple[str, ...]:
    """The names that a body reads before it gives them a value, in order."""
    found: dict[str, None] = {}
    given: set[str] = set()
    for item in body:
        asked = () if item.predicate is None else (item.predicate,)
        reads: tuple[str, ...]
        writes: tuple[str, ...]
        if isinstance(item, Store):
            reads, writes = (item.array, *item.indices, item.value, *asked), (item.array,)
        else:
            reads, writes = (*item.reads, *asked, *(item.writes if asked else ())), item.writes
        found.update(dict.fromkeys(name for name in reads if name not in given))
        given.update(writes)
    return tuple(found)
