"""Where gradients come into a run, at its end, and where they leave it, at its beginning: results and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pcbatch.runtime.adjoint.replay import Replay
from pcbatch.runtime.backends.protocol import Array
from pcbatch.runtime.machine.held import NUMBER


def seeded(
    replay: Replay, seeds: Iterator[Array | None], pointers: Mapping[str, Array], sound: Array, lanes: Any, entries: Any
) -> dict[str, Array]:
    """The gradients of lanes at the end of a run: those by the results that `sound` lanes have given, by key.

    `seeds` are of the leaves of the results; `pointers` say where those lie that lie in stacks alone, which have so
    many `entries`.
    """
    tapes, backend, layout = replay.tapes, replay.backend, replay.tapes.layout
    found = {
        key: backend.zeros(lanes, type_, entries if stacked else None)
        for key, (type_, stacked) in replay.gradients.items()
    }
    for name in replay.program.results:
        for place, leaf in enumerate(tapes.floats(name)):
            seed = next(seeds)
            if seed is None or leaf is None or name not in tapes.activity.variables:
                continue
            seed = backend.cast(seed, leaf.dtype)
            if layout.storage(name) == "stack":
                key = layout.stacks(name)[place]
                known = backend.load(found[key], [pointers[name]])
                found[key] = backend.masked_store(found[key], [pointers[name]], sound, known + seed)
            else:
                key = layout.tops(name)[place]
                found[key] = backend.where(sound, found[key] + seed, found[key])
    return found


def by_parameters(replay: Replay, gradients: Mapping[str, Array], lanes: Any) -> list[Array]:
    """The gradients by the leaves of the active parameters, of those of lanes at the beginning of a run."""
    tapes, layout, backend = replay.tapes, replay.tapes.layout, replay.backend
    found = []
    nothing = backend.zeros(lanes, NUMBER.value)
    for name in replay.program.parameters:
        if name not in tapes.activity.variables:
            continue
        is_stack = layout.storage(name) == "stack"
        keys = layout.stacks(name) if is_stack else layout.tops(name)
        for key, leaf in zip(keys, tapes.floats(name), strict=True):
            if leaf is not None:
                found.append(backend.load(gradients[key], [nothing]) if is_stack else gradients[key])
    return found
