"""The rule of jit="auto": whether a program of one block is better compiled or run by the library's own kernels.

A static rule, by the operations of a trace: the same program is treated alike in every process, on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.ir.machine import Piece, Program
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.device import CPU


@dataclass(frozen=True)
class Choice:
    """The decision whether the program is to be compiled, and its reason."""

    jit: bool
    why: str


def choice(program: Program, backend: Backend) -> Choice:
    """Return the better form of `program`, of one block."""
    (block,) = program.blocks
    cost = compiled = 0.0
    for item in block.body:
        if isinstance(item, Piece):
            types = [program.types[name] for name in item.reads]
            found = backend.kernels(item, types, [program.shared_types[name] for name in item.shared])
            cost, compiled = cost + found.cost, compiled + found.compiled
            if found.obstacle is not None:
                return Choice(True, found.obstacle)
    if compiled > cost + CPU.uncompiled:
        return Choice(False, f"compiled, it is estimated to take {compiled / cost:.2g} times as long")
    return Choice(True, "nothing in it is estimated to be faster otherwise")
