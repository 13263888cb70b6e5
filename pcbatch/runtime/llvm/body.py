"""Pieces of a block, whoever runs it: one lane, or several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type, leaves
from pcbatch.runtime.llvm.code import Array, scalar
from pcbatch.runtime.llvm.computation import Operations
from pcbatch.runtime.llvm.lane import PieceCode, Places, State, StepCode
from pcbatch.runtime.llvm.operations import OPERATIONS, evaluate
from pcbatch.runtime.llvm.stacks import Leaf
from pcbatch.runtime.llvm.types import Number, by_dtype


class Body:
    """The body of one block: `now` holds the present values of names; the state changes at its end."""

    operations: Operations = OPERATIONS

    def __init__(self, state: State, number: int):
        self.state, self.code, self.builder, self.storage = state, state.code, state.builder, state.storage
        self.number, self.program, self.block = number, state.program, state.program.blocks[number]
        self.now: dict[Leaf, Array] = {}

    # -- values --------------------------------------------------------------------------------------------------------

    def read(self, name: str) -> list[Array]:
        """The leaves of the value that a name has at this point of the block."""
        return [self._leaf(*each) for each in self.storage.leaves(name)]

    def _leaf(self, leaf: Leaf, number: Number, sizes: tuple[int, ...]) -> Array:
        return self.now[leaf] if leaf in self.now else self.state.top(leaf, number, sizes)

    def bool_of(self, name: str) -> Any:
        """The value of a condition."""
        (leaf,) = self.read(name)
        return leaf.value

    def emit(self) -> None:
        """The whole block."""
        raise NotImplementedError

    def leave(self) -> None:
        """Let the block take effect, and go on."""
        raise NotImplementedError

    # -- the body ------------------------------------------------------------------------------------------------------

    def piece(self, piece: Piece, place: Places) -> None:
        """Run a piece; a lane fails where one of its checks does."""
        if not isinstance(place, PieceCode):
            self._steps(piece, place)
            return
        found = self._evaluated(piece, place, [leaf for name in piece.reads for leaf in self.read(name)])
        found, kept = found[: len(place.results)], found[len(place.results) :]
        if place.has_site:
            self._check(found.pop().value)
        self.keep(kept)
        targets = [each for name in piece.writes for each in self.storage.leaves(name)]
        self._write(dict(zip([leaf for leaf, _, _ in targets], found, strict=True)))

    def _evaluated(self, piece: Piece, place: PieceCode, reads: Sequence[Array]) -> list[Array]:
        """The results of a piece's function for the leaves of what it reads."""
        given = [*reads]
        for name in piece.shared:
            types = leaves(self.program.shared_types[name])
            given += [self.state.setting.shared[name, i] for i, _ in enumerate(types)]
        arguments = {**self.state.setting.captured, **{place.first + i: each for i, each in enumerate(given)}}
        names = (*place.results, *place.kept)
        return evaluate(self.code, self.state.setting.module, names, arguments, self.operations)

    def _steps(self, piece: Piece, steps: Sequence[StepCode]) -> None:
        """Run a piece step by step; a lane fails at the first of its checks that does."""
        values: dict[str, list[Array]] = {}
        failed: Any = None

        def read(name: str) -> list[Array]:
            return values[name] if name in values else self.read(name)

        for each in steps:
            step = each.step
            reads: list[Array] = []
            for operand, type_ in zip(step.reads, step.read_types, strict=True):
                reads += read(operand) if isinstance(operand, str) else [self._constant(operand, type_)]
            found = self._evaluated(step.piece, each.place, reads)
            if each.place.has_site:
                failed = self._first_failed(failed, found.pop(), step.sites)
            values.update(zip(step.writes, ([number] for number in found), strict=True))
        if failed is not None:
            self._check(failed)
        targets = [leaf for name in piece.writes for leaf, _, _ in self.storage.leaves(name)]
        self._write(dict(zip(targets, (value for name in piece.writes for value in read(name)), strict=True)))

    def _constant(self, value: Any, type_: Type) -> Array:
        (leaf,) = leaves(type_)
        number = by_dtype(leaf.dtype).wide(self.code.lanes)
        return scalar(number, number.constant(value))

    def _first_failed(self, before: Any, found: Array, sites: Sequence[int | None]) -> Any:
        """The site, plus one, of the first check that fails: one before, or this step's of the number `found`."""
        builder, number, check = self.builder, found.number, found.value
        own: Any = None
        for place, site in enumerate(sites):
            if site is not None:
                fails = builder.icmp_signed("==", check, number.constant(place + 1))
                own = builder.select(fails, number.constant(site + 1), number.constant(0) if own is None else own)
        if own is None or before is None:
            return before if own is None else own
        return builder.select(builder.icmp_signed("==", before, number.constant(0)), own, before)

    def keep(self, values: Sequence[Array]) -> None:
        """Keep a piece's values for the backward pass, before anything changes."""

    def _write(self, found: Mapping[Leaf, Array]) -> None:
        """Give variables new values, all at once: some may be computed from others' old ones."""
        code = self.code
        targets = {self.state.memory[leaf] for leaf, array in found.items() if array.sizes}
        settled = {}
        for leaf, array in found.items():
            target = self.state.memory.get(leaf)
            if not array.sizes:
                array = scalar(array.number, array.value)
            elif array.pointer is not target and array.reads & targets:
                pointer = code.room(array.number, array.count)
                code.write(array, pointer)
                array = code.memory(array.number, array.sizes, pointer)
            settled[leaf] = array
        for leaf, array in settled.items():
            if array.sizes:
                target = self.state.memory[leaf]
                if array.pointer is not target:
                    self._settle(array, target)
                array = code.memory(array.number, array.sizes, target)
            self.now[leaf] = array

    def _settle(self, array: Array, target: Any) -> None:
        """Write the new value of a variable to its memory."""
        self.code.write(array, target)

    def _check(self, site: Any) -> None:
        """Let lanes fail at a site, plus one, that is not 0."""
        raise NotImplementedError
