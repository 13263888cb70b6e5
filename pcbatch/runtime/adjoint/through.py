"""Gradients through runs: who watches a run gets it taped, who asks later gets it run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.errors import GradientError
from pcbatch.runtime.adjoint.reverse import Reverse, Taped
from pcbatch.runtime.backends.control import PullBack
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.outcome import Outcome

Plain = Callable[[Sequence[Any], Sequence[Any], Any], Outcome]
"""Runs a program on the leaves of arguments and shared operands, for so many lanes."""


def run_through(
    plain: Plain,
    reverse: Callable[[], Reverse],
    arguments: Sequence[Any],
    shared: Sequence[Any],
    lanes: Any,
    taped: bool,
) -> Outcome:
    """The outcome of a run through whose values gradients flow.

    Where somebody watches, the run is `taped`, if that gives all that is wanted of it; else it is `plain`, and run
    again when a gradient is asked for.
    """
    way = reverse()
    backend, name = way.backend, way.program.name
    arrays = way.arrays_given(arguments, shared, lanes)
    if not backend.may_be_differentiated(arrays):
        return plain(arguments, shared, lanes)
    count = len(arguments)
    now = taped and backend.is_watched(arrays) and not backend.inside_fixed_program()
    outcomes: list[Outcome] = []

    def run(given: list[Array]) -> tuple[Sequence[Array], PullBack]:
        known: Taped | None = way.run(given, lanes) if now else None
        outcomes.append(plain(given[:count], given[count:], lanes) if known is None else known.outcome)

        def pull_back(upstream: Sequence[Array | None]) -> Sequence[Array | None]:
            _check(way)
            return way.gradients(known or way.run(given, lanes), given[count:], upstream, lanes)

        return outcomes[-1].values, pull_back

    values = backend.differentiable(run, arrays, name)
    return replace(outcomes[-1], values=tuple(values))


def _check(way: Reverse) -> None:
    """Refuse where there is no way back: GradientError PCB605, PCB607."""
    name = way.program.name
    if way.backend.is_vectorized():
        raise GradientError(
            f"PCB605: a Jacobian through the batched call of {name!r} cannot be taken for all its rows at once\n"
            f"  help: write tape.jacobian(..., experimental_use_pfor=False)"
        )
    if way.backend.inside_fixed_program():
        raise GradientError(
            f"PCB607: a gradient through the batched call of {name!r} was asked for in a function compiled with "
            f"jit_compile=True, where nobody knows beforehand how long the record of a run is\n  help: leave "
            f"jit_compile=True away: what {name} does is compiled by itself"
        )
