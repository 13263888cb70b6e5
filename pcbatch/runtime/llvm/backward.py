"""The native function that gives the gradients of lanes: each runs once more, recorded, and is undone right away.

    run([control, first, behind, capacity, arena, calls, stacks.., parameters.., seeds.., shared.., failures, steps,
        gradients by parameters.., sums..])

So a tape is never longer than one lane's, and the run whose gradient is asked for is a plain one. A lane that fails has
gradients of zeros. Sums are what gradients by shared operands are made of, `[lanes, ...]` too: whoever adds them up
does so in an order that does not depend on threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import llvmlite.ir as ir

from pcbatch.ir.machine import Program
from pcbatch.ir.types import leaves
from pcbatch.runtime.adjoint.tape import Tapes
from pcbatch.runtime.backends.pieces import Hlo, Linear
from pcbatch.runtime.llvm import block
from pcbatch.runtime.llvm import interface as native
from pcbatch.runtime.llvm.function import Builder, Function, hand_out, row_of
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.interface import POINTER, Arguments, Interface, Result, place
from pcbatch.runtime.llvm.lane import Lane, PieceCode, Places
from pcbatch.runtime.llvm.lane_tape import RecordingBlock, Tape, records
from pcbatch.runtime.llvm.lane_vjp import Adjoints, BackCode, WayBack, active_leaves, adjoint_group, sums_of
from pcbatch.runtime.llvm.stacks import Frame, Storage
from pcbatch.runtime.llvm.translation import Translation
from pcbatch.runtime.llvm.types import INT64, by_dtype


@dataclass(frozen=True)
class StorageBothWays(Storage):
    """Storage layout of a lane of a program, and of the gradients by the entries of its stacks."""

    tapes: Tapes = field(kw_only=True)

    @cached_property
    def frames(self) -> dict[str, Frame]:
        """The frames, with a group beside each for the gradients of its leaves."""
        found = dict(super().frames)
        for group, frame in super().frames.items():
            names = dict.fromkeys(name for name, _ in frame.fields)
            fields = [each for name in names for each in active_leaves(self.tapes, self, name)]
            if fields:
                found[adjoint_group(group)] = Frame.of(fields)
        return found


def _seed(number: int) -> str:
    """The name among the arguments of the gradients by a leaf of the results."""
    return f"seed {number}"


class BackwardInterface(Interface):
    """Arguments and results of the function: leaves of results that gradients flow to have `seeds`, by their number."""

    def __init__(self, program: Program, tapes: Tapes):
        super().__init__(program, counts=False)
        self.tapes, self.storage = tapes, StorageBothWays(program, tapes=tapes)
        active = {leaf for name in program.results for leaf, _, _ in active_leaves(tapes, self.storage, name)}
        self.seeds = {n: each for n, each in enumerate(self.storage.results) if each[0] in active}
        self.given += [((_seed(n), 0), number, sizes) for n, (_, number, sizes) in self.seeds.items()]
        parameters = [Result(*each) for name in program.parameters for each in active_leaves(tapes, self.storage, name)]
        sums = [Result(leaf, by_dtype(type_.dtype), type_.shape) for leaf, type_ in sums_of(tapes)]
        self.results, self.shown, self.by_parameters = [*parameters, *sums], [], len(parameters)
        self.result_places = range(2, 2 + len(self.results))
        self.shown_places = range(self.result_places.stop, self.result_places.stop)
        self.executions = self.shown_places.stop

    @property
    def sum_bytes(self) -> int:
        """The bytes of a lane's sums."""
        types = (type_ for _, type_ in sums_of(self.tapes))
        return sum(type_.bytes for type_ in types)


@dataclass(frozen=True)
class BackwardTranslation(Translation):
    """A program whose pieces and their derivatives are known as HLO."""

    tapes: Tapes = field(kw_only=True)

    @cached_property
    def derivatives(self) -> dict[tuple[int, int], Linear]:
        """The derivatives of pieces, by block and place; `UnsupportedError` if one needs all rows together."""
        found = {(number, at): each for number, tape in self.tapes.blocks.items() for at, each in tape.linear.items()}
        if any(each.deltas for each in found.values()):
            raise UnsupportedError("the gradient by an array that all lanes multiply by, or look up in")
        if any(None in type_.shape for each in found.values() for type_ in (*each.residuals, *each.summed)):
            raise UnsupportedError("arrays of sizes that are not known")
        return {key: found[key] for key in self.every if key in found}

    @cached_property
    def _hlo(self) -> Hlo:
        return self.lowered([self.derivatives.get(key) for key in self.every])

    @cached_property
    def pieces(self) -> dict[tuple[int, int], Places]:
        """The place of each piece in the module, with its residuals."""
        return self._places[0]

    @cached_property
    def backward(self) -> dict[tuple[int, int], BackCode]:
        """The place of each derivative."""
        return self._places[1]

    @cached_property
    def _places(self) -> tuple[dict[tuple[int, int], Places], dict[tuple[int, int], BackCode]]:
        results, first = iter(self.results if self.every else ()), 0
        pieces: dict[tuple[int, int], Places] = {}
        backward = {}
        for key, (piece, signature) in self.every.items():
            linear = self.derivatives.get(key)
            given = sum(1 for type_ in signature.writes for _ in leaves(type_)) + bool(piece.sites)
            names = tuple(next(results) for _ in range(given))
            kept = () if linear is None else tuple(next(results) for _ in linear.residuals)
            pieces[key] = PieceCode(first, names, bool(piece.sites), kept)
            first += sum(1 for type_ in (*signature.reads, *signature.shared) for _ in leaves(type_))
        for key, linear in self.derivatives.items():
            _, signature = self.every[key]
            reads = {number: next(results) for number in linear.reads_of}
            elements = [([next(results) for _ in range(each.depth)], next(results)) for each in linear.elements]
            backward[key] = BackCode(first, reads, elements, [next(results) for _ in linear.summed])
            first += len(linear.residuals) + sum(1 for type_ in signature.shared for _ in leaves(type_))
            first += len(linear.seeds_of)
        return pieces, backward

    def both_ways(self) -> Function:
        """The native function."""
        builder = _Builder(BackwardInterface(self.program, self.tapes), *self.parts, self.limits)
        builder.derivatives = self.backward
        return builder.build(width=1)


class _Builder(Builder):
    """Emits the function: lanes that are recorded, then undone."""

    interface: BackwardInterface
    derivatives: Mapping[tuple[int, int], BackCode]

    def blocks(self, body: Lane) -> None:
        """Run a lane, which has begun, to its end, recorded."""
        builder, control = body.builder, body.builder.function.args[0]
        end, full = body.code.variable(INT64, ir.Constant(INT64, 0)), builder.append_basic_block("tape_is_full")
        memory = builder.load(place(builder, control, native.TAPE), typ=POINTER)
        room = builder.load(place(builder, control, native.TAPE_BYTES), typ=INT64)
        self.every = records(self.interface.tapes)
        self.tape = Tape(body.code, memory, room, end, full)
        self.adjoints = Adjoints(body.code, self.interface.tapes, self.storage)
        block.emit(body, partial(RecordingBlock, self.tape, self.every))
        builder.position_at_end(full)
        builder.store(ir.Constant(INT64, native.NEEDS_TAPE), place(builder, control, native.STATUS))
        builder.ret_void()

    def end(self, body: Lane, lane: Any, failure: Any, given: Arguments) -> None:
        """Undo a lane that has ended, and write its gradients: zeros, if it has failed."""
        code, builder, adjoints = body.code, body.builder, self.adjoints
        way = WayBack(body, self.interface.tapes, self.tape, self.every, self.derivatives, adjoints)
        way.clear()
        undo, done = (builder.append_basic_block(name) for name in ("sound", "has_gradients"))
        builder.cbranch(builder.icmp_signed("==", failure, ir.Constant(failure.type, 0)), undo, done)
        builder.position_at_end(undo)
        arrays = given.arrays()
        for number, (leaf, _, _) in self.interface.seeds.items():
            adjoints.add(leaf, row_of(code, *arrays[_seed(number), 0], lane))
        way.emit()
        builder.branch(done)
        builder.position_at_end(done)
        for result, pointer in zip(self.interface.results, given.results, strict=True):
            hand_out(code, adjoints.value(result.leaf), result, pointer, lane)
