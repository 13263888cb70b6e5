"""The nodes of batching on the fly: each block's code in two parts, and which of these are the same code.

Code of two blocks that does the same to values of the same types is the same code, as DyNet's signatures have it
(Neubig, Goldberg, Dyer, NIPS 2017, appendix A). Every assignment makes a value of its own, and then

    i = i + 1                       integers: what is made of integers alone
    h = tanh(matvec(W, h))    =>    the rest
    a = copy b                      no code: `a` is another name of the same value

So a graph can go on along the integers that loops, calls and branches go by, before anything else is computed.
Each part is a program of one block that names values in the order in which they come up, and has one fault site for
all checks. The same code has the same text then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from pcbatch.ir.analysis.effects import read, read_at_end, written
from pcbatch.ir.machine import Block, Item, Piece, Program, Return, Statement, Store
from pcbatch.ir.machine_printer import print_machine
from pcbatch.ir.payload import Copy
from pcbatch.ir.program import Exit, Primitive, is_copy, reads, writes
from pcbatch.ir.rewrite import assembled, is_divisible, renamed
from pcbatch.ir.types import TensorType, Type, leaves, with_leaves


@dataclass(frozen=True)
class Use:
    """A use of code number `code` in a block: the values that it `reads` there and `writes`.

    `late` says whether it has to do with anything but integers.
    """

    code: int = 0
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
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

    def shapeless(type_: Type) -> Type:
        return with_leaves(type_, (TensorType(leaf.dtype) for leaf in leaves(type_)))

    return replace(code, types={name: shapeless(type_) for name, type_ in code.types.items()})


class _Part:
    """One part of a block, as far as it has been taken: its items, its names of values."""

    def __init__(self, program: Program):
        self.items: list[Item] = []
        self.names: dict[str, str] = {}
        self.prefix, taken = "x", [*program.shared, *(name for names in program.externs.values() for name in names)]
        while any(name.startswith(self.prefix) for name in taken):
            self.prefix += "_"

    def name(self, value: str) -> str:
        """The name of a value."""
        return self.names.setdefault(value, f"{self.prefix}{len(self.names)}")


class _Splitting:
    """Takes the body of one block into two parts: what is made of integers alone, and the rest."""

    def __init__(self, program: Program, block: Block, codes: dict[str, Program]):
        self.program, self.block, self.codes = program, block, codes
        self.parts = _Part(program), _Part(program)
        self.late: set[str] = set()
        self.now = {name: name for name in (*program.types, *program.shared)}
        """The value that a variable has at this place; in the beginning it goes by the variable's name."""
        self.numbers = count()
        for item in block.body:
            assert item.predicate is None, f"{block.label} has predicates"
            if isinstance(item, Store):
                self._store(item)
            else:
                self._piece(item)

    def nodes(self) -> BlockNodes:
        """The nodes of the block."""
        ends = {*self.program.storage, *read(self.block), *read_at_end(self.program, self.block)}
        end = {name: value for name, value in self.now.items() if name in ends and value != name}
        late = self._uses(True, {*ends, *end.values()})
        early = self._uses(False, {*ends, *end.values(), *(value for use in late for value in use.reads)})
        return BlockNodes((*early, *late), end)

    def _uses(self, is_late: bool, wanted: set[str]) -> list[Use]:
        """The use of one part's code, if it has some, which gives those of its values that are `wanted`."""
        program, part = self.program, self.parts[is_late]
        body = assembled(part.items, [part.name(value) for value in wanted & part.names.keys()], program.shared)
        if not body:
            return []
        block = Block("node", body, Return())
        results = tuple(written(block))
        parameters = tuple(name for name in read(block) if name not in results)
        values = {name: value for value, name in part.names.items()}
        types = {name: type_ for name, value in values.items() if (type_ := self._type(value)) is not None}
        storage = dict.fromkeys((*parameters, *results), "register")
        code = Program("node", parameters, results, types, storage, (block,), shared=program.shared)
        code = replace(code, shared_types=program.shared_types, externs=program.externs)
        self.codes.setdefault(text := print_machine(code), code)
        given, made = (tuple(values[name] for name in names) for names in (parameters, results))
        return [Use([*self.codes].index(text), given, made, is_late)]

    def _store(self, store: Store) -> None:
        """Take a store, into another array of its own, which is one before the store."""
        values = [self.now[name] for name in (store.array, *store.indices, store.value)]
        part = self._part([*values, store.array])
        old, *indices, value = map(part.name, values)
        new = self._assigned(store.array, part)
        copy = Piece(None, statements=(Statement(Primitive((new,), (old,), Copy())),))
        part.items += [copy, Store(new, tuple(indices), value, None if store.site is None else 0)]

    def _piece(self, piece: Piece) -> None:
        """Take a piece, statement by statement, unless there is something in it that is not in any of them alone."""
        is_whole = not is_divisible(piece)
        for group in [piece.statements] if is_whole else [(each,) for each in piece.statements]:
            if not is_whole and is_copy(copy := group[0].op):
                self.now[writes(copy)[0]] = self.now[reads(copy)[0]]
                continue
            ops = [each.op for each in group if not isinstance(each.op, Exit)]
            read, given = ([name for op in ops for name in names(op)] for names in (reads, writes))
            part = self._part([*(self.now.get(name, name) for name in read), *given], is_whole)
            statements = tuple(self._statement(each, part) for each in group)
            part.items.append(replace(piece, statements=statements, scope=""))

    def _statement(self, statement: Statement, part: _Part) -> Statement:
        """The statement in the names of a part."""
        op = statement.op
        if not isinstance(op, Exit):
            known = {name: part.name(self.now[name]) for name in reads(op) if name not in self.program.shared}
            op = renamed(op, known, {name: self._assigned(name, part) for name in writes(op)})
        return Statement(op, tuple(None if site is None else 0 for site in statement.sites))

    def _part(self, values: Sequence[str], is_late: bool = False) -> _Part:
        """The part of code that has to do with these values; those that it gives go by the names of variables."""
        types = [leaf for value in values for leaf in leaves(self._type(value) or TensorType("float32"))]
        has_floats = any(not leaf.dtype.startswith(("int", "uint", "bool")) for leaf in types)
        return self.parts[is_late or has_floats or not self.late.isdisjoint(values)]

    def _type(self, value: str) -> Type | None:
        """The type of a value, or of a shared operand."""
        name = value.partition(" ")[0]
        return self.program.shared_types.get(name, self.program.types.get(name))

    def _assigned(self, name: str, part: _Part) -> str:
        """The name in a part of the value that a variable is given now."""
        value = self.now[name] = f"{name} {next(self.numbers)}"
        self.late.update([value] if part is self.parts[True] else [])
        return part.name(value)
