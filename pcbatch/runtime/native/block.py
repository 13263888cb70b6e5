"""One block for one lane: what it pops, computes, pushes and writes, if it is the lane's turn to run it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Branch, Fault, Jump, Piece, PushJump, Return, Store
from pcbatch.runtime.backends.pieces import Leaves, Signature
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.native.memory import Memory
from pcbatch.runtime.native.order import Order
from pcbatch.runtime.native.places import RegionPlaces
from pcbatch.runtime.native.registers import CALLS, Registers


class BlockCode:
    """One block, run for the lane whose registers are `state` where the scalar bool `enabled` holds; None: it does.

    Without it everything is computed all the same, of junk perhaps, and thrown away. `order` is of what is read and
    stored in this turn. A block that `is_alone` has a loop of its own, in which no other one writes.
    """

    def __init__(
        self,
        backend: Backend,
        registers: Registers,
        max_steps: int | None,
        places: RegionPlaces,
        memory: Memory,
        shared: Mapping[str, Leaves],
        number: int,
        state: State,
        enabled: Array | None,
        order: Order,
        is_alone: bool = False,
    ):
        self.backend, self.registers, self.places, self.shared = backend, registers, places, shared
        self.memory = memory
        self.program, self.max_steps = registers.program, max_steps
        self.number, self.block = number, registers.program.blocks[number]
        self.state, self.enabled, self.order, self.is_alone = state, enabled, order, is_alone
        self.pops = Counter(self.block.pops)
        self.fault: Array | None = None  # the site plus one at which it has failed, or 0; None: nothing can have
        self.failed: Array | None = None  # whether it has
        self.values: dict[str, list[Array]] = {}
        self.changed: set[str] = set()  # names in `values` that a piece or a pop has given another value
        self.stored: set[str] = set()  # names in `values` of which elements were written, if the block is enabled
        self.overwritten: set[str] = set()  # names of arrays of which elements were written in memory since last read
        self.updates: State = {}
        self.loaded: State = {}  # what has been read from memory, by key

    def execute(self) -> State:
        """The registers and stacks that the block changes."""
        self.load()
        for name in self.pops:
            self.values[name] = [
                self.loaded.get(key, self.state.get(key)) for key in self.registers.keys("under", name)
            ]
            self.changed.add(name)
        unnamed = (push.variable for push in self.block.pushes if push.saved is None)
        after_pops = {name: self.read(name) for name in unnamed}
        for item in self.block.body:
            match item:
                case Piece():
                    self.piece(item)
                case Store():
                    self.store(item)
        failed_before = self.failed
        self.count()
        self.write(failed_before if isinstance(self.block.terminator, Fault) else self.failed)
        self.push(after_pops)
        return self.updates

    def moved(self) -> Array | None:
        """Whether the lane runs the block and gets to its end; None: it does."""
        return self.all_of(self.enabled, None if self.failed is None else ~self.failed)

    def all_of(self, *conditions: Array | None) -> Array | None:
        """Whether all conditions hold; None: they do."""
        known = [condition for condition in conditions if condition is not None]
        for other in known[1:]:
            known[0] = self.backend.both(known[0], other)
        return known[0] if known else None

    def set(self, key: str, condition: Array | None, value: Array) -> None:
        """Let a register have another value where the condition holds."""
        now = {**self.state, **self.updates}
        if condition is not None:
            value = self.backend.choose(condition, value, self.top(now, key))
        self.updates[key] = self.memory.stored(now, key, [], value) if key in self.memory.in_place else value

    # -- the body ------------------------------------------------------------------------------------------------------

    def read(self, name: str) -> list[Array]:
        """The leaves of the value that `name` has at this point of the block."""
        if name in self.overwritten:
            self.overwritten.remove(name)
            self.values[name] = [self.loaded_again(key) for key in self.registers.keys("top", name)]
        elif name not in self.values:
            self.values[name] = [self.top(self.state, key) for key in self.registers.keys("top", name)]
        return self.values[name]

    def loaded_again(self, key: str) -> Array:
        """What is in memory after the stores of the block so far, and before those to come."""
        now = {**self.state, **self.updates}
        found, zero = self.order.held([self.memory.load(now, key, []), self.backend.constant(0)])
        self.memory = self.memory.after(zero)
        self.loaded[key] = found
        return found

    def top(self, state: State, key: str) -> Array:
        """The lane's own of a top."""
        if key in self.loaded:
            return self.loaded[key]
        return self.memory.load(state, key, []) if key in self.memory.in_place else state[key]

    def load(self) -> None:
        """Read what the block takes from memory, all of it before anything is written there."""
        memory, found = self.memory, {}
        for name in self.names_read():
            for key in self.registers.keys("top", name):
                if key in memory.in_place:
                    found[key] = memory.load(self.state, key, [])
        for name in self.pops:
            last = self.backend.add(self.state[f"pointer {self.registers.group(name)}"], self.backend.constant(-1))
            for key, stack in zip(self.registers.keys("under", name), self.registers.keys("stack", name), strict=True):
                if key in memory.in_place:
                    found[key] = memory.load(self.state, stack, [last])
        changing = [key for key in found if self.is_changing(key)]
        if changing:
            *held, zero = self.order.held([*(found[key] for key in changing), self.backend.constant(0)])
            found |= dict(zip(changing, held, strict=True))
            self.memory = memory.after(zero)
        self.loaded = found

    def is_changing(self, key: str) -> bool:
        """Whether somebody may write where what has this key was read, before it is used."""
        if self.is_alone and key not in self.own:
            return False
        return key not in self.memory.constant

    @cached_property
    def own(self) -> frozenset[str]:
        """The keys of what the block itself may write."""
        return frozenset(self.registers.changed([self.block], self.max_steps))

    def names_read(self) -> list[str]:
        """The variables of the state of which the block needs the values that they have before it."""
        found = [*effects.read(self.block)]
        for item in self.block.body:
            if item.predicate is not None:
                found += item.writes if isinstance(item, Piece) else ()
        return [name for name in dict.fromkeys(found) if name in self.program.storage and name not in self.pops]

    def read_array(self, name: str) -> list[Array]:
        """The same of an array of which elements are stored."""
        (array,) = self.read(name)
        held = self.order.before_read(name, array)
        if held is not None:
            self.values[name] = [held]
            if name not in self.changed:
                (key,) = self.registers.keys("top", name)
                self.updates[key] = held
        return self.values[name]

    def fail(self, mask: Array, code: Array) -> None:
        """The lane fails where `mask` holds, if it has not before; `code` is a fault site plus one."""
        backend, zero = self.backend, self.backend.constant(0)
        if self.fault is None or self.failed is None:
            self.fault = backend.choose(mask, code, zero)
        else:
            self.fault = backend.choose(self.failed, self.fault, backend.choose(mask, code, zero))
        self.failed = backend.above(self.fault, 0)

    def piece(self, piece: Piece) -> None:
        types = self.program.types
        signature = Signature(
            reads=[types[name] for name in piece.reads],
            shared=[self.program.shared_types[name] for name in piece.shared],
            writes=[types[name] for name in piece.writes],
        )
        reads = [self.read_array(name) if name in self.order.arrays else self.read(name) for name in piece.reads]
        holds = self.holds(piece)
        condition = self.all_of(holds, None if self.failed is None else ~self.failed)
        outputs, site = self.held(piece, *self.run(piece, signature, reads, condition))
        before = {name: self.before(name) for name in piece.writes if holds is not None}
        for name, output in zip(piece.writes, outputs, strict=True):
            self.values[name] = output if holds is None else self.chosen(holds, output, before[name])
            self.changed.add(name)
            self.stored.discard(name)
            self.overwritten.discard(name)
        if site is not None:
            mask = self.all_of(self.backend.above(site, 0), holds)
            self.fail(mask, site)

    def held(
        self, piece: Piece, outputs: Sequence[Sequence[Array]], site: Array | None
    ) -> tuple[list[list[Array]], Array | None]:
        """What a piece gives, which comes before stores into the arrays that it reads."""
        flat = [leaf for output in outputs for leaf in output] + [site] * (site is not None)
        remaining = iter(self.order.read(piece.reads, flat))
        return [[next(remaining) for _ in output] for output in outputs], next(remaining, None)

    def run(
        self, piece: Piece, signature: Signature, reads: Sequence[Leaves], condition: Array | None
    ) -> tuple[list[list[Array]], Array | None]:
        """Run a piece; one that has a loop inside, which may never end, only where the `condition` holds."""
        backend, shared = self.backend, [self.shared[name] for name in piece.shared]
        if condition is None or not backend.has_loop(piece, signature.reads, signature.shared):
            return backend.run_one(piece, signature, reads, shared)
        types = [self.registers.leaves(name) for name in piece.writes]

        def once(go: Array, _: Sequence[Array]) -> tuple[Array, list[Array]]:
            outputs, site = backend.run_one(piece, signature, reads, shared)
            found = [*(leaf for group in outputs for leaf in group), backend.constant(0) if site is None else site]
            return go & False, found

        blank = [*(backend.zeros_of(type_) for group in types for type_ in group), backend.constant(0)]
        *found, site = backend.repeated(condition, once, blank)
        remaining = iter(found)
        return [[next(remaining) for _ in group] for group in types], site if piece.sites else None

    def holds(self, item: Piece | Store) -> Array | None:
        """Whether the predicate of `item` holds; None: it has none."""
        return None if item.predicate is None else self.read(item.predicate)[0]

    def before(self, name: str) -> list[Array]:
        """What `name` was before an item, zeros if it never had a value."""
        if name in self.values or name in self.program.storage:
            return self.read(name)
        return [self.backend.zeros_of(type_) for type_ in self.registers.leaves(name)]

    def chosen(self, condition: Array, new: Sequence[Array], old: Sequence[Array]) -> list[Array]:
        return [self.backend.choose(condition, *each) for each in zip(new, old, strict=True)]

    def store(self, store: Store) -> None:
        """`array[indices..] = value`, negative indices as in Python. Only the element is written, whoever runs."""
        backend = self.backend
        (type_,), (key,) = self.registers.leaves(store.array), self.registers.keys("top", store.array)
        in_place = key in self.memory.in_place and store.array not in self.changed
        (value,) = self.read(store.value)
        value = backend.cast(value, type_.dtype)  # a weak number takes the array's dtype
        inside: Array | None = None
        indices = []
        for name, size in zip(store.indices, type_.shape, strict=False):
            (index,) = self.read(name)
            if self.registers.leaves(name)[0].dtype != "int32":
                index = backend.cast(index, "int64")  # so that `size` and `-size` fit, whatever the index's dtype
            inside = self.all_of(inside, index >= -size, index < size)
            index = backend.cast(backend.choose(index < 0, index + size, index), "int32")
            indices.append(index)
        indices[0] = self.order.after_reads([store.array], indices[0])
        holds = self.holds(store)
        assert inside is not None, "a store has an index"
        self.fail(self.all_of(holds, ~inside), backend.constant(store.site + 1))
        enabled = None if store.array in self.changed else self.enabled
        taking_part = self.all_of(enabled, holds, inside)
        if in_place:
            now = {**self.state, **self.updates}
            element = backend.choose(taking_part, value, self.memory.load(now, key, indices))
            self.updates[key] = self.memory.stored(now, key, indices, element)
            self.overwritten.add(store.array)
            return
        (array,) = self.read_array(store.array)
        element = backend.element(array, indices)
        self.values[store.array] = [backend.with_element(array, indices, backend.choose(taking_part, value, element))]
        self.stored.add(store.array)
        self.order.stored(store.array)

    # -- the end of the block ------------------------------------------------------------------------------------------

    def count(self) -> None:
        """What may fail at the end of the block; a step, if it is one."""
        backend = self.backend
        match self.block.terminator:
            case Fault(site=site):
                self.fail(backend.constant_bool(True), backend.constant(site + 1))
            case PushJump(site=site):
                self.fail(backend.above(self.state["depth"], self.registers.max_depth), backend.constant(site + 1))
        if effects.is_step(self.block):
            if self.max_steps is not None:
                over = backend.add(self.state["steps"], self.state["limit"]) >= self.max_steps
                self.fail(over, backend.constant(self.block.steps_site + 1))
            self.set("steps", self.moved(), backend.add(self.state["steps"], backend.constant(1)))
        if self.fault is not None:
            self.set("fault", self.enabled, self.fault)
        match self.block.terminator:
            case PushJump(back=back):
                depth, place = self.state["depth"], backend.constant(back)
                self.updates[CALLS] = self.memory.stored(self.state, CALLS, [depth], place)
                self.set("depth", self.moved(), backend.add(depth, backend.constant(1)))
                self.set(f"under {CALLS}", self.moved(), place)
            case Return() if self.registers.has_calls:
                self.set("depth", self.moved(), backend.add(self.state["depth"], backend.constant(-1)))

    def onward(self) -> list[tuple[Array | None, bool, int | Array]]:
        """Where the lane goes if it does not fail: a condition, whether it is to hold, and a block's number.

        Of a return the place, an array.
        """
        match self.block.terminator:
            case Jump(target=Branch() as branch) | PushJump(target=Branch() as branch):
                return self.ways(branch)
            case Branch() as branch:
                return self.ways(branch)
            case Jump(target=int(target)) | PushJump(target=int(target)):
                return [(None, True, target)]
            case Return() if self.registers.has_calls:
                return [(None, True, self.places.found(self.state[f"under {CALLS}"]))]
            case Return():
                return [(None, True, self.backend.constant(self.places.ended))]
        return []

    def ways(self, branch: Branch) -> list[tuple[Array | None, bool, int | Array]]:
        (chosen,) = self.read(branch.condition)
        if branch.true == branch.false:
            return [(None, True, branch.true)]
        return [(chosen, True, branch.true), (chosen, False, branch.false)]

    def write(self, failed: Array | None) -> None:
        """Give the written variables their new tops; those that a message may show stay where the lane has `failed`."""
        unless_failed = self.all_of(self.enabled, None if failed is None else ~failed)
        for name in sorted(self.changed | self.stored):
            if not self.registers.is_kept(self.block, name):
                continue
            condition = unless_failed if name in self.registers.shown else self.enabled
            if name not in self.changed:
                condition = None  # elements were written as they are to be
            for key, value in zip(self.registers.keys("top", name), self.values[name], strict=True):
                if value is not self.loaded.get(key):
                    self.set(key, condition, value)

    def push(self, after_pops: Mapping[str, list[Array]]) -> None:
        """Write what is to be saved at the free slots of the stacks, then move the stack pointers."""
        backend, moved = self.backend, self.moved()
        saved: dict[str, list[list[Array]]] = {}
        for push in self.block.pushes:
            value = after_pops[push.variable] if push.saved is None else self.read(push.saved)
            saved.setdefault(push.variable, []).append(value)
        for name in dict.fromkeys((*self.pops, *saved)):
            key = f"pointer {self.registers.group(name)}"
            before = self.state[key]
            free = backend.add(before, backend.constant(-self.pops[name])) if self.pops[name] else before
            pushed = saved.get(name, [])
            if pushed and self.pops[name] and self.enabled is not None:
                free = backend.choose(self.enabled, free, before)
            for above, entry in enumerate(pushed):
                place = backend.add(free, backend.constant(above)) if above else free
                for stack, value in zip(self.registers.keys("stack", name), entry, strict=True):
                    now = {**self.state, **self.updates}
                    self.updates[stack] = self.memory.stored(now, stack, [place], value)
            for under, value in zip(self.registers.keys("under", name), pushed[-1] if pushed else [], strict=False):
                if under not in self.memory.in_place:
                    self.set(under, moved, value)
            after = backend.add(free, backend.constant(len(pushed))) if pushed else free
            if key not in self.updates:
                self.set(key, moved, after)
