"""The translation of a machine program to a native function: its pieces as HLO, then everything as LLVM's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.effects import is_framed
from pcbatch.ir.machine import Piece, Program
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.pieces import Hlo, Linear, Signature
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.estimate import parts_of
from pcbatch.runtime.llvm import hlo
from pcbatch.runtime.llvm.function import Function, build
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.interface import Interface
from pcbatch.runtime.llvm.kernel import Kernel, KernelBuilder
from pcbatch.runtime.llvm.lane import Limits, PieceCode, Places, StepCode


@dataclass(frozen=True)
class Translation:
    """A program whose pieces are known as HLO; raises `UnsupportedError` where that cannot be."""

    program: Program
    backend: Backend
    limits: Limits
    width: int = 1
    """The number of lanes that run in a group, where they can."""
    only: tuple[int, ...] | None = None
    """The blocks that are translated; None: all that lanes can come to."""

    @cached_property
    def every(self) -> dict[tuple[int, int], tuple[Piece, Signature]]:
        """The pieces that lanes can come to, by block and place in its body."""
        return {
            (number, place): (item, _signature(self.program, item))
            for number in (sorted(effects.reachable(self.program)) if self.only is None else self.only)
            for place, item in enumerate(self.program.blocks[number].body)
            if isinstance(item, Piece) and not item.speculative
        }

    @cached_property
    def functions(self) -> dict[Piece, Signature]:
        """The functions of which these pieces are made, each once: one for ops that are alike."""
        parts = [parts_of(self.program, piece) for piece, _ in self.every.values()]
        return {part: signature for each in parts for part, signature in each}

    @cached_property
    def module(self) -> hlo.Module:
        """The operations of all pieces."""
        return hlo.parse(self._hlo.text)

    @cached_property
    def _hlo(self) -> Hlo:
        return self.lowered(())

    def lowered(self, linear: Sequence[Linear | None]) -> Hlo:
        """The operations of all pieces, and of the derivatives of these as they are."""
        found = self.backend.hlo([*self.every.values()] if linear else [*self.functions.items()], linear)
        if found is None:
            raise UnsupportedError("something that is not code for one example, or that XLA has no code for")
        return found

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The results of the module's entry, by name."""
        roots = self.module.entry.root
        return roots.operands if roots.opcode == "tuple" else (roots.name,)

    @cached_property
    def pieces(self) -> dict[tuple[int, int], Places]:
        """The place of each piece in the module."""
        results = self.results
        found, first, behind = {}, 0, 0
        for piece, signature in self.functions.items():
            taken = sum(1 for type_ in (*signature.reads, *signature.shared) for _ in leaves(type_))
            given = sum(1 for type_ in signature.writes for _ in leaves(type_)) + bool(piece.sites)
            found[piece] = PieceCode(first, results[behind : behind + given], bool(piece.sites))
            first, behind = first + taken, behind + given
        return {
            key: [StepCode(step, found[step.piece]) for step in piece.steps] or found[piece]
            for key, (piece, _) in self.every.items()
        }

    def function(self, counts: bool) -> Function:
        """The native function; one that `counts` counts how often blocks run."""
        return build(Interface(self.program, counts), *self.parts, self.limits, self.width)

    def kernel(self, again: bool) -> Kernel:
        """The kernel that begins lanes, or goes on `again` with lanes that were stopped."""
        return KernelBuilder(Interface(self.program, counts=False), *self.parts, self.limits).kernel(again)

    @property
    def parts(self) -> tuple[hlo.Module, Mapping[tuple[int, int], Places], Sequence[np.ndarray]]:
        """The module, the places of pieces in it, and the arrays that its entry takes last."""
        if not is_framed(self.program):
            raise UnsupportedError("a call that keeps more than one value of a variable on its stack")
        if not self.every:
            return hlo.EMPTY, {}, ()
        return self.module, self.pieces, self._hlo.captured


def _signature(program: Program, piece: Piece) -> Signature:
    return Signature(
        reads=[program.types[name] for name in piece.reads],
        shared=[program.shared_types[name] for name in piece.shared],
        writes=[program.types[name] for name in piece.writes],
    )
