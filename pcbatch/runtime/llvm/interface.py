"""Arguments and results of a native function."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir
import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.ir.types import leaves
from pcbatch.runtime.llvm.code import Array, Code, scalar
from pcbatch.runtime.llvm.stacks import Leaf, Storage
from pcbatch.runtime.llvm.types import ALIGNED, INT64, Number, by_dtype

POINTER = ir.PointerType()
NAME = "run"
"""The name of the function in its module."""
ENDED, NEEDS_ROOM, STOPPED, NEEDS_TAPE = range(4)
"""Reasons, in `control`, why lanes do not run on: all have ended; one needs larger stacks; a stop; a longer tape."""
STATUS, REACHED, FAILED, STOP, THREAD, TAPE, TAPE_BYTES = range(7)
"""Places of `control`: int64. The run writes the first three, and reads whether to `STOP`, and where its tape lies."""
FIXED = 6
"""The number of arguments before the stacks."""
LANES = "lanes"
"""The name of the function that runs lanes without Python, if the `THREAD` in `control` is 0."""
SIZES_KEPT = 64
"""Maximal number of numbers of lanes for which the places of outputs are remembered."""
CONTROL = 8
"""The number of places of `control`."""


@dataclass(frozen=True)
class Result:
    """An array that the function writes, `[lanes, ...]`."""

    leaf: Leaf
    number: Number
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Outputs:
    """Layout of the arrays that a run writes, in one piece of memory: dtypes, sizes, offsets from its beginning."""

    arrays: tuple[tuple[np.dtype, tuple[int, ...]], ...]
    offsets: tuple[int, ...]
    bytes: int


class Interface:
    """Arguments and results of a native function; one that `counts` counts how often blocks run."""

    def __init__(self, program: Program, counts: bool):
        self.program, self.counts, self.storage = program, counts, Storage(program)
        self.given = [each for name in program.parameters for each in self.storage.leaves(name)]
        self.shared = [
            ((name, place), by_dtype(type_.dtype), type_.shape)
            for name in program.shared
            for place, type_ in enumerate(leaves(program.shared_types[name]))
        ]
        self.results = [Result(*each) for each in self.storage.results]
        self.shown = [Result(*each) for name in self.storage.shown for each in self.storage.leaves(name)]

        self.failures, self.steps = 0, 1
        """The places of these among the outputs: int32 of every lane, see `Exits`."""
        self.result_places = range(2, 2 + len(self.results))
        self.shown_places = range(self.result_places.stop, self.result_places.stop + len(self.shown))
        self.executions = self.shown_places.stop
        self._outputs: dict[int, Outputs] = {}

    def outputs(self, lanes: int) -> Outputs:
        """The outputs of so many lanes."""
        found = self._outputs.get(lanes)
        if found is None:
            if len(self._outputs) >= SIZES_KEPT:
                self._outputs = {}
            found = self._outputs[lanes] = self._laid_out(lanes)
        return found

    def _laid_out(self, lanes: int) -> Outputs:
        arrays: list[tuple[np.dtype, tuple[int, ...]]] = [(np.dtype(np.int32), (lanes,))] * 2
        arrays += [(np.dtype(each.number.dtype), (lanes, *each.sizes)) for each in (*self.results, *self.shown)]
        arrays += [(np.dtype(np.int64), (len(self.program.blocks),))] * self.counts
        offsets, end = [], 0
        for dtype, sizes in arrays:
            offsets.append(end)
            end += (dtype.itemsize * math.prod(sizes) + ALIGNED - 1) // ALIGNED * ALIGNED
        return Outputs(tuple(arrays), tuple(offsets), end)

    @property
    def types(self) -> list[ir.Type]:
        """The types of the function's parameters, each of 64 bits."""
        arrays = len(self.storage.frames) + len(self.given) + len(self.shared) + 2
        arrays += len(self.results) + len(self.shown) + self.counts
        return [POINTER, INT64, INT64, INT64, POINTER, POINTER] + [POINTER] * arrays


@dataclass(frozen=True)
class Arguments:
    """The arguments of a native function under construction."""

    control: Any
    first: Any
    behind: Any
    capacity: Any
    arena: Any
    calls: Any
    stacks: dict[str, Any]
    given: list[tuple[Leaf, Number, tuple[int, ...], Any]]
    """The arrays of the parameters' leaves, `[lanes, ...]`."""
    failures: Any
    steps: Any
    results: list[Any]
    shown: list[Any]
    executions: Any
    _shared: list[tuple[Leaf, Number, tuple[int, ...], Any]]

    @classmethod
    def of(cls, interface: Interface, function: Any) -> Arguments:
        """Return the arguments of a function of the interface's type."""
        for argument in function.args:
            if argument.type == POINTER:
                argument.add_attribute("noalias")
        arrays: Iterator[Any]
        control, first, behind, capacity, arena, calls, *rest = function.args
        arrays = iter(rest)
        return cls(
            *(control, first, behind, capacity, arena, calls),
            stacks={group: next(arrays) for group in interface.storage.frames},
            given=[(*each, next(arrays)) for each in interface.given],
            _shared=[(*each, next(arrays)) for each in interface.shared],
            failures=next(arrays),
            steps=next(arrays),
            results=[next(arrays) for _ in interface.results],
            shown=[next(arrays) for _ in interface.shown],
            executions=next(arrays) if interface.counts else None,
        )

    def arrays(self) -> dict[Leaf, tuple[Number, tuple[int, ...], Any]]:
        """The types, sizes and addresses of the parameters' leaves."""
        return {leaf: (number, sizes, pointer) for leaf, number, sizes, pointer in self.given}

    def shared(self, code: Code) -> dict[Leaf, Array]:
        """The arrays that all lanes share, by leaf."""
        found = {}
        for leaf, number, sizes, pointer in self._shared:
            array = code.memory(number, sizes, pointer)
            found[leaf] = array if sizes else scalar(number, array.value)
        return found


def place(builder: Any, control: Any, number: int) -> Any:
    """The address of one of the places of `control`."""
    return builder.gep(control, [ir.Constant(INT64, number)], inbounds=True, source_etype=INT64)
