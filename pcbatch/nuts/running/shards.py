"""Chains on the workers of somebody else's executor, in parts, each of which is a run of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.function.cache import Stats
from pcbatch.function.sharding import gathered, workers_of
from pcbatch.nuts.results.draws import GROUPS, Cost, Origin
from pcbatch.nuts.results.samples import Samples
from pcbatch.nuts.running.chain import LANES
from pcbatch.nuts.running.sampling_run import RunState, SamplingRun
from pcbatch.nuts.running.starts import Starts
from pcbatch.nuts.settings import Settings


def sampled(settings: Settings, origin: Origin, starts: Starts, executor: Any, shows_progress: bool) -> Samples:
    """The samples of all chains, whose parts the executor's workers run.

    Raises UsageError PCB551 where chains adapt to each other, PCB557 and PCB584 as `sample` and `pcbatch.shard`.
    """
    if settings.adapt == "pooled":
        raise UsageError(
            "PCB551",
            "chains that adapt to each other's draws run in one process; leave adapt='pooled' away, or executor=",
        )
    bounds = bounds_of(settings.chains, workers_of(executor))
    tasks = [(origin.density, *_cut(settings, origin, starts, slice(*each))) for each in bounds]
    with _bar(settings.chains, shows_progress) as watch:
        found = gathered(executor, _part, tasks, lambda number: watch(bounds[number][1] - bounds[number][0]))
    return _joined(settings, origin, found, bounds)


def bounds_of(chains: int, workers: int) -> list[tuple[int, int]]:
    """The first chain of each part, and the first one behind it: whole groups of `LANES`, to which chains are padded.

    >>> bounds_of(20, 3)
    [(0, 4), (4, 12), (12, 20)]
    """
    groups = -(-chains // LANES)
    count = max(1, min(workers, groups))
    ends = [min(chains, LANES * (groups * number // count)) for number in range(count + 1)]
    return [*pairwise(ends)]


def _cut(settings: Settings, origin: Origin, starts: Starts, chains: slice) -> tuple[Settings, Origin, Starts]:
    """The same of some chains, without the density."""
    own = replace(settings, chains=chains.stop - chains.start, superchains=None)
    state = tf.nest.map_structure(lambda array: np.asarray(array)[chains], origin.state)
    data = tf.nest.map_structure(lambda leaf: leaf.numpy() if hasattr(leaf, "numpy") else leaf, origin.data)
    point = starts.point[chains] if starts.point.ndim == 2 else starts.point
    return (
        own,
        replace(origin, density=None, keys=origin.keys[chains], state=state, data=data),
        Starts(own, point, starts.keys[chains]),
    )


def _part(density: Any, settings: Settings, origin: Origin, starts: Starts) -> dict[str, Any]:
    """Run some chains, in a worker; a density that was there before compiles nothing."""
    samples = SamplingRun(settings, RunState(replace(origin, density=density)), starts).run(False)
    return {
        "groups": {group: getattr(samples, group) for group in GROUPS},
        "cost": samples.cost,
        "failed": samples.failed,
        "interrupted": samples.interrupted,
        "state": tf.nest.map_structure(np.asarray, samples.origin.state),
        "done": samples.origin.done,
    }


def _joined(
    settings: Settings, origin: Origin, parts: Sequence[Mapping[str, Any]], bounds: Sequence[tuple[int, int]]
) -> Samples:
    """The samples of all chains."""
    groups = {
        group: {
            name: np.concatenate([part["groups"][group][name] for part in parts]) for name in parts[0]["groups"][group]
        }
        for group in GROUPS
    }
    failed = {
        first + chain: text
        for (first, _), part in zip(bounds, parts, strict=True)
        for chain, text in part["failed"].items()
    }
    state = tf.nest.map_structure(lambda *arrays: np.concatenate(arrays), *(part["state"] for part in parts))
    return Samples(
        **groups,
        cost=sum((part["cost"] for part in parts), Cost(0, 0)),
        stats=Stats(0, 0, 0.0, 0.0),
        settings=settings,
        failed=failed,
        interrupted=any(part["interrupted"] for part in parts),
        origin=replace(origin, state=state, done=parts[0]["done"]),
    )


@contextmanager
def _bar(chains: int, shown: bool) -> Iterator[Any]:
    """A bar of chains whose parts have ended; nothing unless `shown`."""
    if not shown:
        yield lambda count: None
        return
    from tqdm.auto import tqdm  # only now: it looks for a notebook

    with tqdm(total=chains, unit="chain") as bar:
        yield bar.update
