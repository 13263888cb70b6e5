"""Loops: a head whose variables are widened until a turn changes nothing else, or turns that are written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import gast

from pcbatch.reading.core import NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.counters import COUNTER, Counters
from pcbatch.reading.expressions import Ends
from pcbatch.reading.heads import Head, Path, Phi, value_at
from pcbatch.reading.joins import End
from pcbatch.reading.values import (
    Frame,
    Host,
    Lane,
    Value,
)

ROUNDS = 12
MOST_TURNS = 1000
"""The most turns of a loop that are written out, where that is what a refusal asks for."""
FEW_TURNS = 64
"""The most turns of a loop that are written out to see whether it can be read so."""


@dataclass(eq=False)
class Loop:
    """A loop that is interpreted: the blocks that leave a turn, or all of them, early."""

    node: Any
    frame: Frame
    breaks: list[End] = field(default_factory=list)
    continues: list[End] = field(default_factory=list)


class Loops(Counters):
    """Python's loops."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self.loops: list[Loop] = []
        self.settled: dict[Any, dict[Path, Phi]] = {}

    def open_ends(self) -> Iterator[list[Any]]:
        for loop in self.loops:
            yield loop.breaks
            yield loop.continues

    def statements(self, nodes: Sequence[Any]) -> None:
        """Interpret statements; see `statements`."""
        raise NotImplementedError

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
    ) -> None:
        """Interpret a loop; with `turns_once` it is known that the first test holds."""
        if self.straight:
            raise NeedsBlocksError
        self.refuse_inside("a loop")
        key = (id(node), tuple(id(frame.function.tree) for frame in self.frames))
        phis = {**phis, **{p: phi for p, phi in self.settled.get(key, {}).items() if self._is_there(p)}}
        mark = self.mark()
        for _ in range(ROUNDS):
            head = Head(self, phis)
            head.enter()
            start = self.emitter.block()
            self.emitter.jump(start, self.span(node))
            self.emitter.enter(start)
            head.state = self.state.copy()
            loop = Loop(node, self.frame)
            exits: list[End] = []
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
                self._tested(test, exits)
            if self.is_live:
                more = head.compared(self.state)
                if more:
                    phis.update(more)
                    self.back_to(mark)
                    continue
                head.close()
                self.emitter.jump(start, self.span(node), turn=True)
            self.settled[key] = phis
            if orelse and exits:
                self.join(exits)
                self.statements(orelse)
                exits = self._here()
            self.join([*exits, *loop.breaks])
            return
        moving = ", ".join(sorted({str(path[2]) for path in phis if path[0] == "n"}))
        raise self.refusal("PCB304", f"the types of a loop's variables do not settle: {moving}", node=node)

    def _is_there(self, path: Path) -> bool:
        """Whether there is anything at a path that was found in another round of a loop around."""
        if path[0] == "v":
            return path[1] in self.state.heap
        try:
            value_at(self.state, path)
        except (KeyError, IndexError, AttributeError, TypeError):
            return False
        return True

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
        exits.append((outside, self.state.copy()))
        self.emitter.enter(inside)

    # -- statements ----------------------------------------------------------------------------------------------------

    def while_loop(self, node: Any) -> None:
        """`while`."""
        self.loop(
            node, lambda: self.decided(node.test), lambda: self.statements(node.body), lambda: None, node.orelse, {}
        )

    def for_loop(self, node: Any) -> None:
        """`for`."""
        whole = self.expression(node.iter)
        if self.is_live:
            self.over(whole, node, partial(self.store, node.target), lambda: self.statements(node.body), node.orelse)

    def over(
        self, whole: Value, node: Any, bind: Callable[[Value], None], body: Callable[[], None], orelse: Sequence[Any]
    ) -> None:
        """A loop over `whole`: by a counter where its items are numbers or rows, else written out."""
        counted = self.counted(whole)
        if counted is None:
            self.written_out(self.sequence(whole), lambda each: each, node, bind, body, orelse)
            return
        start, stop, step, item, turns = counted
        if turns is not None and turns <= 1:
            items = self._numbers(start, step, turns)
            self.written_out(items, item, node, bind, body, orelse)
            return
        mark = self.mark()
        try:
            self._by_counter(start, stop, step, item, turns, node, bind, body, orelse)
        except RefusedError as error:
            most = MOST_TURNS if isinstance(error, NeedsConstantError) else FEW_TURNS
            if turns is None or turns > most or self.straight:
                raise
            self.back_to(mark)
            items = self._numbers(start, step, turns)
            try:
                self.written_out(items, item, node, bind, body, orelse)
            except RefusedError:
                if isinstance(error, NeedsConstantError):
                    raise
                raise error from None

    def _numbers(self, start: Value, step: Value, turns: int) -> list[Value]:
        """The numbers of a range that is known."""
        assert isinstance(start, Host) and isinstance(step, Host)
        return [Host(start.value + k * step.value) for k in range(turns)]

    def _by_counter(
        self,
        start: Value,
        stop: Value,
        step: Value,
        item: Callable[[Value], Value],
        turns: int | None,
        node: Any,
        bind: Callable[[Value], None],
        body: Callable[[], None],
        orelse: Sequence[Any],
    ) -> None:
        number = self.number()
        slots = [(self.frame.number, f"{name}_{number}") for name in ("index", "stop", "step")]
        for slot, value in zip(slots, (start, stop, step), strict=True):
            self.state.names[slot] = value
        index, bound, by = slots
        type_ = self.type_of(start)
        phis: dict[Path, Phi] = {("n", *index): replace(type_, shape=()) if type_ is not None else COUNTER}

        def test() -> Host | Lane:
            return self.is_before(self.state.names[index], self.state.names[bound], self.state.names[by])

        def turn() -> None:
            bind(item(self.state.names[index]))
            body()

        def after() -> None:
            self.state.names[index] = self.binary(gast.Add, self.state.names[index], self.state.names[by])

        self.loop(node, test, turn, after, orelse, phis, turns_once=turns is not None)
        for slot in slots:
            self.state.names.pop(slot, None)

    def written_out(
        self,
        items: Sequence[Value],
        made: Callable[[Value], Value],
        node: Any,
        bind: Callable[[Value], None],
        body: Callable[[], None],
        orelse: Sequence[Any],
    ) -> None:
        """A loop whose turns are written one behind the other: what is `made` of each of `items`."""
        breaks: list[End] = []
        for item in self.each(items):
            if not self.is_live:
                break
            loop = Loop(node, self.frame)
            self.loops.append(loop)
            try:
                bind(made(item))
                body()
            finally:
                self.loops.remove(loop)
            breaks += loop.breaks
            if loop.continues:
                self.join([*loop.continues, *self._here()])
        if self.is_live and orelse:
            self.statements(orelse)
        if breaks:
            self.join([*self._here(), *breaks])

    # -- what a loop goes over -----------------------------------------------------------------------------------------
