"""The parts of a block of a loop: what stays in it, what may be deferred, and what is done behind that, by turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pcbatch.errors import Span
from pcbatch.ir.analysis.effects import read, read_at_end, written
from pcbatch.ir.analysis.speculatable import calls_opaque, is_cheap
from pcbatch.ir.expressions import Input, operation
from pcbatch.ir.machine import Block, Item, Piece, Program, Statement, Store, checked_sites
from pcbatch.ir.payload import Compute, Copy
from pcbatch.ir.program import Primitive, reads, writes
from pcbatch.ir.rewrite import assembled, is_divisible, renamed
from pcbatch.ir.types import TensorType, Type

ELEMENT = Compute(operation("[]", Input(0), Input(1)))
STAYS, DEFERRED, EACH = "stays", "deferred", "each"


@dataclass(frozen=True)
class Parts:
    """The parts of a block, and the names that are handed on.

    `kept` are values that the part which stays computes, `values` what is deferred. `for_deferred` and `for_each` say
    of the kept ones who needs them.
    """

    stays: tuple[Item, ...]
    deferred: tuple[Piece, ...]
    each: tuple[Item, ...]
    kept: tuple[str, ...]
    values: tuple[str, ...]
    for_deferred: frozenset[str]
    for_each: frozenset[str]
    types: dict[str, Type]


@dataclass
class _Node:
    """A statement or a store, and the place of its item in the block."""

    what: Statement | Store
    item: int
    part: str = DEFERRED

    @property
    def reads(self) -> tuple[str, ...]:
        """The names that it reads; a store its array, too."""
        what = self.what
        return (what.array, *what.indices, what.value) if isinstance(what, Store) else reads(what.op)

    @property
    def writes(self) -> tuple[str, ...]:
        """The names that it gives a value."""
        return (self.what.array,) if isinstance(self.what, Store) else writes(self.what.op)


def parts_of(program: Program, number: int, others: Sequence[Block]) -> Parts | None:
    """The parts of block `number`; `others` are the other blocks of its loop, and those in which lanes of it fail.

    None where nothing that may be expensive can be deferred.
    """
    block = program.blocks[number]
    if block.pops or block.pushes or not all(map(is_divisible, block.body)):
        return None
    found = _Finding(program, number, others)
    found.find()
    return found.parts() if any(map(found.may_be_expensive, found.of(DEFERRED))) else None


class _Finding:
    """Puts each statement of a block into one of the parts."""

    def __init__(self, program: Program, number: int, others: Sequence[Block]):
        self.program, self.block = program, program.blocks[number]
        self.elsewhere = read_at_end(program, self.block).union(*(_named(program, other) for other in others))
        self.changed = {name for other in others for name in (*written(other), *other.pops)}
        self.nodes = [*_nodes(self.block.body)]

    def of(self, part: str) -> list[_Node]:
        """The nodes of one part."""
        return [node for node in self.nodes if node.part == part]

    def externs(self, node: _Node) -> tuple[str, ...]:
        """The free names of the scope of a statement."""
        item = self.block.body[node.item]
        return self.program.externs.get(item.scope, ()) if isinstance(item, Piece) else ()

    def may_be_expensive(self, node: _Node) -> bool:
        """Tell whether a statement calls something."""
        return isinstance(node.what, Statement) and calls_opaque(node.what.op, self.externs(node))

    def is_cheap(self, node: _Node) -> bool:
        """Tell whether it may be done turn by turn: it stores one element, or is an operator that cannot fail."""
        if isinstance(node.what, Store):
            return len(node.what.indices) == 1 and self._is_scalar(node.what.indices[0])
        if calls_opaque(node.what.op, self.externs(node)):
            return False
        return is_cheap(node.what.op, self.externs(node), never_fails=bool(node.what.sites))

    def _is_scalar(self, name: str) -> bool:
        type_ = self.program.types.get(name)
        return isinstance(type_, TensorType) and type_.shape == ()

    def find(self) -> None:
        """Begin with all deferred, and move what cannot be until nothing has to be moved any more."""
        for node in self.nodes:
            if self._has_to_stay(node):
                node.part = STAYS
        while self._moved():
            pass

    def _has_to_stay(self, node: _Node) -> bool:
        """Tell whether a check, another block or the end of this one needs what a node does."""
        if isinstance(node.what, Statement) and checked_sites([node.what]):
            return True
        return not self.elsewhere.isdisjoint(node.writes)

    def _moved(self) -> bool:
        """Move nodes for one reason; False where none is left."""
        return any(move() for move in (self._needed, self._recurrent, self._carried, self._alone, self._idle))

    def _needed(self) -> bool:
        """Keep in the loop the reads of statements that stay, and all writers of these statements' variables.

        The check of each store stays, so its indices do.
        """
        stays = self.of(STAYS)
        names = {name for node in stays for name in (*node.reads, *node.writes)}
        names |= {name for node in self.nodes if isinstance(node.what, Store) for name in node.what.indices}
        return self._move([node for node in self.nodes if node.part != STAYS and not names.isdisjoint(node.writes)])

    def _move(self, nodes: Sequence[_Node], part: str = STAYS) -> bool:
        for node in nodes:
            node.part = part
        return bool(nodes)

    def _recurrent(self) -> bool:
        """Keep in the loop statements that need their own earlier turn, unless cheap, and stores of variables."""
        found = []
        for node in (node for node in self.nodes if node.part != STAYS and not self.is_cheap(node)):
            if any(map(self._is_stored, node.writes)) or any(other is node for other in self._behind(node)):
                found.append(node)
        return self._move(found)

    def _carried(self) -> bool:
        """Do statements that depend on the turn before by turn; where one is not cheap, its operands stay.

        Where it is not cheap, what it depends on stays.
        """
        carriers = [n for n in self.nodes if n.part != STAYS and any(map(self._is_stored, n.writes))]
        dependent = {id(node): self._behind(node) for node in carriers}
        wrong = [node for node in carriers if not all(map(self.is_cheap, dependent[id(node)]))]
        if wrong:
            return self._move(wrong)
        found = [*carriers, *(node for nodes in dependent.values() for node in nodes)]
        return self._move([node for node in found if node.part != EACH], EACH)

    def _behind(self, node: _Node) -> list[_Node]:
        """All that may be deferred and depends on a node, in its turn or in a later one."""
        found: list[_Node] = []
        waiting = [node]
        while waiting:
            names = {*waiting.pop().writes}
            for other in self.nodes:
                if other.part != STAYS and not names.isdisjoint(other.reads) and all(other is not n for n in found):
                    found.append(other)
                    waiting.append(other)
        return found

    def _is_stored(self, name: str) -> bool:
        return name in self.program.storage

    def _alone(self) -> bool:
        """Keep in the loop statements done by turn that use nothing expensive and deferred, and such deferred ones."""
        fruitful: set[str] = set()
        grows = True
        while grows:
            before = len(fruitful)
            for node in (node for node in self.nodes if node.part != STAYS):
                expensive = node.part == DEFERRED and self.may_be_expensive(node)
                if expensive or not fruitful.isdisjoint(node.reads):
                    fruitful |= {*node.writes}
            grows = len(fruitful) > before
        return self._move([node for node in self.of(EACH) if fruitful.isdisjoint(node.writes)])

    def _idle(self) -> bool:
        """Leave deferred statements in place whose results nobody behind needs."""
        needed = {name for node in self.nodes if node.part != STAYS for name in node.reads}
        return self._move([node for node in self.of(DEFERRED) if needed.isdisjoint(node.writes)])

    # -- the parts -----------------------------------------------------------------------------------------------------

    def parts(self) -> Parts | None:
        """The parts; None where a value would have to be kept that is no array of numbers."""
        times = Counter(name for node in self.nodes for name in node.writes)
        deferred = {name for node in self.of(DEFERRED) for name in node.writes}
        if any(times[name] > 1 for name in deferred):
            return None
        splitting = _Splitting(self, deferred)
        for node in self.nodes:
            splitting.take(node)
        return splitting.parts()


class _Splitting:
    """Goes through the nodes of a block in their order, and takes each into its part."""

    def __init__(self, finding: _Finding, deferred: Collection[str]):
        self.finding, self.program, self.deferred = finding, finding.program, deferred
        self.changes = finding.changed | {name for node in finding.of(STAYS) for name in node.writes}
        externs = (name for names in self.program.externs.values() for name in names)
        self.taken = {*self.program.types, *self.program.storage, *self.program.shared, *externs}
        self.held: dict[str, str] = {}
        """The names by which values are kept that variables have at this place."""
        self.again: dict[str, str] = {}
        """The names of what is looked up again, by what they were."""
        self.types: dict[str, Type] = {}
        self.nodes: dict[str, list[_Node]] = {STAYS: [], DEFERRED: [], EACH: []}

    def take(self, node: _Node) -> None:
        """Take the next node."""
        if node.part == STAYS:
            self.nodes[STAYS].append(node)
            for name in node.writes:
                self.held.pop(name, None)  # from here on it has another value
            return
        found: dict[str, str] = {}
        for name in (each for each in node.reads if each in self.changes):
            looked_up = self._looked_up(name) if node.part == DEFERRED else None
            found[name] = self._held(name, node) if looked_up is None else self._again(name, looked_up)
        self.nodes[node.part].append(_reading(node, found))
        if isinstance(node.what, Store):
            self._check(node, node.what)

    def _held(self, name: str, node: _Node) -> str:
        """The name by which the value is kept that a variable has here."""
        if name not in self.held:
            self.held[name] = self._fresh(f"{name}_kept")
            self.types[self.held[name]] = self.program.types[name]
            self._stay(Statement(Primitive((self.held[name],), (name,), Copy(), _span(node))), node)
        return self.held[name]

    def _looked_up(self, name: str) -> _Node | None:
        """The statement that has looked up `name` in an array that the loop leaves as it is, None if none has.

        That is done again: to keep the place costs less than to keep what is there.
        """
        defined = [node for node in self.nodes[STAYS] if name in node.writes]
        if name in self.again:
            return defined[0]
        if len(defined) != 1 or not isinstance(defined[0].what, Statement) or name in self.program.storage:
            return None
        op = defined[0].what.op
        if not isinstance(op, Primitive) or op.code != ELEMENT or len(op.inputs) != 2:
            return None
        array, index = (self.program.types.get(each) for each in op.inputs)
        are_arrays = isinstance(array, TensorType) and index in (TensorType("int32"), TensorType("int32", weak=True))
        is_lanes = op.inputs[0] in self.program.storage and op.inputs[0] not in self.changes
        return defined[0] if are_arrays and is_lanes and not self._has_changed(op.inputs[1], defined[0]) else None

    def _has_changed(self, name: str, since: _Node) -> bool:
        """Tell whether what stays has given `name` another value since a node."""
        return any(name in node.writes for node in self.nodes[STAYS][self.nodes[STAYS].index(since) + 1 :])

    def _again(self, name: str, looked_up: _Node) -> str:
        """The name by which what was looked up is known where that is done again."""
        if name not in self.again:
            assert isinstance(looked_up.what, Statement) and isinstance(looked_up.what.op, Primitive)
            op, found = looked_up.what.op, self._fresh(f"{name}_again")
            index = op.inputs[1]
            place = self._held(index, looked_up) if index in self.changes else index
            self.again[name], self.types[found] = found, self.program.types[name]
            again = replace(op, outputs=(found,), inputs=(op.inputs[0], place))
            statement = replace(looked_up.what, op=again, sites=(None,) * len(looked_up.what.sites))
            self.nodes[DEFERRED].append(replace(looked_up, what=statement))
        return self.again[name]

    def _stay(self, statement: Statement, node: _Node) -> None:
        self.nodes[STAYS].append(_Node(statement, node.item, STAYS))

    def _check(self, node: _Node, store: Store) -> None:
        """Let the check of a store that is put off stay: to look up what will be replaced fails where that does."""
        name, code = self._fresh(f"{store.array}_there"), ELEMENT
        array = self.program.types[store.array]
        assert isinstance(array, TensorType)
        self.types[name] = TensorType(array.dtype, array.shape[1:])
        looked_up = Primitive((name,), (store.array, store.indices[0]), code, _span(node))
        self._stay(Statement(looked_up, (store.site,)), node)

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def parts(self) -> Parts | None:
        """The parts, when all have been taken; None where a value cannot be kept."""
        values = {n for node in self.nodes[EACH] for n in node.reads if n in self.deferred}
        read_by = {part: {name for node in self.nodes[part] for name in node.reads} for part in (DEFERRED, EACH)}
        kept = [name for name in self.held_names if name in read_by[DEFERRED] | read_by[EACH]]
        every = [self.types.get(name, self.program.types.get(name)) for name in (*kept, *values)]
        if not all(map(_is_array, every)):
            return None
        deferred = self._items(DEFERRED, values)
        at_end = read_at_end(self.program, self.finding.block)
        return Parts(
            self._items(STAYS, {*kept, *at_end}),
            tuple(item for item in deferred if isinstance(item, Piece)),
            self._items(EACH, set()),
            tuple(kept),
            tuple(sorted(values)),
            frozenset(read_by[DEFERRED].intersection(kept)),
            frozenset(read_by[EACH].intersection(kept)),
            self.types,
        )

    @property
    def held_names(self) -> list[str]:
        """The names of all that is kept, in order."""
        return [name for node in self.nodes[STAYS] for name in node.writes if name in self.types]

    def _items(self, part: str, wanted: Collection[str]) -> tuple[Item, ...]:
        """The nodes of a part as items, of which some values are `wanted` behind."""
        nodes, storage = self.nodes[part], self.program.storage
        items = [
            node.what if isinstance(node.what, Store) else replace(self._source(node), statements=(node.what,))
            for node in nodes
        ]
        wanted = {*wanted, *(name for node in nodes for name in node.writes if name in storage)}
        return assembled(items, wanted, self.program.shared)

    def _source(self, node: _Node) -> Piece:
        """The piece that a statement is of; for one that stands for a store, the one that is next to it."""
        body = self.finding.block.body
        pieces = [place for place, item in enumerate(body) if isinstance(item, Piece)]
        found = body[min(pieces, key=lambda place: abs(place - node.item))]
        assert isinstance(found, Piece)
        return found


def _named(program: Program, block: Block) -> set[str]:
    """The variables that a block has to do with."""
    return {*read(block), *written(block), *block.pops, *read_at_end(program, block)}


def _nodes(body: Sequence[Item]) -> Iterator[_Node]:
    for place, item in enumerate(body):
        for what in (item,) if isinstance(item, Store) else item.statements:
            yield _Node(what, place)


def _reading(node: _Node, held: Mapping[str, str]) -> _Node:
    """The node, reading what is kept in place of what it reads."""
    if isinstance(node.what, Store):
        store = node.what
        index, value = (held.get(name, name) for name in (store.indices[0], store.value))
        return replace(node, what=replace(store, indices=(index,), value=value, site=None))
    op = renamed(node.what.op, {name: held[name] for name in node.reads if name in held}, {})
    return replace(node, what=replace(node.what, op=op))


def _span(node: _Node) -> Span | None:
    return None if isinstance(node.what, Store) else node.what.op.span


def _is_array(type_: Type | None) -> bool:
    """Tell whether values of a type can be kept in an array, and come back as they were."""
    return isinstance(type_, TensorType) and not (type_.weak and type_.dtype != "int32") and type_.dtype in _DTYPES


_DTYPES = frozenset({"bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64"})
