"""What groups of calls mean that fork: one example, whose calls are made by lanes of their own, one after the other.

The interpreter of the machine dialect makes them in sequence; here a lane that forks does no more than what the form of
the program says in which all groups fork (`ir.analysis.forks.forking`). What it is not given, a call does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from pcbatch.ir.analysis.parallel_call_groups import forking, groups
from pcbatch.ir.machine import Piece, Program, fork_of
from pcbatch.ir.types import TensorType, leaves
from pcbatch.ir.values import pack
from tests.ir.evaluation import zero
from tests.ir.interpreter import Evaluate, Lane, LaneFaultError, Outcome, StoreElement
from tests.ir.machine_interpreter import Missing, _Run


def interpret_forked(
    program: Program, arguments: Sequence[Any], evaluate: Evaluate, store: StoreElement, *, shared: Sequence[Any] = ()
) -> Outcome:
    """Run the form of `program` in which all groups fork on one example."""
    lane = Lane(evaluate, store, None, None)
    program = forking(program)
    kept = program.storage.keys()
    program = replace(program, pointers={name: to for name, to in program.pointers.items() if {name, to} <= kept})
    run = _Forked(program, lane, dict(zip(program.shared, shared, strict=True)))
    return lane.outcome(lambda: run.results(arguments))


class _Forked(_Run):
    """A lane; it runs those that it waits for."""

    def __init__(self, program: Program, lane: Lane, shared: dict[str, Any]):
        super().__init__(program, lane, shared)
        self.entries = {group.block: [member.entry for member in group.members] for group in groups(program)}

    def run_block(self) -> int:
        """Run one block, and the calls that it forks: the number of the next."""
        number = self.program.blocks.index(self.block)
        assert number in self.program.order, f"no lane comes to {self.block.label}"
        fork = fork_of(self.block.terminator)
        if fork is None:
            return super().run_block()
        pops = Counter(self.block.pops)
        self.tops = {name: stack[-1 - pops[name]] for name, stack in self.stacks.items()}
        self.now = {}
        for item in self.block.body:
            if item.predicate is not None and not self.read(item.predicate):
                self.leave_out(item)
            elif isinstance(item, Piece):
                self.early(item) if item.speculative else self.piece(item)
            else:
                self.store(item)
        found: dict[str, Any] = {}
        for call, entry in zip(fork.calls, self.entries[number], strict=True):
            if call.condition is not None and not self.read(call.condition):
                found |= {slot: self.zero(slot) for slot, _ in call.results}
                continue
            given = {variable: self.now.get(name, self.tops.get(name)) for variable, name in call.given}
            found |= self.called(entry, given, dict(call.results))
        self.commit(pops)
        self.stacks |= {slot: [value] for slot, value in found.items()}
        return fork.join

    def early(self, piece: Piece) -> None:
        """What is computed for later calls; it fails nobody."""
        try:
            self.piece(piece)
        except LaneFaultError:
            self.now |= {name: self.zero(name) for name in piece.writes}

    def called(self, entry: int, given: dict[str, Any], results: dict[str, str]) -> dict[str, Any]:
        """What a lane gives that begins at a block: by slot."""
        child = _Forked(self.program, self.lane, self.shared)
        lies_by_example = [name for name, kind in self.program.storage.items() if kind == "example"]
        child.stacks |= {name: self.stacks[name] for name in lies_by_example}
        child.stacks |= {name: [value] for name, value in given.items()}
        place = entry
        while place != len(self.program.blocks):
            child.block = self.program.blocks[place]
            place = child.run_block()
        found = {slot: child.stacks[variable][-1] for slot, variable in results.items()}
        return {slot: self.junk(slot) if isinstance(value, Missing) else value for slot, value in found.items()}

    def zero(self, name: str) -> Any:
        """Of the very dtypes that TensorFlow's operations are given: the sine of Python's zero would be float32."""
        return self.filled(name, 0.0)

    def junk(self, name: str) -> Any:
        """What there is where a call gives nothing: it may be handed on, but whoever computes by it is found out."""
        return self.filled(name, float("nan"))

    def filled(self, name: str, number: float) -> Any:
        """A value of the type of `name`: its floats are `number`, all else is zero."""

        def filled(leaf: TensorType) -> Any:
            value = zero(leaf) if leaf.weak else tf.zeros(leaf.shape, leaf.dtype)
            return value + number if tf.as_dtype(leaf.dtype).is_floating else value

        type_ = self.program.types[name]
        return pack(type_, [filled(leaf) for leaf in leaves(type_)])
