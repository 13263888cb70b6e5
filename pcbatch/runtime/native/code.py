"""One lane, to a block that is left to others: blocks in order, each if it is its turn, and loops around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcbatch.ir.analysis.nesting import Loop, Node, blocks_of, nest
from pcbatch.ir.machine import Block, Piece, Program, PushJump, Store
from pcbatch.ir.types import elements
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.native.arrangement import arranged
from pcbatch.runtime.native.block import BlockCode
from pcbatch.runtime.native.course import Course
from pcbatch.runtime.native.memory import Memory
from pcbatch.runtime.native.order import Order
from pcbatch.runtime.native.paths import ALWAYS, NEVER, Paths, When
from pcbatch.runtime.native.places import RegionPlaces
from pcbatch.runtime.native.registers import CALLS, Registers

EXECUTIONS = "executions"
"""The key of how often each block has run."""


@dataclass(frozen=True)
class Others:
    """Blocks of a program that native code leaves to the machine, whose state has this `layout`.

    Unless it is `roomy`, a lane may lack room on its stacks: then it is to leave the code before a call.
    """

    layout: Layout
    numbers: frozenset[int]
    roomy: bool


class Code:
    """The code of one lane of `program`. `row_costs` are the estimated costs of its blocks.

    `never` is a scalar bool that does not hold; see `order.Order`.

    One array more than the state has, `executions`, says how often each block has run.

    The lane stops in the middle, between two turns of a loop, where it has made as many steps as the register `limit`
    says. From these `steps` are counted here: they are below 0 until then, which takes less time to see. It goes on
    from any block at which a turn can begin. It stops as well where it comes to a block that is left to `others`.
    """

    def __init__(
        self,
        backend: Backend,
        registers: Registers,
        max_steps: int | None,
        row_costs: Sequence[float],
        shared: Mapping[str, Leaves],
        never: Array,
        memory: Memory,
        others: Others,
    ):
        self.backend, self.registers, self.max_steps, self.shared = backend, registers, max_steps, shared
        self.program: Program = registers.program
        self.memory, self.others, self.never = memory, others, never
        nodes = nest(self.program, others.numbers)
        self.expensive = [cost > CPU.native_select for cost in row_costs]
        for number in blocks_of(nodes):
            self.expensive[number] |= bool(self.made([number])) or self._moves_large(number)
        self.nodes = arranged(self.program, nodes)
        self.places = RegionPlaces(blocks_of(self.nodes), backend, others.layout)
        apart = {number for number in self.places.of if self.expensive[number] or self.stored([number])}
        self.course = Course(registers, frozenset(self.places.of), others.numbers, self.expensive, apart)

    def _moves_large(self, number: int) -> bool:
        """Whether a block adds large entries to stacks, or takes some."""
        block = self.program.blocks[number]
        groups = {*self.registers.touched(block)} - {CALLS}
        return any(under in self.registers.uncopied for group in groups for under in self.registers.under(group))

    def run(self, state: State) -> State:
        """Registers and stacks where the lane leaves the code, or where its `limit` stops it."""
        # A lane comes back to what lies before a call, or before a block that is left to others: over and over.
        return self.loop(Loop(self.nodes, is_entered_first=False), state)

    def turn(self, nodes: Sequence[Node], state: State, is_first: bool) -> tuple[State, set[str]]:
        """Once through some nodes, in order; the lane is known to wait at the first if `is_first`.

        Gives the state, and the groups of stacks from which something may have been popped since they were read.
        """
        turn = _Turn(self, nodes, state, is_first)
        for node in nodes:
            if isinstance(node, Loop):
                turn.loop(node)
            else:
                turn.block(node)
        return turn.state, {*turn.popped}

    # -- loops ---------------------------------------------------------------------------------------------------------

    def loop(self, loop: Loop, state: State, is_led_to: bool = False) -> State:
        """As long as the lane waits at a block of the loop, go through them.

        If it `is_led_to`, the lane has gone through those blocks that it comes to in the middle: see `Course.ahead`.
        """
        numbers = [*blocks_of(loop.nodes)]
        blocks = [self.program.blocks[number] for number in numbers]
        first, behind = self.places.of[numbers[0]], self.places.of[numbers[-1]] + 1
        is_first = loop.is_entered_first or is_led_to
        is_first &= len(blocks) == 1 or not any(map(self.registers.popped, blocks))
        if any(isinstance(node, Loop) for node in loop.nodes):
            is_first = False  # the lane may have been stopped in a loop inside
        keys = self.changed(blocks)

        def is_inside(carried: State) -> Array:
            place = carried["pc"]
            is_one = behind == first + 1
            is_here = self.backend.equal(place, first) if is_one else self.backend.both(place >= first, place < behind)
            # Without steps no lane comes to the same place for ever.
            return self.backend.both(is_here, carried["steps"] < 0) if "steps" in keys else is_here

        def turn(carried: State) -> State:
            after, stale = self.turn(loop.nodes, {**state, **carried}, is_first and not isinstance(loop.nodes[0], Loop))
            after = self.reloaded(after, stale)
            return {key: after[key] for key in keys}

        return {**state, **self.backend.while_loop(is_inside, turn, {key: state[key] for key in keys})}

    def reloaded(self, state: State, groups: Iterable[str]) -> State:
        """`state` with fresh copies of the last entries of the stacks of some groups."""
        registers, found = self.registers, dict(state)
        for group in sorted(groups):
            count = state["depth" if group == CALLS else f"pointer {group}"]
            last = self.backend.add(count, self.backend.constant(-1))
            for under, stack in zip(registers.under(group), registers.stacks_of(group), strict=True):
                if under not in self.memory.in_place:
                    found[under] = self.memory.load(state, stack, [last])
        return found

    # -- blocks --------------------------------------------------------------------------------------------------------

    def can_lack_room(self, number: int) -> bool:
        """Whether a lane can lack room for what the block pushes."""
        return not self.others.roomy and isinstance(self.program.blocks[number].terminator, PushJump)

    def has_room(self, depth: Array, room: Array) -> Array:
        """Whether there is room for one more call; beyond the deepest the lane fails instead."""
        return (depth <= room) | self.backend.above(depth, self.registers.max_depth)

    def stored(self, numbers: Iterable[int]) -> frozenset[str]:
        """The arrays of which some blocks store elements, and which are too large to be copied for it."""
        items = (item for number in numbers for item in self.program.blocks[number].body)
        arrays = {item.array for item in items if isinstance(item, Store)}
        large = (name for name in arrays if elements(self.program.types[name]) >= CPU.native_ordered)
        return frozenset(name for name in large if f"top {name} 0" not in self.memory.in_place)

    def made(self, numbers: Iterable[int]) -> frozenset[str]:
        """The large arrays that some blocks give another value as a whole, and of which any block stores elements.

        To choose between a whole array and another one in every turn, in case it is this block's, is to write all of it
        in every turn: 0.9 of the time of a sampler whose chains make their arrays of draws so.
        """
        items = [item for block in self.program.blocks for item in block.body]
        stored = {item.array for item in items if isinstance(item, Store)}
        large = {name for name in stored if elements(self.program.types[name]) >= CPU.native_ordered}
        pieces = (item for number in numbers for item in self.program.blocks[number].body if isinstance(item, Piece))
        return frozenset(name for piece in pieces for name in piece.writes if name in large)

    def read(self, numbers: Iterable[int]) -> frozenset[str]:
        """The variables that pieces of some blocks read."""
        items = (item for number in numbers for item in self.program.blocks[number].body)
        return frozenset(name for item in items if isinstance(item, Piece) for name in item.reads)

    def changed(self, blocks: Sequence[Block]) -> list[str]:
        """The keys of what some blocks may change."""
        found = [*self.registers.changed(blocks, self.max_steps), EXECUTIONS]
        return [key for key in found if not (key.startswith("under ") and key in self.memory.in_place)]

    def executed(
        self, number: int, state: State, enabled: Array | None, order: Order, is_alone: bool = False
    ) -> tuple[State, BlockCode]:
        """The state after a block, and how its code went; it `is_alone` where a loop has only this block in it."""
        with self.backend.scope(self.program.blocks[number].label):
            block = BlockCode(
                self.backend,
                self.registers,
                self.max_steps,
                self.places,
                self.memory,
                self.shared,
                number,
                state,
                enabled,
                order,
                is_alone,
            )
            changed = block.execute()
        return state | changed | self.counted(number, state[EXECUTIONS], enabled), block

    def counted(self, number: int, executions: Array, enabled: Array | None) -> State:
        """One more execution of a block, if it is enabled."""
        backend, place = self.backend, [self.backend.constant(number)]
        one = backend.cast(backend.constant_bool(True) if enabled is None else enabled, "int64")
        more = backend.add(backend.element(executions, place), one)
        return {EXECUTIONS: backend.with_element(executions, place, more)}


class _Turn:
    """Once through some nodes: what has become of the state so far, and when the lane comes to the blocks ahead.

    A block is *followed* where every jump to it comes from a block before it in the same turn: whether it is the lane's
    turn is known from these. To all others the program counter tells.
    """

    def __init__(self, code: Code, nodes: Sequence[Node], state: State, is_first: bool):
        self.code, self.backend, self.registers = code, code.backend, code.registers
        self.state, self.is_first = state, is_first
        self.popped: dict[str, Array] = {}  # groups of stacks from which something may have been popped, and whether
        self.paths = Paths(code.backend)
        self.followed = code.course.followed(nodes)
        self.before: set[int] = set()
        self.arriving = dict.fromkeys(self.followed, NEVER)
        self.order = Order(code.backend, code.never, code.stored(blocks_of(nodes)))

    def loop(self, loop: Loop) -> None:
        """A loop among the nodes."""
        earlier = {*self.before}
        ahead = self.code.course.ahead(loop, earlier)
        for number in ahead:
            self.block(number)
        self.before = earlier
        blocks = [self.code.program.blocks[number] for number in blocks_of(loop.nodes)]
        touched = {group for block in blocks for group in self.registers.touched(block)}
        before = self.code.reloaded(self.state, touched & self.popped.keys())
        before["pc"] = self.order.after_reads(self.code.stored(blocks_of(loop.nodes)), before["pc"])
        self.state = self.code.loop(loop, before, is_led_to=bool(ahead))
        self.order.read_until(self.code.read(blocks_of(loop.nodes)), self.state["pc"])
        self.popped = {group: each for group, each in self.popped.items() if group not in touched}
        self.is_first = False

    def block(self, number: int) -> None:
        """One block, if it is the lane's turn to run it."""
        when = self._with_room(number, self._when(number))
        enabled = self.paths.computed(when)
        if enabled is not None and self.code.expensive[number]:
            self._guarded(number, enabled)
        else:
            self.state, block = self.code.executed(number, self.state, enabled, self.order)
            self._leave(number, block, when)
            self.before.add(number)
        self._note_pops(number, enabled)
        self.is_first = False

    def _when(self, number: int) -> When:
        if number in self.followed:
            return self.arriving[number]
        if self.is_first:
            return ALWAYS
        when = self.paths.and_(ALWAYS, self.backend.equal(self.state["pc"], self.code.places.place(number)))
        for group in self.registers.popped(self.code.program.blocks[number]):
            if group in self.popped:
                when = self.paths.and_(when, self.popped[group], holds=False)
        return when

    def _with_room(self, number: int, when: When) -> When:
        """`when`, and there is room on the stacks for what the block pushes; a lane that lacks it leaves the code."""
        backend, places = self.backend, self.code.places
        if not self.code.can_lack_room(number):
            return when
        room = self.code.has_room(self.state["depth"], self.state["room"])
        self._go([(self.paths.and_(when, room, holds=False), backend.constant(places.outside(number)))])
        return self.paths.and_(when, room)

    def _leave(self, number: int, block: BlockCode, when: When) -> None:
        """On to the next block: one that is followed is told, else the program counter is set."""
        moved = self.paths.and_(when, block.failed, holds=False) if block.failed is not None else when
        outward: list[tuple[When, Any]] = []
        for condition, holds, target in block.onward():
            way = self.paths.and_(moved, condition, holds) if condition is not None else moved
            if isinstance(target, int) and target in self.followed:
                self.arriving[target] = self.paths.or_(self.arriving[target], way)
            else:
                place = self.backend.constant(self.code.places.place(target)) if isinstance(target, int) else target
                outward.append((way, place))
        if block.failed is not None:
            failed = self.paths.and_(when, block.failed)
            outward.append((failed, self.backend.constant(self.code.places.failed(number))))
        self._go(outward)

    def _go(self, outward: Sequence[tuple[When, Any]]) -> None:
        """Set the program counter to a place if that is the lane's way."""
        for way, place in outward:
            condition = self.paths.computed(way)
            before = self.state["pc"]
            after = place if condition is None else self.backend.choose(condition, place, before)
            self.state = {**self.state, "pc": after}

    def _guarded(self, number: int, enabled: Array) -> None:
        """An expensive block, which is run only if it is its turn, in a loop of one turn at most.

        Not in a conditional, whose other arm copies what it passes on.
        """
        code, before = self.code, self.state
        keys = code.changed([code.program.blocks[number]])
        stored = code.stored([number])
        if written := stored | code.made([number]):
            zero = self.order.after_reads(written, self.backend.constant(0))
            enabled = self.backend.both(enabled, self.backend.equal(zero, 0))

        def once(go: Array, arrays: list[Array]) -> tuple[Array, list[Array]]:
            inside = _Turn(code, [], {**before, **dict(zip(keys, arrays, strict=True))}, is_first=True)
            inside.order = Order(code.backend, code.never, stored)
            inside.state, block = code.executed(number, inside.state, None, inside.order, is_alone=True)
            inside._leave(number, block, ALWAYS)
            return go & False, [inside.state[key] for key in keys]

        after = self.backend.repeated(enabled, once, [before[key] for key in keys])
        self.state = {**before, **dict(zip(keys, after, strict=True))}
        self.order.read_until(code.read([number]), self.state["pc"])

    def _note_pops(self, number: int, enabled: Array | None) -> None:
        block = self.code.program.blocks[number]
        emptied, filled = self.registers.popped(block), self.registers.pushed(block)
        now = self.backend.constant_bool(True) if enabled is None else enabled
        for group in {*emptied} - {*filled}:
            self.popped[group] = self.popped[group] | now if group in self.popped else now
        for group in ({*filled} - {*emptied}) & self.popped.keys():
            self.popped[group] = self.popped[group] & ~now
