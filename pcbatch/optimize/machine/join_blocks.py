"""The join block: a lane whose calls others have run does in one block the work behind and between them.

    b2: push node; ..; pushjump b0, back to b3, fork (..) -> r; (..) -> r
    b3: pop node; h1 = r; node = right[node]; push h1; pushjump b0, back to b4
    b4: pop h1; r = W @ [h1, r]; return
                                       -->
    b2: node_1 = node; ..; pushjump b0, back to b3, fork (..) -> s0 = r; (..) -> s1 = r; join b5
    b5: r = s0; node = node_1; h1 = r; node = right[node]; saved = h1; r = s1; h1 = saved; r = W @ [h1, r]; return

The group's first block pushes nothing where it forks: what it would save is kept in registers, which nobody touches
while the lane waits. So what the blocks of the group push and pop becomes copies, and only what is left over is pushed.

Values that were saved before a group of calls begins are brought to where its first block can hand them over:

    b2: push k; ..; pushjump b0, back to b3     b2: (as before)
    b3: ..; pushjump b0, back to b4       -->   b3: pop k; k_1 = k; ..; push k = k_1; pushjump b0, back to b4
    b4: pop k; n = n - k; pushjump b0, ..       b4: (as before)

Without that the call in b4 could not be made together with the one in b3: what it is given lies on a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pcbatch.ir.machine import Block, Branch, Item, Jump, Piece, Program, Push, Statement, Store
from pcbatch.ir.payload import NEGATION, Copy
from pcbatch.ir.program import Primitive

Fresh = Callable[[str], str]
"""A name that is not taken yet, for a value of the variable that is given."""


def copies(block: Block, pairs: Sequence[tuple[str, str]], *, speculative: bool = False) -> list[Item]:
    """A piece of `block` that gives each first name the value of the second; none, if there are no pairs."""
    if not pairs:
        return []
    read = tuple(dict.fromkeys(source for _, source in pairs))
    statements = tuple(Statement(Primitive((name,), (source,), Copy())) for name, source in pairs)
    scope = next((item.scope for item in block.body if isinstance(item, Piece)), block.function)
    given = tuple(dict.fromkeys(name for name, _ in pairs))
    return [Piece(None, read, given, statements=statements, scope=scope, speculative=speculative)]


Arm = tuple[int, bool]
"""One of the arms of a branch, by the number of its block."""


@dataclass
class Joining:
    """A join block in the making: its work so far, and values saved and not yet restored."""

    fresh: Fresh
    items: list[Item] = field(default_factory=list)
    pops: list[str] = field(default_factory=list)
    saved: dict[str, list[str]] = field(default_factory=dict)
    """The names of the values that the blocks so far would have on the stack of each variable, the last one on top."""
    touched: set[str] = field(default_factory=set)
    predicates: dict[Arm, str] = field(default_factory=dict)
    """The predicates of the arms of branches."""
    under: Arm | None = None
    """The arm in which the block is that came last."""
    at_branch: dict[str, int] = field(default_factory=dict)
    """The number of values that had been saved before the arm."""

    def begin(self, kept: Sequence[tuple[str, str]]) -> None:
        """The registers with the values that the group's first block saves, by variable."""
        for variable, name in kept:
            self.saved.setdefault(variable, []).append(name)

    def asks(self, number: int, block: Block, taken: Collection[Arm | None], asked: str = "") -> None:
        """Make the condition, or the `asked` one, of a block that branches the predicate of the arms `taken`."""
        assert isinstance(block.terminator, Branch)
        condition = asked or block.terminator.condition
        scope = next((item.scope for item in block.body if isinstance(item, Piece)), block.function)
        for holds, code in ((True, Copy()), (False, NEGATION)):
            if (number, holds) in taken:
                name = self.fresh(block.terminator.condition)
                statement = Statement(Primitive((name,), (condition,), code))
                self._do([Piece(None, (condition,), (name,), statements=(statement,), scope=scope)])
                self.predicates[number, holds] = name

    def called(
        self, block: Block, results: Sequence[tuple[str, str]], *, under: Arm | None = None, forks: bool = False
    ) -> bool:
        """The body of a block to which a call may have come back, without its end; one that `forks` pushes nothing.

        In the arm of a branch it does that `under` a predicate. False where that cannot be said: it takes off a stack,
        in the middle or in an arm, what lay there before the group, or has predicates of its own.
        """
        if under != self.under:
            if not self.is_balanced():
                return False
            self.under, self.at_branch = under, self._saved()
        if under is not None and any(item.predicate is not None for item in block.body):
            return False
        self._do(copies(block, [(variable, name) for name, variable in results]))
        for name in block.pops:
            if self.saved.get(name):
                self._do(copies(block, [(name, self.saved[name].pop())]))
            elif name in self.touched or under is not None:
                return False
            else:
                self.pops.append(name)
        pushes = () if forks else block.pushes
        before = {push: self.fresh(push.variable) for push in pushes if push.saved is None}
        self._do(copies(block, [(name, push.variable) for push, name in before.items()]))
        self._do([item for item in block.body if forks or not (isinstance(item, Piece) and item.speculative)])
        after = {push: self.fresh(push.variable) for push in pushes if push.saved is not None}
        self._do(copies(block, [(name, str(push.saved)) for push, name in after.items()]))
        for push in pushes:
            self.saved.setdefault(push.variable, []).append({**before, **after}[push])
        return True

    def is_balanced(self) -> bool:
        """Return whether the last block's arm restores its own saved values, and no others."""
        return self.under is None or self._saved() == self.at_branch

    def _saved(self) -> dict[str, int]:
        return {variable: len(names) for variable, names in self.saved.items() if names}

    def end(self, block: Block, label: str, onward: int | None = None) -> Block:
        """The join block, which ends as the last `block` does, or goes on at block `onward`."""
        pushes = tuple(Push(variable, name) for variable, names in self.saved.items() for name in names)
        if onward is not None:
            block = replace(block, terminator=Jump(onward, span=block.span), steps_site=-1)
        return replace(block, label=label, body=tuple(self.items), pops=tuple(self.pops), pushes=pushes)

    def _do(self, items: Sequence[Item]) -> None:
        for item in items:
            if self.under is not None:
                item = replace(item, predicate=self.predicates[self.under])
            self.items.append(item)
            self.touched.update(_names(item))


def _names(item: Item) -> Iterator[str]:
    if isinstance(item, Store):
        yield from (item.array, *item.indices, item.value)
    else:
        yield from (*item.reads, *item.writes)
    if item.predicate is not None:
        yield item.predicate


# -- saved values ------------------------------------------------------------------------------------------------------


def lifted(
    program: Program,
    first: int,
    variables: Collection[str],
    live: Sequence[frozenset[str]],
    fresh: Callable[[str], str],
) -> Program | None:
    """The program whose block number `first` takes `variables` off their stacks at its start, and saves them again.

    None where there are none, or where the tops of some are in use: what may be read (`live`) in a block or behind it.
    """
    block = program.blocks[first]
    for name in variables:
        if name in live[first] or name in block.pops or program.storage.get(name) != "cached stack":
            return None
    if not variables:
        return None
    kept = {name: fresh(name) for name in sorted(variables)}
    block = replace(
        block,
        pops=(*block.pops, *kept),
        body=(*copies(block, [(name, variable) for variable, name in kept.items()]), *block.body),
        pushes=(*(Push(variable, name) for variable, name in kept.items()), *block.pushes),
    )
    blocks = (*program.blocks[:first], block, *program.blocks[first + 1 :])
    types = {**program.types, **{name: program.types[variable] for variable, name in kept.items()}}
    return replace(program, blocks=blocks, types=types)
