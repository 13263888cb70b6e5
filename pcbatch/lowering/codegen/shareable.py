"""Which parameters of a program may be one value for all lanes: those that nothing writes and only pieces read."""

from __future__ import annotations

from pcbatch.ir import program as ir


def shareable(program: ir.Program) -> frozenset[str]:
    """The parameters of the entry of an optimised stack program that no op writes and that pieces alone read.

    What the machine itself reads (a branch's condition, an index of a store, a fault's argument, a result) needs lanes.
    """
    candidates = set(program.entry.parameters) - set(program.entry.results)
    for block in program.blocks():
        candidates -= set(ir.reads(block.terminator))
        for op in block.ops:
            candidates -= set(ir.writes(op))
            if isinstance(op, ir.Store):
                candidates -= set(ir.reads(op))
    return frozenset(candidates)
