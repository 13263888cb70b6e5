"""A batched function as one operation of a piece that calls it: see `backends.tensorflow.opaque`."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.errors import PieceRefusalError
from pcbatch.function.arguments import Arguments
from pcbatch.function.compilation_cache import Session
from pcbatch.function.pipeline import Pipeline
from pcbatch.function.user_code import ordinary_code
from pcbatch.ir.analysis.effects import can_fault
from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import Captured


class BatchedOperation:
    """The batched `function`, which runs for all lanes of a piece at once; see `opaque.Callee`."""

    def __init__(self, function: Any):
        self.function = function
        self.static_argnames: tuple[str, ...] = function.static_argnames

    def program(self, arguments: Mapping[str, Any], axes: Mapping[str, Any]) -> Compiled:
        """Return its program for arguments with such axes."""
        with ordinary_code():
            bound, session = self._bound(arguments), self._with(axes).session
            given = session.bind(bound.args, {**bound.kwargs, **_lanes(axes)}).without_values()
            pipeline, _ = session.compiled_for(given)
            if self.function.is_inner and pipeline.read.reading.changes:
                raise PieceRefusalError(
                    "PCB107",
                    "a loop, a branch or a helper on a gradient tape changes a list, an array or an object",
                    "return new values from a function, and change things after the `with` block",
                )
            return Compiled(session, given)

    def run_batch(self, arguments: Mapping[str, Any], axes: Mapping[str, Any]) -> tuple[Any, Any]:
        """The results for a batch, and a mask of the lanes that have not failed, bool `[lanes]`."""
        with ordinary_code():
            bound = self._bound(arguments)
            run = self._with(axes).run(*bound.args, **bound.kwargs, **_lanes(axes))
            return run.value, run.status == LaneStatus.OK

    def _bound(self, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
        return inspect.BoundArguments(self.function.__signature__, OrderedDict(arguments))

    def _with(self, axes: Any) -> Any:
        """The function with such axes, as it runs within another program: at once."""
        return self.function.options(in_axes=axes, progress=False, resume=None, output="tensors", trace=0)


@dataclass(frozen=True)
class Compiled:
    """The program that `session` compiles for `arguments`; see `opaque.Program`."""

    session: Session
    arguments: Arguments

    @property
    def result_type(self) -> Type:
        """Return the type of its result for one example."""
        table = self._now()[0].outline
        return table.types[table.results[0]] if table.structure is None else table.structure

    @property
    def captured(self) -> list[Any]:
        """The arrays that it captures, and variables."""
        return [leaf for leaves in self._now()[1].leaves.values() for leaf in leaves]

    @property
    def can_fail(self) -> bool:
        """True if a lane of it may fail."""
        pipeline = self._now()[0]
        return any(can_fault(block, pipeline.options.max_steps) for block in pipeline.outline.blocks)

    def state(self) -> tuple[Any, ...]:
        """A snapshot of the program and of the arrays that it captures, to be compared with a later one."""
        leaves = (each.copy() if isinstance(each, np.ndarray) else each for each in self.captured)
        return (self._now()[0], *leaves)

    def _now(self) -> tuple[Pipeline, Captured]:
        with ordinary_code():
            return self.session.compiled_for(self.arguments)


def _lanes(axes: Mapping[str, Any]) -> dict[str, int]:
    """The keyword that sets the number of lanes, for a call in which no argument has a lane axis."""
    return {} if any(0 in _leaves(each) for each in axes.values()) else {"lanes": 1}


def _leaves(axes: Any) -> list[Any]:
    parts = axes.values() if isinstance(axes, dict) else axes if isinstance(axes, tuple) else None
    return [axes] if parts is None else [leaf for each in parts for leaf in _leaves(each)]
