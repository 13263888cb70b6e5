"""Blocks for one lane; where its stacks lie, and how it gets on from a block, others say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Branch, Fault, Jump, Piece, PushJump, Return, Store
from pcbatch.runtime.llvm import elementwise
from pcbatch.runtime.llvm.body import Body
from pcbatch.runtime.llvm.code import Array, Index, scalar
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.lane import State
from pcbatch.runtime.llvm.stacks import Leaf
from pcbatch.runtime.llvm.types import BIT, INT32, INT64, Number


class OneLane(Body):
    """One block of one lane; `executions` is the address of where each block is counted, None where that is not wanted.

    `labels` are those of the blocks that there is code of.
    """

    def __init__(self, state: State, number: int, labels: Mapping[int, Any], executions: Any = None):
        super().__init__(state, number)
        self.labels, self.executions = labels, executions
        self.item = 0
        """The place of the item in hand."""
        self.pops = Counter(self.block.pops)
        self.counts = Counter(push.variable for push in self.block.pushes)

    def emit(self) -> None:
        """The whole block."""
        if self.executions is not None:
            self._count()
        self._pop()
        unnamed = [push.variable for push in self.block.pushes if push.saved is None]
        early = {name for name in unnamed if self.is_written(name)}
        for name in early:
            self._save(name, name)
        for place, item in enumerate(self.block.body):
            self.item = place
            match item:
                case Piece(speculative=True):
                    continue  # calls are made one after the other here
                case Piece():
                    with self.guarded(item):
                        self.piece(item, self.state.setting.pieces[self.number, place])
                case Store():
                    with self.guarded(item):
                        self.store(item)
        for push in self.block.pushes:
            if push.variable not in early:
                self._save(push.variable, push.variable if push.saved is None else push.saved)
        self.leave()

    def is_written(self, name: str) -> bool:
        """True if an item of the block writes a variable."""
        items = self.block.body
        return any(name in (item.writes if isinstance(item, Piece) else (item.array,)) for item in items)

    def _count(self) -> None:
        place = self.builder.gep(self.executions, [ir.Constant(INT64, self.number)], source_etype=INT64)
        self.builder.store(self.builder.add(self.builder.load(place, typ=INT64), ir.Constant(INT64, 1)), place)

    @contextmanager
    def guarded(self, item: Piece | Store) -> Iterator[None]:
        """Code of an item that is there where its predicate holds; numbers are as they were elsewhere."""
        if item.predicate is None:
            yield
            return
        names = item.writes if isinstance(item, Piece) else ()
        numbers = [each for name in names for each in self.storage.leaves(name) if not each[2]]
        held = {leaf: self.code.variable(number.type) for leaf, number, _ in numbers}
        for leaf, number, sizes in numbers:
            self.builder.store(self._leaf(leaf, number, sizes).value, held[leaf])
        with self.code.when(self.bool_of(item.predicate)):
            yield
            for leaf, number, sizes in numbers:
                self.builder.store(self._leaf(leaf, number, sizes).value, held[leaf])
        for leaf, number, _ in numbers:
            self.now[leaf] = scalar(number, self.builder.load(held[leaf], typ=number.type))

    # -- the body ------------------------------------------------------------------------------------------------------

    def _check(self, site: Any) -> None:
        """The lane fails at a site, plus one, that is not 0."""
        failed, goes_on = (self.builder.append_basic_block(name) for name in ("failed", "checked"))
        self.builder.cbranch(self.builder.icmp_signed(">", site, ir.Constant(INT32, 0)), failed, goes_on)
        self.builder.position_at_end(failed)
        self._fail(site)
        self.builder.position_at_end(goes_on)

    def store(self, store: Store) -> None:
        """`array[indices..] = value`, negative indices as in Python; a row where there are fewer indices than axes.

        An index may be a vector of positions; several of them are for all pairs. All must lie inside, or nothing is
        stored.
        """
        ((leaf, number, sizes),) = self.storage.leaves(store.array)
        array, (value,) = self._leaf(leaf, number, sizes), self.read(store.value)
        indices = [each for name in store.indices for each in self.read(name)]
        vectors = [index.sizes for index in indices if index.sizes]
        if any(len(each) > 1 for each in vectors):
            raise UnsupportedError("elements of an array stored at positions that are no vector")
        self._inside(store, indices, sizes)
        outer = [each[0] for each in vectors]
        rest = (*outer, *sizes[len(indices) :])
        missing = len(rest) - len(value.sizes)

        def one(index: tuple[Index, ...]) -> None:
            of_value = zip(value.sizes, index[missing:], strict=True)
            own = [0 if size == 1 else at for size, at in of_value]
            places, place = iter(index), []
            for each, size in zip(indices, sizes, strict=False):
                place.append(self.position(each, [next(places)] if each.sizes else [], size)[0])
            cast = elementwise.convert(self.builder, value.number, number, value.at(own))
            self.code.store(number, cast, array.pointer, self.code.offset(sizes, [*place, *places]))

        self.code.each(rest, one)
        self.now[leaf] = array

    def _inside(self, store: Store, indices: Sequence[Array], sizes: Sequence[int]) -> None:
        """The lane fails at the store's site where an index lies outside of the array."""
        if store.site is None:
            return
        builder, inside = self.builder, self.code.variable(BIT, ir.Constant(BIT, 1))

        def check(index: Array, place: Sequence[Index], size: int) -> None:
            _, fits = self.position(index, place, size)
            builder.store(builder.and_(builder.load(inside, typ=BIT), fits), inside)

        for index, size in zip(indices, sizes, strict=False):
            self.code.each(index.sizes, partial(check, index, size=size))
        failed, goes_on = (builder.append_basic_block(name) for name in ("outside", "inside"))
        builder.cbranch(builder.load(inside, typ=BIT), goes_on, failed)
        builder.position_at_end(failed)
        self._fail(ir.Constant(INT32, store.site + 1))
        builder.position_at_end(goes_on)

    def position(self, index: Array, place: Sequence[Index], size: int) -> tuple[Any, Any]:
        """Return a number of an index, counted from the beginning, and whether it lies inside an axis of this size."""
        builder, length = self.builder, ir.Constant(INT64, size)
        wide = self.code.wide(index.number, index.at(place))
        if index.number.is_signed:
            from_end = builder.add(wide, length)
            wide = builder.select(builder.icmp_signed("<", wide, ir.Constant(INT64, 0)), from_end, wide)
        return wide, builder.icmp_unsigned("<", wide, length)

    # -- stacks --------------------------------------------------------------------------------------------------------

    def _pop(self) -> None:
        """Variables get back the newest entries of their stacks."""
        if any(count > 1 for count in (*self.pops.values(), *self.counts.values())):
            raise UnsupportedError("a block that takes several entries from a stack, or adds several")
        for name in self.pops:
            for leaf, number, sizes, address in self._fields(name, -1):
                if sizes:
                    self.code.write(self._entry(number, sizes, address), self.state.memory[leaf])
                    self.now[leaf] = self.code.memory(number, sizes, self.state.memory[leaf])
                else:
                    self.now[leaf] = scalar(number, self.code.load(number, address))

    def _save(self, variable: str, saved: str) -> None:
        """Write a value where the next entry of a stack will be. Until its pointer moves that does not count."""
        fields, values = self._fields(variable, -self.pops[variable]), self.read(saved)
        for (_, number, sizes, address), value in zip(fields, values, strict=True):
            if sizes:
                self._write_entry(value, address)
            else:
                self.code.store(number, elementwise.convert(self.builder, value.number, number, value.value), address)

    def _entry(self, number: Number, sizes: tuple[int, ...], address: Any) -> Array:
        """The array at an address in a stack."""
        return self.code.memory(number, sizes, address)

    def _write_entry(self, array: Array, address: Any) -> None:
        """Write an array to an address in a stack."""
        self.code.write(array, address)

    def _move_pointers(self) -> None:
        moved: dict[str, int] = {}
        for name in {*self.pops, *self.counts}:
            moved[self.storage.group(name)] = self.counts[name] - self.pops[name]
        for group, by in moved.items():
            if by:
                self._move(group, by)

    # -- the end of the block ------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Let the block take effect, and go on."""
        terminator = self.block.terminator
        match terminator:
            case Fault(site=site):
                self._commit()
                self._fail(ir.Constant(INT32, site + 1))
            case Branch():
                self._commit()
                self._go(terminator)
            case Jump(target=target):
                if effects.is_step(self.block):
                    self._step()
                self._commit()
                self._go(target)
            case PushJump(target=target, back=back, site=site):
                self._call(back, site)
                self._commit()
                self._go(target)
            case Return():
                if effects.is_step(self.block):
                    self._step()
                self._commit()
                self._return()
            case _:
                raise TypeError(f"not a terminator: {terminator!r}")

    def _commit(self) -> None:
        self._move_pointers()
        for leaf, array in self.now.items():
            name, _ = leaf
            if not array.sizes and name in self.program.storage:
                self.builder.store(array.value, self.state.registers[leaf])

    def _go(self, target: int | Branch) -> None:
        if isinstance(target, int):
            self.builder.branch(self._label(target))
        elif target.true == target.false:
            self.builder.branch(self._label(target.true))
        else:
            self.builder.cbranch(self.bool_of(target.condition), self._label(target.true), self._label(target.false))

    # -- where a lane is -----------------------------------------------------------------------------------------------

    def _fields(self, name: str, above: int) -> Iterator[tuple[Leaf, Number, tuple[int, ...], Any]]:
        """The leaves in an entry of a stack, with their addresses; counted from the first free one at the beginning."""
        raise NotImplementedError

    def _move(self, group: str, by: int) -> None:
        """Let stacks have so many entries more."""
        raise NotImplementedError

    def _label(self, number: int) -> Any:
        """The label at which a lane goes on with a block."""
        return self.labels[number]

    def _fail(self, code: Any) -> None:
        """End the lane with a failure: a fault site plus one."""
        raise NotImplementedError

    def _call(self, back: int, site: int) -> None:
        """Count a call that comes back at a block, if it may be made."""
        raise NotImplementedError

    def _step(self) -> None:
        """Count a loop turn or a call; now and then ask whether the lane may go on."""
        raise NotImplementedError

    def _return(self) -> None:
        """Go on where the newest call comes back, or at the end."""
        raise NotImplementedError
