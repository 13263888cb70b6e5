"""The nodes of batching on the fly: each block's code in two parts, and which of these are the same code.

Code of two blocks that does the same to values of the same types is the same code, as DyNet's signatures have it
(Neubig, Goldberg, Dyer, NIPS 2017, appendix A). Every assignment gets a name of its own, and then

    i = i + 1                       integers: what is made of integers alone
    h = tanh(matvec(W, h))    =>    the rest
    a = copy b                      no code: `a` is another name of the same value

So a graph can go on along the integers that loops, calls and branches go by, before anything else is computed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pcbatch.ir.analysis.effects import read, read_at_end, written
from pcbatch.ir.machine import Block, Item, Piece, Program, Return, Statement, Store
from pcbatch.ir.payload import Copy
from pcbatch.ir.program import Exit, Primitive, is_copy, reads, statement, writes
from pcbatch.ir.rewrite import assembled, is_divisible, renamed
from pcbatch.ir.types import Type, leaves


@dataclass(frozen=True)
class Use:
    """A use of code number `code` in a block: what it `reads` there and `writes`.

    `sites` has the block's fault sites in place of the code's own, by these, each behind its place among the checks of
    the block. `late` says whether it has to do with anything but integers.
    """

    code: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    sites: Mapping[int, tuple[int, int]]
    late: bool


@dataclass(frozen=True)
class BlockNodes:
    """The nodes of one block, in order, and the names that its variables have at its `end` where these are others."""

    uses: tuple[Use, ...]
    end: Mapping[str, str]


@dataclass(frozen=True)
class Nodes:
    """The code of a program's blocks, each once, as blocks of `code`; and the nodes of each block.

    `shapeless` has for every code what it has in common with the same code for values of other shapes.
    """

    code: Program
    blocks: tuple[BlockNodes, ...]
    shapeless: tuple[Hashable, ...]

    def of_code(self, number: int) -> Program:
        """Code number `number` as a program of one block: it takes what it reads, and gives its results."""
        block = self.code.blocks[number]
        parameters, results = _inputs(block), tuple(written(block))
        storage = dict.fromkeys((*parameters, *results), "register")
        return replace(self.code, parameters=parameters, results=results, storage=storage, blocks=(block,))


def nodes_of(program: Program) -> Nodes:
    """The nodes of all blocks of `program`."""
    codes = _Codes(program)
    blocks = tuple(_Parts(codes, block).nodes() for block in program.blocks)
    empty = replace(program, parameters=(), results=(), storage={}, pointers={}, order=(), structure=None)
    code = replace(empty, types={name: type_ for name, type_ in codes.types.items() if type_}, blocks=(*codes.blocks,))
    return Nodes(code, blocks, tuple(codes.shapeless))


class _Codes:
    """The codes found so far, and the types of all names."""

    def __init__(self, program: Program):
        self.program = program
        self.types: dict[str, Type | None] = dict(program.types)
        externs = (name for names in program.externs.values() for name in names)
        self.taken = {*program.types, *program.storage, *program.shared, *externs}
        self.blocks: list[Block] = []
        self.shapeless: list[Hashable] = []
        self._known: dict[Hashable, int] = {}

    def fresh(self, name: str) -> str:
        """Another name for a value of a variable."""
        found = f"{name}_{len(self.types)}"
        while found in self.taken:
            found += "_"
        self.types[found] = self.program.types.get(name)
        return found

    def number(self, block: Block, late: bool) -> int:
        """The number of the code of a block, which may be that of another block's part."""
        texts, places = _by_place(block.body, self.program.shared)
        types = tuple(self.types[name] for name in places)
        key = (texts, types, tuple(places[name] for name in written(block)), block.cost if late else None)
        if key not in self._known:
            dtypes = tuple(tuple(leaf.dtype for leaf in leaves(type_)) for type_ in types if type_ is not None)
            number = self._known[key] = len(self.blocks)
            code = Block(f"n{number}", block.body, Return(), function=block.function, span=block.span)
            self.blocks.append(replace(code, cost=block.cost if late else None))
            self.shapeless.append((texts, dtypes))
        return self._known[key]


class _Parts:
    """The body of one block, every name assigned once, in two parts: what is made of integers alone, and the rest."""

    def __init__(self, codes: _Codes, block: Block):
        self.codes, self.program, self.block = codes, codes.program, block
        self.now: dict[str, str] = {}
        """The name that the value of a variable has at this place, where that is not the variable's."""
        self.late: set[str] = set()
        self.parts: dict[bool, list[Item]] = {False: [], True: []}
        for item in block.body:
            assert item.predicate is None, f"{block.label} has predicates"
            if isinstance(item, Store):
                self._store(item)
            else:
                self._piece(item)

    def nodes(self) -> BlockNodes:
        """The nodes of the block."""
        wanted = {*self.program.storage, *read(self.block), *read_at_end(self.program, self.block)}
        needed = {self.now.get(name, name) for name in wanted}
        late = replace(self.block, body=assembled(self.parts[True], needed, self.program.shared))
        needed |= {*_inputs(late)}
        early = replace(self.block, body=assembled(self.parts[False], needed, self.program.shared))
        uses = [self._use(part, part is late) for part in (early, late) if part.body]
        return BlockNodes(tuple(uses), {name: self.now[name] for name in self.now if name in wanted})

    def _use(self, part: Block, late: bool) -> Use:
        number, all_sites = self.codes.number(part, late), _sites(self.block.body)
        pairs = zip(_sites(self.codes.blocks[number].body), _sites(part.body), strict=True)
        sites = {own: (all_sites.index(site), site) for own, site in pairs}
        return Use(number, _inputs(part), tuple(written(part)), sites, late)

    def _store(self, store: Store) -> None:
        """Take a store, into another array of its own, which is one before the store."""
        old, (value, *indices) = self._read(store.array), map(self._read, (store.value, *store.indices))
        new = self.now[store.array] = self.codes.fresh(store.array)
        copy = Piece(None, statements=(Statement(Primitive((new,), (old,), Copy())),))
        store = replace(store, array=new, indices=tuple(indices), value=value)
        self._take([copy, store], [old, value, *indices], [new])

    def _piece(self, piece: Piece) -> None:
        """Take a piece, statement by statement, unless there is something in it that is not in any of them alone."""
        statements = []
        for each in piece.statements:
            op = each.op
            if is_copy(op) and is_divisible(piece):
                self.now[writes(op)[0]] = self._read(reads(op)[0])
                continue
            if not isinstance(op, Exit):
                known = {name: self._read(name) for name in reads(op)}
                self.now |= {name: self.codes.fresh(name) for name in writes(op)}
                op = renamed(op, known, self.now)
            statements.append(replace(each, op=op))
        groups = [(each,) for each in statements] if is_divisible(piece) else [tuple(statements)]
        for group in groups:
            ops = [each.op for each in group if not isinstance(each.op, Exit)]
            read, written = ([name for op in ops for name in names(op)] for names in (reads, writes))
            self._take([replace(piece, statements=group, scope="")], read, written, late=not is_divisible(piece))

    def _read(self, name: str) -> str:
        return self.now.get(name, name)

    def _take(self, items: Sequence[Item], read: Sequence[str], written: Sequence[str], late: bool = False) -> None:
        """Take items, which have to do with these names, into one of the parts."""
        late = late or any(name in self.late or self._has_floats(name) for name in (*read, *written))
        if late:
            self.late.update(written)
        self.parts[late] += items

    def _has_floats(self, name: str) -> bool:
        type_ = self.program.shared_types.get(name, self.codes.types.get(name))
        return type_ is None or any(not leaf.dtype.startswith(("int", "uint", "bool")) for leaf in leaves(type_))


def _inputs(block: Block) -> tuple[str, ...]:
    """The names that a body in which each is assigned once takes from outside."""
    return tuple(name for name in read(Block("", block.body, Return())) if name not in written(block))


def _sites(items: Sequence[Item]) -> tuple[int, ...]:
    """The fault sites of some items, in order."""
    every = (site for each in items for site in ((each.site,) if isinstance(each, Store) else each.sites))
    return tuple(dict.fromkeys(site for site in every if site is not None))


def _by_place(items: Sequence[Item], shared: Sequence[str]) -> tuple[Hashable, dict[str, int]]:
    """Items with the place of each name in place of the name, and these places; by texts 1 and 1.0 are told apart."""
    places: dict[str, int] = {}
    sites = _sites(items)

    def named(names: Sequence[str]) -> dict[str, str]:
        return {name: f"x{places.setdefault(name, len(places))}" for name in names if name not in shared}

    def texts() -> Iterator[Hashable]:
        for item in items:
            if isinstance(item, Store):
                names = (item.array, *item.indices, item.value)
                yield (*map(named(names).get, names), item.site if item.site is None else sites.index(item.site))
            for each in item.statements if isinstance(item, Piece) else ():
                own = tuple(None if site is None else sites.index(site) for site in each.sites)
                op = (
                    each.op
                    if isinstance(each.op, Exit)
                    else renamed(each.op, named(reads(each.op)), named(writes(each.op)))
                )
                yield op, "" if isinstance(op, Exit) else statement(op), own

    return tuple(texts()), places
