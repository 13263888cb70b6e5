"""A control-flow graph under construction: blocks are opened, filled, ended, and tidied once they are all there.

Blocks stand in the order in which they were opened, which is the order of the source. A block that nothing leads to is
never opened: while there is no current block, the statements at hand cannot be reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pcbatch.errors import Span
from pcbatch.ir.debugging import text_of
from pcbatch.ir.program import Block, Branch, Jump, Op, Return, Terminator, successors

Places = Mapping[str, Span]
"""Where, in the user's source, an op reads its variables."""


@dataclass
class DraftBlock:
    """A block with, for each op and its terminator, the places of the names that it reads."""

    label: str
    sync: bool = False
    ops: list[tuple[Op, Places]] = field(default_factory=list)
    terminator: Terminator | None = None
    places: Places = field(default_factory=dict)


class Draft:
    """The blocks of one function, under provisional labels."""

    def __init__(self) -> None:
        self.blocks: dict[str, DraftBlock] = {}
        self.current: DraftBlock | None = None
        self._labels = 0
        self._wanted: set[str] = set()
        entry = self.label()
        self._wanted.add(entry)
        self.open(entry)

    def label(self) -> str:
        """A fresh label for a block to be opened later."""
        self._labels += 1
        return f"L{self._labels}"

    def open(self, label: str, *, sync: bool = False) -> None:
        """Begin the block `label`, at which lanes wait if `sync`; if nothing leads to it there is no current block."""
        if self.current is not None:
            raise ValueError(f"block {self.current.label} has not ended")
        if label in self._wanted:
            self.current = self.blocks[label] = DraftBlock(label, sync)

    def emit(self, op: Op, places: Places) -> None:
        """Append `op` to the current block, if there is one."""
        if self.current is not None:
            self.current.ops.append((op, places))

    def end(self, terminator: Terminator, places: Places | None = None) -> None:
        """End the current block, if there is one."""
        if self.current is not None:
            self.current.terminator = terminator
            self.current.places = places or {}
            self._wanted.update(successors(terminator))
            self.current = None

    def finish(self) -> list[DraftBlock]:
        """All blocks, tidied: no block that only jumps on, no jump to a block that nothing else leads to."""
        blocks = list(self.blocks.values())
        while True:
            tidied = _merged(_threaded(blocks))
            if len(tidied) == len(blocks):
                return tidied
            blocks = tidied


def _terminator(block: DraftBlock) -> Terminator:
    if block.terminator is None:
        raise ValueError(f"block {block.label} has not ended")
    return block.terminator


def _threaded(blocks: list[DraftBlock]) -> list[DraftBlock]:
    """`blocks` without those that are empty and jump on (turns of loops apart) and without what cannot be reached.

    Blocks at which lanes wait stay, empty or not, and those behind an entry of `pcbatch.debug`.

    A jump to an empty block that returns becomes a return (what is called right before it is a tail call), a jump to an
    empty block that begins a turn begins it itself.
    """
    empty = [block for block in blocks if not block.ops and not block.sync]
    ends = {block.label: _terminator(block) for block in empty if _ends_path(_terminator(block))}
    behind = {target for block in blocks if _ends_in_entry(block) for target in successors(_terminator(block))}
    onward = {
        block.label: block.terminator.target
        for block in empty
        if isinstance(block.terminator, Jump) and not block.terminator.turn and block.label not in behind
    }

    def final(label: str) -> str:
        seen: set[str] = set()
        while label in onward and label not in seen:
            seen.add(label)
            label = onward[label]
        return label

    def following(block: DraftBlock) -> Terminator:
        if _ends_in_entry(block):
            return _terminator(block)
        terminator = _redirect(_terminator(block), final)
        if isinstance(terminator, Jump) and not terminator.turn:
            return _redirect(ends.get(terminator.target, terminator), final)
        return terminator

    entry = final(blocks[0].label)
    redirected = {block.label: replace(block, terminator=following(block)) for block in blocks}
    reached: set[str] = set()
    work = [entry]
    while work:
        label = work.pop()
        if label not in reached:
            reached.add(label)
            work += successors(_terminator(redirected[label]))
    kept = [block for block in redirected.values() if block.label in reached]
    return sorted(kept, key=lambda block: block.label != entry)


def _ends_in_entry(block: DraftBlock) -> bool:
    """Whether the block ends in an entry of `pcbatch.debug`, which a fault of what comes next must leave whole."""
    return bool(block.ops) and text_of(block.ops[-1][0]) is not None


def _ends_path(terminator: Terminator) -> bool:
    return isinstance(terminator, Return) or (isinstance(terminator, Jump) and terminator.turn)


def _redirect(terminator: Terminator, final: Callable[[str], str]) -> Terminator:
    match terminator:
        case Jump(target):
            return replace(terminator, target=final(target))
        case Branch(_, true, false):
            if final(true) == final(false):
                return Jump(final(true), span=terminator.span)
            return replace(terminator, true=final(true), false=final(false))
    return terminator


def _merged(blocks: list[DraftBlock]) -> list[DraftBlock]:
    """`blocks` with each that jumps to a block which nothing else leads to joined with it."""
    arrivals = Counter(label for block in blocks for label in successors(_terminator(block)))
    arrivals[blocks[0].label] += 1
    by_label = {block.label: block for block in blocks}
    gone: set[str] = set()
    for block in blocks:
        if block.label in gone:
            continue
        while (
            isinstance(jump := block.terminator, Jump)
            and not jump.turn
            and arrivals[jump.target] == 1
            and jump.target != block.label
            and not by_label[jump.target].sync
            and not _ends_in_entry(block)
        ):
            following = by_label[jump.target]
            gone.add(following.label)
            block.ops += following.ops
            block.terminator, block.places = following.terminator, following.places
    return [block for block in blocks if block.label not in gone]


def relabelled(blocks: Iterable[DraftBlock], labels: Mapping[str, str]) -> tuple[Block, ...]:
    """The finished blocks under their labels in the program."""
    return tuple(
        Block(
            labels[block.label],
            tuple(op for op, _ in block.ops),
            _redirect(_terminator(block), labels.__getitem__),
            block.sync,
        )
        for block in blocks
    )
