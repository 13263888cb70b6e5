"""Gradients inside a caller's compiled program, where all sizes are fixed: one segment, whose tapes are to be enough.

Nothing grows there, nothing is put aside, and nothing can raise. So the caller says how many rows of a block a run may
have, and the run is recorded as one segment with as much room. A run that has more is not recorded to its end: then all
gradients are NaN, never wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcbatch.runtime.adjoint.reverse import Reverse
from pcbatch.runtime.adjoint.seeds import by_parameters, seeded
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.pool import Pool


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
