"""Loops: a head whose variables are widened until a turn changes nothing else, or turns that are written out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import gast

from pcbatch.ir.types import ConflictError, TensorType
from pcbatch.reading.core import Here, NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.counters import COUNTER, DIFFERS, TURNS, Counted, Loop, Turn, Turns, comes_later, is_counted
from pcbatch.reading.emitter import LoopNote
from pcbatch.reading.expressions import Ends
from pcbatch.reading.heads import Head
from pcbatch.reading.meeting import End
from pcbatch.reading.phis import (
    Chosen,
    Copied,
    MissingValue,
    Origins,
    Path,
    Phi,
    Stale,
    StillError,
    Worded,
    cells_of,
    changing,
    has_moved,
    value_at,
)
from pcbatch.reading.ragged_rows import RaggedRows
from pcbatch.reading.values import NONE, Host, Lane, OneOf, Ref, Undefined, Value, View

ROUNDS = 12
MOST_TURNS = 1000
"""The most turns of a loop that are written out, where that is what a refusal asks for."""
FEW_TURNS = 64
"""The most turns of a loop that are written out to see whether it can be read so."""


class Loops(RaggedRows):
    """Python's loops."""

    # of parts above
    statements: Callable[[Sequence[Any]], None]

    def __init__(self, *given: Any, forking: bool = False, **options: Any):
        super().__init__(*given, **options)
        self.forking = forking
        """True if calls are to be forked: loops whose turns make independent ones are written out."""
        self.loops: list[Loop] = []
        self.settled: dict[Any, dict[Path, Phi]] = {}
        self.copies = 1
        """Number of copies that the loops around make of the present code."""

    def open_ends(self) -> Iterator[list[Any]]:
        for loop in self.loops:
            yield loop.breaks
            yield loop.continues

    # -- to a fixed point ----------------------------------------------------------------------------------------------

    def loop(
        self,
        node: Any,
        test: Callable[[], Host | Lane | Ends],
        body: Callable[[], None],
        after: Callable[[], None],
        orelse: Sequence[Any],
        phis: dict[Path, Phi],
        *,
        turns_once: bool = False,
        likely: Mapping[Path, Phi] | None = None,
    ) -> Turn | None:
        """Interpret a loop; with `turns_once` it is known that the first test holds.

        Gives one of its turns as it is written, None if nothing comes back to its head. StillError where a turn does
        not change what is `likely` one of the `phis`.
        """
        if self.straight:
            raise NeedsBlocksError
        self.refuse_inside("a loop")
        if likely is None:
            again = partial(self.loop, node, test, body, after, orelse, turns_once=turns_once)
            guessed = {path: phi for path, phi in changing(self, node).items() if path not in phis}
            if guessed:
                mark = self.mark()
                try:
                    return again({**phis, **guessed}, likely=guessed)
                except (RefusedError, StillError):
                    self.back_to(mark)
            return again(phis, likely={})
        key = (id(node), tuple(id(frame.function.tree) for frame in self.frames))
        settled = self.settled.get(key, {}).items()
        phis = {**phis, **{p: phi for p, phi in settled if self._is_there(p) and self._fits(p, phi)}}
        mark = self.mark()
        origins = Origins()
        for _ in range(ROUNDS):
            head = self.head(node, phis, turns_once)
            loop = Loop(node, self.frame)
            head.origins, origins.loop = origins, loop
            head.enter()
            start, first, noted = self.emitter.block(), len(self.emitter.layout), len(self.emitter.notes)
            self.emitter.jump(start, self.span(node))
            self.emitter.enter(start)
            head.state = self.state.copy()
            exits: list[End] = []
            turn: Turn | None = None
            self.loops.append(loop)
            try:
                if not turns_once:
                    self._tested(test, exits)
                if self.is_live:
                    body()
            finally:
                self.loops.remove(loop)
            self.join([*loop.continues, *self._here()])
            if self.is_live:
                after()
            if self.is_live and turns_once:
                self._turn(node, is_counted(node, turns_once))
                self._tested(test, exits)
            if self.is_live:
                more = head.compared(self.state)
                if more or origins.widened(head):
                    phis.update(more)
                    self.back_to(mark)
                    continue
                head.close()
                self.emitter.jump(start, self.span(node), turn=not turns_once and is_counted(node, turns_once))
                ends = frozenset(block.label for block, _ in exits)
                turn = Turn(self.emitter.layout[first:], self.emitter.notes[noted:], start.label, ends)
            if any(not has_moved(head, path) for path in likely):
                raise StillError
            self.settled[key] = phis
            if orelse and exits:
                self.join(exits)
                self.statements(orelse)
                exits = self._here()
            self.join([*exits, *loop.breaks])
            return turn
        moving = ", ".join(sorted({str(path[2]) for path in phis if path[0] == "n"}))
        help = "give each one structure in every turn; what grows is a list, and of objects one list for each field"
        raise self.refusal("PCB304", f"the types of a loop's variables do not settle: {moving}", help, node=node)

    def head(self, node: Any, phis: dict[Path, Phi], is_counted: bool) -> Head:
        """The head of the loop `node`, of which it is known how many turns it makes if it `is_counted`."""
        return Head(self, phis)

    def _may_turn(self) -> bool:
        """Return whether written-out turns are counted: in helpers that are interpreted in place they are not."""
        return len(self.frames) == 1 and not self.contexts and not self.straight

    def _turn(self, node: Any, is_counted: bool) -> None:
        """End a turn."""
        following = self.emitter.block()
        self.emitter.jump(following, self.span(node), turn=is_counted)
        self.emitter.enter(following)

    def _is_there(self, path: Path) -> bool:
        """Return whether a path found in another round of a loop around exists now."""
        if path[0] in ("v", "h"):
            return path[1] in self.state.heap
        try:
            return not isinstance(value_at(self.state, path), Undefined)
        except (KeyError, IndexError, AttributeError, TypeError):
            return False

    def _fits(self, path: Path, phi: Phi) -> bool:
        """Tell whether what was found in another round, or in another turn of a loop around, may be there now.

        The objects may have other numbers in this round, so the path may lead to something of another kind.
        """
        if path[0] in ("v", "h"):
            return True
        value = value_at(self.state, path)
        match phi:
            case Chosen(cells):
                return isinstance(value, Ref | OneOf) and set(cells_of(value)) <= set(cells) <= self.state.heap.keys()
            case Worded(words):
                return self.are_words([value, *map(self.word, words)])
            case Stale():
                return isinstance(value, View)
            case Copied():
                return isinstance(value, Ref)
            case TensorType():
                return self._widens_to(value, phi)
        return not isinstance(phi, MissingValue)

    def _widens_to(self, value: Value, type_: TensorType) -> bool:
        """Return whether a variable of this type can hold `value`."""
        own = self.type_of(value)
        try:
            return own is not None and self.joined([own, type_]) == type_
        except ConflictError:
            return False

    def _here(self) -> list[End]:
        return [] if self.emitter.current is None else [(self.emitter.current, self.state)]

    def _tested(self, test: Callable[[], Host | Lane | Ends], exits: list[End]) -> None:
        """Go on where the test of a loop holds, and out of it where not."""
        found = test()
        if isinstance(found, Ends):
            self.join(found.false)
            exits += self._here()
            self.join(found.true)
            return
        if not self.is_live:
            return
        if isinstance(found, Host):
            if not found.value:
                exits += self._here()
                self.emitter.enter(None)
            return
        inside, outside = self.emitter.block(), self.emitter.block()
        self.emitter.branch(found, inside, outside, self.span())
        left = self.state.copy()
        left.assume(found.name, False)
        self.state.assume(found.name, True)
        exits.append((outside, left))
        self.emitter.enter(inside)

    # -- statements ----------------------------------------------------------------------------------------------------

    def while_loop(self, node: Any) -> None:
        """`while`: a loop; where something in it must be known, turns one behind the other, as long as its test is."""
        mark = self.mark()

        def body() -> None:
            self.statements(node.body)

        try:
            self.loop(node, lambda: self.decided(node.test), body, lambda: None, node.orelse, {})
        except RefusedError as error:
            if self.straight or isinstance(node.test, gast.Constant):
                raise
            turns = Turns(node, lambda item: None, body, node.orelse)
            self._instead(mark, error, self._turns_that_are_known(node, error), lambda item: item, turns)

    def _instead(
        self, mark: Here, error: RefusedError, items: Iterable[Value], made: Callable[[Value], Value], turns: Turns
    ) -> None:
        """Write out the turns of a loop that was refused; if that gets no further, it is refused as it was."""
        self.back_to(mark)
        try:
            self.written_out(items, made, turns)
        except RefusedError as later:
            if isinstance(error, NeedsConstantError) or comes_later(later, error):
                raise
            raise error from None

    def _turns_that_are_known(self, node: Any, error: RefusedError) -> Iterator[Value]:
        """One item for each turn of a `while` loop whose test is known; else the refusal of the loop."""
        for _ in range(MOST_TURNS if isinstance(error, NeedsConstantError) else FEW_TURNS):
            found = self.decided(node.test)
            if not isinstance(found, Host):
                raise error
            if not found.value:
                return
            yield NONE
        raise error

    def for_loop(self, node: Any) -> None:
        """`for`."""
        whole = self.expression(node.iter)
        if self.is_live:
            before, self.node = self.node, node.iter
            whole = self.refuse_number(whole)
            self.node = before
            self.over(whole, node, partial(self.store, node.target), lambda: self.statements(node.body), node.orelse)

    def over(
        self, whole: Value, node: Any, bind: Callable[[Value], None], body: Callable[[], None], orelse: Sequence[Any]
    ) -> None:
        """A loop over `whole`: by a counter where its items are numbers or rows, else written out."""
        whole = self.iterable(whole)
        self.spend(whole)
        counted, loop = self.counted(whole), Turns(node, bind, body, orelse)
        if counted is None:
            self.written_out(self.live(whole), lambda each: each, loop)
        elif counted.turns is not None and counted.turns <= 1:
            self.written_out(counted.numbers, counted.item, loop)
        elif is_counted(node, counted.turns is not None) or not self._in_a_row(counted, loop):
            mark = self.mark()
            turn = self._by_counter_if_possible(mark, counted, loop)
            if self.forking and turn is not None and turn.has_calls:
                self._forked(mark, counted, loop, turn)

    def _by_counter_if_possible(self, mark: Here, counted: Counted, loop: Turns) -> Turn | None:
        """One of the turns of a loop; None where it is written out, since something in it must be known."""
        try:
            return self.by_counter(counted, loop)
        except RefusedError as error:
            most = MOST_TURNS if isinstance(error, NeedsConstantError) else FEW_TURNS
            if counted.turns is None or counted.turns > most or self.straight:
                raise
            self._instead(mark, error, counted.numbers, counted.item, loop)
            return None

    def _in_a_row(self, counted: Counted, loop: Turns) -> bool:
        """Write the turns of a comprehension one behind the other, if they are few and straight."""
        if counted.turns is None or counted.turns * self.copies > FEW_TURNS:
            return False
        mark, hint = self.mark(), self.hint
        self.straight, self.hint = self.straight + 1, ""
        try:
            self.written_out(counted.numbers, counted.item, loop)
        except (NeedsBlocksError, RefusedError):
            self.back_to(mark)
            return False
        finally:
            self.hint = hint
        self.straight -= 1
        return True

    def _forked(self, mark: Here, counted: Counted, loop: Turns, turn: Turn) -> None:
        """Write a loop out whose turns make calls that need nothing of each other; noted if it stays a loop."""
        span = self.span(loop.node) or self.span()
        why = turn.obstacle()
        copies = max((note.copies for note in turn.notes if note.is_written_out), default=1) * (counted.turns or 1)
        if why is None and counted.turns is None:
            why = DIFFERS
        elif why is None and copies > FEW_TURNS:
            why = f"it makes {counted.turns} turns, and {FEW_TURNS} in all are written out at most"
        elif why is None:
            self.back_to(mark)
            try:
                self.written_out(counted.numbers, counted.item, loop, are_turns=True)
            except RefusedError as error:
                why = f"its turns are not alike: {error.diagnostic.message}"
                self.back_to(mark)
                self.by_counter(counted, loop)
        self.emitter.notes.append(LoopNote(span, None if why is None else f"{TURNS}: {why}", why is None, copies))

    def by_counter(self, counted: Counted, loop: Turns) -> Turn | None:
        """A loop by a counter; gives one of its turns, None if it makes but one."""
        number = self.number()
        slots = [(self.frame.number, f"{name} {number}") for name in (" index", " stop", " step")]
        for slot, value in zip(slots, (counted.start, counted.stop, counted.step), strict=True):
            self.state.names[slot] = value
        index, bound, by = slots
        type_ = self.type_of(counted.start)
        phis: dict[Path, Phi] = {("n", *index): replace(type_, shape=()) if type_ is not None else COUNTER}

        def test() -> Host | Lane:
            stop = self.state.names[bound] if counted.grows is None else counted.grows()
            return self.is_before(self.state.names[index], stop, self.state.names[by])

        def turn() -> None:
            loop.bind(self._item_of_turn(counted.item, self.state.names[index], loop.node))
            loop.body()

        def after() -> None:
            self.state.names[index] = self.binary(gast.Add, self.state.names[index], self.state.names[by])

        hint, self.hint = self.hint, ""
        found = self.loop(loop.node, test, turn, after, loop.orelse, phis, turns_once=counted.turns is not None)
        self.hint = hint
        for slot in slots:
            self.state.names.pop(slot, None)
        return found

    def _item_of_turn(self, item: Callable[[Value], Value], counter: Value, node: Any) -> Value:
        """The item at a counter, as a variable of its own: the user's keeps its value when the counter goes on."""
        before, self.hint = self.hint, node.target.id if isinstance(getattr(node, "target", None), gast.Name) else ""
        found = item(counter)
        if found is counter and isinstance(found, Lane):
            found = Lane(self.emitter.fresh(found.type, self.hint), found.type)
            self.give(found.name, counter, found.type)
        self.hint = before
        return found

    def written_out(
        self, items: Iterable[Value], made: Callable[[Value], Value], turns: Turns, *, are_turns: bool = False
    ) -> None:
        """A loop whose turns are written one behind the other: what is `made` of each of `items`.

        They are counted, unless in a helper that is interpreted in place; there, too, if they `are_turns` otherwise.
        """
        breaks: list[End] = []
        copies, self.copies = self.copies, self.copies * (len(items) if isinstance(items, list) and items else 1)
        try:
            self._written_turns(items, made, turns, breaks, are_turns or self._may_turn())
        finally:
            self.copies = copies
        if self.is_live and turns.orelse:
            self.statements(turns.orelse)
        if breaks:
            self.join([*self._here(), *breaks])

    def _written_turns(
        self, items: Iterable[Value], made: Callable[[Value], Value], turns: Turns, breaks: list[End], are_counted: bool
    ) -> None:
        for item in items:
            if not self.is_live:
                break
            loop = Loop(turns.node, self.frame)
            self.loops.append(loop)
            try:
                turns.bind(made(item))
                turns.body()
            finally:
                self.loops.remove(loop)
            breaks += loop.breaks
            if loop.continues:
                self.join([*loop.continues, *self._here()])
            if self.is_live and is_counted(turns.node, True) and are_counted:
                self._turn(turns.node, True)
