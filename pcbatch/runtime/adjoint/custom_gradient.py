"""Gradients through runs: who watches a run gets it taped, who asks later gets it run again.

Inside a caller's compiled program all sizes are fixed: there is one segment, whose tapes are to be enough. Nothing
grows there, nothing is put aside, and nothing can raise. So the caller says how many rows of a block a run may
have, and the run is recorded as one segment with as much room. A run that has more is not recorded to its end: then all
gradients are NaN, never wrong.

Gradients by shared operands of each example apart come from one replay, without a sum over the lanes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.errors import GradientError
from pcbatch.ir.analysis.activity import has_gradient
from pcbatch.ir.types import Type, leaves
from pcbatch.runtime.adjoint.reverse import Reverse
from pcbatch.runtime.adjoint.seeds import by_parameters, seeded
from pcbatch.runtime.adjoint.tangent import is_float
from pcbatch.runtime.adjoint.tape import Sources
from pcbatch.runtime.adjoint.vjp import TapedRun
from pcbatch.runtime.backends.protocol import Array, Backend, Further, PullBack
from pcbatch.runtime.machine.outcome import Finished, Outcome, Run
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.result_packing import argument_arrays, operand_arrays

# -- static sizes ------------------------------------------------------------------------------------------------------


def gradients(
    way: Reverse, arrays: Sequence[Array], upstream: Sequence[Array | None], lanes: Any
) -> list[Array | None]:
    """The gradients by all `arrays`, the leaves of arguments and shared operands: see `Reverse.gradients`.

    NaN where the run has more rows than there is room for.
    """
    backend, segments, replay = way.backend, way.segments, way.replay
    count, given = len(way.layout.inputs), [each for each in upstream if each is not None]
    flows = [each is not None for each in upstream]

    def program(*every: Array) -> list[Array]:
        arguments, shared = every[:count], every[count : len(arrays)]
        remaining = iter(every[len(arrays) :])
        seeds = iter([next(remaining) if each else None for each in flows])
        pool, examples = Pool.of(lanes), backend.constant(0) + lanes
        first = segments.legs.begin(arguments, pool, way.limits.largest_capacity)
        # Programs of their own: that a tape depends on operands, too, is none of the way back's business.
        known = lanes if isinstance(lanes, int) else None
        segment, undo = way.forward.segment(pool), way.undo(known)
        end = segments.unpack(list(segment(*segments.legs.flat(first), *shared, examples)), pool)
        last = end.snapshot
        sound = backend.array(last.outputs["status"], "int32") == 0
        pointers = {name: last.state[way.layout.pointer(name)] for name in way.forward.pointers}
        before = seeded(replay, seeds, pointers, sound, None, segments.legs.capacity(last) + 1, examples)
        totals = {key: replay.nothing(type_, lanes) for key, type_ in replay.totals.items()}
        after = dict(
            zip(
                (*before, *totals),
                undo(*before.values(), *totals.values(), *end.tape.values(), sound, *shared),
                strict=True,
            )
        )
        found = [*by_parameters(replay, after, lanes, None), *(after[key] for key in totals)]
        return [backend.where(end.goes_on, each * 0 + float("nan"), each) for each in found]

    compiled = backend.compile(program, way.jit)
    return way.flow.packed(iter(list(backend.forbid_gradients(compiled)(*arrays, *given))))


# -- runs that are watched ---------------------------------------------------------------------------------------------


Plain = Callable[[Sequence[Any], Sequence[Any], Any], Outcome]
"""Runs a program on the leaves of arguments and shared operands, for so many lanes."""


def run_through(
    backend: Backend,
    plain: Plain,
    reverse: Callable[[], Reverse],
    arguments: Sequence[Any],
    shared: Sequence[Any],
    lanes: Any,
    taped: bool,
) -> Outcome:
    """The outcome of a run through whose values gradients flow.

    Where somebody watches, the run is `taped`, if that gives all that is wanted of it and gradients are not given
    natively; else it is `plain`, and run again when a gradient is asked for.
    """
    way = reverse()
    operands = [*shared, *way.hidden]
    given = [
        *argument_arrays(way.program, backend, arguments, lanes),
        *operand_arrays(way.program, backend, operands),
    ]
    if backend.runs_now() and not backend.is_watched(given):
        return plain(arguments, shared, lanes)
    ends = len(arguments), len(arguments) + len(shared)
    return _through(backend, plain, way, given, ends, lanes, taped).outcome()


def run_watched(
    backend: Backend,
    plain: Plain,
    reverse: Callable[[], Reverse],
    arrays: Sequence[Array],
    lanes: int,
    ready: Run | None,
) -> Finished | None:
    """The same of a run from ordinary code that somebody watches, of more than no lanes; None where nobody does.

    `arrays` are those of arguments and shared operands, of the shapes and dtypes that the program takes. A plain run is
    `ready`, if that is given: its results are NumPy's arrays.
    """
    way, given = reverse(), [*arrays]
    count = len(way.layout.inputs)
    if way.hidden:
        given = [*arrays[:count], *operand_arrays(way.program, backend, [*arrays[count:], *way.hidden])]
    if not backend.is_watched(given):
        return None
    return _through(backend, plain, way, given, (count, len(arrays)), lanes, True, is_planned=True, ready=ready)


def _through(
    backend: Backend,
    plain: Plain,
    way: Reverse,
    given: Sequence[Array],
    ends: tuple[int, int],
    lanes: Any,
    taped: bool,
    is_tangent: bool = False,
    is_planned: bool = False,
    ready: Run | None = None,
) -> Finished:
    """The end of a run on `given` arrays: arguments and shared operands end at `ends`, others follow.

    It `is_tangent` if it is of a tangent program, whose outcome is of no account but for its values. Where it
    `is_planned`, callers want no values if a lane has failed.
    """
    if backend.runs_now():  # all who watch are known; inside a caller's graph there may be others around it
        way = way.planned(sources=_watched(way, given))
    count, end = ends
    is_empty = isinstance(lanes, int) and lanes == 0
    now = taped and not is_empty and not way.is_native(lanes)
    now = now and backend.is_watched(given) and not backend.inside("fixed program")
    ended: list[Finished] = []

    def run(arrays: list[Array]) -> tuple[Sequence[Array], PullBack]:
        known: TapedRun | None = None
        with contextlib.suppress(GradientError):  # which is for those who ask for a gradient
            known = way.run(arrays, lanes) if now else None
        if known is None and ready is not None:
            ended.append(ready(arrays[:end]))
            numbers = ended[-1].values
            values = ended[-1].outcome().values if numbers is None else [*map(backend.adopted, numbers)]
        else:
            outcome = plain(arrays[:count], arrays[count:end], lanes) if known is None else known.outcome
            values = outcome.values
            failed = is_planned and np.any(np.asarray(outcome.status))
            ended.append(Finished(None if failed else values, lambda: outcome))

        def pull_back(upstream: Sequence[Array | None]) -> Sequence[Array | None]:
            check(backend, way.program.name, reserved=way.settings.most is not None)
            if is_empty:
                return way.nothing()
            if backend.inside("fixed program"):
                return gradients(way.fixed, arrays, upstream, lanes)
            return way.pulled_back(None if backend.inside("saved gradient") else known, arrays, upstream, lanes)

        return values, pull_back

    def tangents(arrays: Sequence[Array], directions: Sequence[Any]) -> Sequence[Array | None]:
        return _tangents(way, arrays, directions, count, lanes)

    def run_many(arrays: Sequence[Array], runs: Any) -> list[Array | None]:
        return [*plain(arrays[:count], arrays[count:end], lanes * runs).values]

    def pull_back_many(arrays: Sequence[Array], upstream: Sequence[Array | None], runs: Any) -> list[Array | None]:
        check(backend, way.program.name, reserved=False)
        return way.planned(by_lane=True).pulled_back(None, arrays, upstream, lanes * runs)

    further = Further(tangents, pull_back_many, count, run_many if is_tangent else None)
    values = tuple(backend.differentiable(run, given, way.program.name, further))
    made = ended[-1].outcome
    return Finished(None if ended[-1].values is None else values, lambda: replace(made(), values=values))


def _tangents(
    way: Reverse, arrays: Sequence[Array], directions: Sequence[Any], count: int, lanes: Any
) -> list[Array | None]:
    """The changes of a run's results, by leaf, as its `arrays` change in `directions`; None where none can be.

    `count` of the arrays are arguments. Gradients flow through it in turn.
    """
    backend, program, dual = way.backend, way.program, way.tangent
    refuse_fixed(backend, program.name)
    types = [leaf for name in program.parameters for leaf in leaves(program.types[name])]
    types += [leaf for name in program.shared for leaf in leaves(program.shared_types[name])]
    results = [leaf for name in program.results for leaf in leaves(program.types[name])]
    if isinstance(lanes, int) and lanes == 0:
        return [backend.zeros(0, leaf) if is_float(leaf) else None for leaf in results]
    given = [each for each, type_ in zip(directions, types, strict=True) if is_float(type_)]
    moved = sum(map(is_float, types[:count]))
    every = [*arrays[:count], *given[:moved], *arrays[count:], *given[moved:]]

    def plain(arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        return dual.run([*arguments, *shared], lanes).outcome

    found = iter(_through(backend, plain, dual, every, (count + moved, len(every)), lanes, True, True).values or ())
    for _ in results:
        next(found)
    return [next(found) if is_float(leaf) else None for leaf in results]


def refuse_fixed(backend: Backend, name: str) -> None:
    """Refuse second derivatives inside a caller's compiled program: GradientError PCB604."""
    if backend.inside("fixed program"):
        raise GradientError(
            f"PCB604: a gradient of a gradient through the batched call of {name!r} was asked for in a function "
            f"compiled with jit_compile=True\n  help: leave jit_compile=True away: what {name} does is compiled by "
            f"itself; or keep the second derivative from flowing there with tf.stop_gradient(...)"
        )


def _watched(way: Reverse, arrays: Sequence[Array]) -> Sources:
    """The parameters and shared operands of which a leaf is watched."""
    remaining = iter(arrays)

    def names(types: Mapping[str, Type], every: Sequence[str]) -> frozenset[str]:
        known = [(name, type_, next(remaining)) for name in every for type_ in leaves(types[name])]
        return frozenset(n for n, type_, leaf in known if has_gradient(type_) and way.backend.is_watched([leaf]))

    program = way.program
    return names(program.types, program.parameters), names(program.shared_types, program.shared)


def check(backend: Backend, name: str, *, reserved: bool = False) -> None:
    """Refuse where there is no way back: GradientError PCB607 unless rows are `reserved`."""
    if backend.inside("fixed program") and not reserved:
        raise GradientError(
            f"PCB607: a gradient through the batched call of {name!r} was asked for in a function compiled with "
            f"jit_compile=True, where nobody knows beforehand how long the record of a run is\n  help: leave "
            f"jit_compile=True away: what {name} does is compiled by itself; in a Keras layer that calls it write "
            f"self.supports_jit = False; or say how long it may be: {name}.options(max_tape=..)"
        )


# -- gradients by example ----------------------------------------------------------------------------------------------


def gradients_by_example(
    way: Reverse, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any, wanted: Collection[int]
) -> dict[int, Array | None]:
    """The gradient of the sum of each lane's float results, `[lanes, ...]`, by those leaves of `shared` at `wanted`.

    None where none flows, zeros for lanes that fail. Nobody takes a gradient through it: GradientError PCB604.
    """
    backend, program = way.backend, way.program
    names = [name for name in program.shared for _ in leaves(program.shared_types[name])]
    way = way.planned(sources=(frozenset(), frozenset(names[place] for place in wanted)), by_lane=True)
    flat = [*argument_arrays(program, backend, arguments, lanes), *operand_arrays(program, backend, shared)]
    found: dict[int, Array | None] = {}

    error = GradientError(
        f"PCB604: a gradient of the gradients of {program.name!r} was asked for\n  help: only first derivatives go "
        f"through a batched call; keep the second from flowing there with tf.stop_gradient(...)"
    )

    def refuse(_: Any) -> Any:
        raise error

    def run(arrays: list[Array]) -> tuple[Sequence[Array], Any]:
        check(backend, program.name)
        if isinstance(lanes, int) and lanes == 0:
            every = way.nothing()
        else:
            types = [leaf for name in program.results for leaf in way.layout.leaves(name)]
            seeds = [backend.zeros(lanes, leaf) + 1 if has_gradient(leaf) else None for leaf in types]
            every = way.pulled_back(None, arrays, seeds, lanes)
        of_shared = every[len(every) - len(shared) :]
        found.update((place, of_shared[place]) for place in wanted)
        return [each for each in found.values() if each is not None], refuse

    values = iter(backend.differentiable(run, flat, program.name))
    return {place: None if each is None else next(values) for place, each in found.items()}
