"""The nodes of batching on the fly: each block's code in two parts, and which of these are the same code.

Code of two blocks that does the same to values of the same types is the same code, as DyNet's signatures have it
(Neubig, Goldberg, Dyer, NIPS 2017, appendix A). Every assignment makes a value of its own, and then

    i = i + 1                       integers: what is made of integers alone
    h = tanh(matvec(W, h))    =>    the rest
    a = copy b                      no code: `a` is another name of the same value

So a graph can go on along the integers that loops, calls and branches go by, before anything else is computed.
Each part is a program of one block that names values in the order in which they come up, and numbers fault sites so.
The same code has the same text then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pcbatch.ir.analysis.effects import read, read_at_end, written
from pcbatch.ir.machine import Block, Item, Piece, Program, Return, Statement, Store
from pcbatch.ir.payload import Copy
from pcbatch.ir.program import Exit, Primitive, is_copy, reads, writes
from pcbatch.ir.rewrite.mapping import assembled, is_divisible, renamed
from pcbatch.ir.text.machine_printer import print_machine
from pcbatch.ir.types import TensorType, Type, leaves, with_leaves


@dataclass(frozen=True)
class Use:
    """A use of code number `code` in a block: the values that it `reads` there and `writes`.

    `sites` are the block's fault sites in place of the code's own, each behind its place among the checks of the block.
    `late` says whether it has to do with anything but integers.
    """

    code: int = 0
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    sites: tuple[tuple[int, int], ...] = ()
    late: bool = False


@dataclass(frozen=True)
class BlockNodes:
    """The nodes of one block, in order, and the values that its variables have at its `end` where these are others."""

    uses: tuple[Use, ...]
    end: Mapping[str, str]


@dataclass(frozen=True)
class Nodes:
    """The code of a program's blocks, each once, as a program of one block; and the nodes of each block.

    `shapeless` has for every code what it has in common with the same code for values of other shapes.
    """

    codes: tuple[Program, ...]
    blocks: tuple[BlockNodes, ...]
    shapeless: tuple[str, ...]


def nodes_of(program: Program) -> Nodes:
    """The nodes of all blocks of `program`."""
    codes: dict[str, Program] = {}
    blocks = tuple(_Splitting(program, block, codes).nodes() for block in program.blocks)
    return Nodes(tuple(codes.values()), blocks, tuple(print_machine(of_components(code)) for code in codes.values()))


def of_components(code: Program) -> Program:
    """The same code for values of no shape, such as single components of its own values."""
    types = {
        name: with_leaves(type_, iter([TensorType(leaf.dtype) for leaf in leaves(type_)]))
        for name, type_ in code.types.items()
    }
    return replace(code, types=types)


@dataclass
class _Part:
    """One part of a block, as far as it has been taken: its names of values and their types, its fault sites."""

    prefix: str
    items: list[Item] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    sites: dict[int, int] = field(default_factory=dict)

    def name(self, value: str, type_: Type | None) -> str:
        """The name of a value."""
        found = self.names.setdefault(value, f"{self.prefix}{len(self.names)}")
        self.types |= {} if type_ is None else {found: type_}
        return found

    def own(self, site: int | None) -> int | None:
        """The number of a fault site of the block."""
        return None if site is None else self.sites.setdefault(site, len(self.sites))

    def code(self, program: Program, wanted: set[str]) -> Program:
        """The part as a program of one block, which gives those of its values that are `wanted`, and what it reads."""
        names = [self.names[value] for value in wanted if value in self.names]
        block = Block("node", assembled(self.items, names, program.shared), Return())
        results = tuple(written(block))
        parameters = tuple(name for name in read(block) if name not in results)
        storage = dict.fromkeys((*parameters, *results), "register")
        found = replace(program, parameters=parameters, results=results, types=self.types, storage=storage)
        return replace(found, name="node", blocks=(block,), faults=(), pointers={}, order=(), structure=None)


class _Splitting:
    """Takes the body of one block into two parts: what is made of integers alone, and the rest."""

    def __init__(self, program: Program, block: Block, codes: dict[str, Program]):
        self.program, self.block, self.codes = program, block, codes
        externs = (name for names in program.externs.values() for name in names)
        prefix, taken = "x", (*program.shared, *externs)
        while any(name.startswith(prefix) for name in taken):
            prefix += "_"
        self.parts = {False: _Part(prefix), True: _Part(prefix)}
        self.now: dict[str, str] = {}
        """The value that a variable has at this place, where the block has given it one."""
        self.types: dict[str, Type | None] = {**program.types}
        self.late: set[str] = set()
        for item in block.body:
            assert item.predicate is None, f"{block.label} has predicates"
            if isinstance(item, Store):
                self._store(item)
            else:
                self._piece(item)

    def nodes(self) -> BlockNodes:
        """The nodes of the block."""
        ends = {*self.program.storage, *read(self.block), *read_at_end(self.program, self.block)}
        end = {name: value for name, value in self.now.items() if name in ends}
        late, wanted = self.parts[True], {*ends, *end.values()}
        last = late.code(self.program, wanted)
        wanted |= {value for value, name in late.names.items() if name in last.parameters}
        first = self.parts[False].code(self.program, wanted)
        found = [self._use(is_late, code) for is_late, code in ((False, first), (True, last)) if code.blocks[0].body]
        return BlockNodes(tuple(found), end)

    def _use(self, is_late: bool, code: Program) -> Use:
        part, text = self.parts[is_late], print_machine(code)
        self.codes.setdefault(text, code)
        values = {name: value for value, name in part.names.items()}
        every = [site for item in self.block.body for site in ((item.site,) if isinstance(item, Store) else item.sites)]
        return Use(
            [*self.codes].index(text),
            tuple(values[name] for name in code.parameters),
            tuple(values[name] for name in code.results),
            tuple((every.index(site), site) for site in part.sites),
            is_late,
        )

    def _store(self, store: Store) -> None:
        """Take a store, into another array of its own, which is one before the store."""
        names = (store.array, *store.indices, store.value)
        values = [*map(self._value, names)]
        part = self._part([*values, store.array])
        old, *indices, value = (part.name(each, self.types.get(each)) for each in values)
        new = self._assigned(store.array, part)
        copy = Piece(None, statements=(Statement(Primitive((new,), (old,), Copy())),))
        part.items += [copy, Store(new, tuple(indices), value, part.own(store.site))]

    def _piece(self, piece: Piece) -> None:
        """Take a piece, statement by statement, unless there is something in it that is not in any of them alone."""
        is_whole = not is_divisible(piece)
        for group in [piece.statements] if is_whole else [(each,) for each in piece.statements]:
            if not is_whole and is_copy(copy := group[0].op):
                self.now[writes(copy)[0]] = self._value(reads(copy)[0])
                continue
            ops = [each.op for each in group if not isinstance(each.op, Exit)]
            names = [name for op in ops for name in (*map(self._value, reads(op)), *writes(op))]
            part = self._part(names, is_whole)
            statements = tuple(self._statement(each, part) for each in group)
            part.items.append(replace(piece, statements=statements, scope=""))

    def _statement(self, statement: Statement, part: _Part) -> Statement:
        """The statement in the names of a part."""
        op = statement.op
        if not isinstance(op, Exit):
            given = [(name, self._value(name)) for name in reads(op) if name not in self.program.shared]
            known = {name: part.name(value, self.types.get(value)) for name, value in given}
            op = renamed(op, known, {name: self._assigned(name, part) for name in writes(op)})
        return Statement(op, tuple(map(part.own, statement.sites)))

    def _part(self, values: Sequence[str], is_late: bool = False) -> _Part:
        """The part of code that has to do with these values, or gives them, named by their variables."""
        return self.parts[is_late or any(value in self.late or self._has_floats(value) for value in values)]

    def _has_floats(self, value: str) -> bool:
        type_ = self.program.shared_types.get(value, self.types.get(value))
        return type_ is None or any(not leaf.dtype.startswith(("int", "uint", "bool")) for leaf in leaves(type_))

    def _value(self, name: str) -> str:
        """The value that a variable has now."""
        return self.now.get(name, name)

    def _assigned(self, name: str, part: _Part) -> str:
        """The name in a part of the value that a variable is given now."""
        value = self.now[name] = f"{name} {len(self.types)}"
        self.types[value] = self.program.types.get(name)
        if part is self.parts[True]:
            self.late.add(value)
        return part.name(value, self.types[value])
