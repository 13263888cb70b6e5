"""Saved samples as samples again: the chains' state, the settings and the density, ready to go on.

A file with a right checksum may still be anybody's. So the arrays must have the shapes and dtypes that the header's
settings and parameters give, before anything is computed with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import saving
from pcbatch.nuts.adaptation.adaptation import restarted
from pcbatch.nuts.adaptation.pooling import Pool
from pcbatch.nuts.parameters.foreign import Foreign
from pcbatch.nuts.parameters.models import Joint
from pcbatch.nuts.parameters.parameters import by_name
from pcbatch.nuts.results.draws import GROUPS, Cost, Origin
from pcbatch.nuts.results.samples import Samples
from pcbatch.nuts.results.savefile import Saved, named_arrays
from pcbatch.nuts.running.chain import fresh_state
from pcbatch.nuts.running.density_programs import density_of_vector
from pcbatch.nuts.running.sampling_run import RunState, SamplingRun, row_bytes
from pcbatch.nuts.settings import Settings
from pcbatch.runtime.schedules import schedule_named

SIZE = 3
"""The size of positions in the structures below: it stands for that of the saved ones."""
LARGEST_CHUNK = 2**34
"""Bytes, far beyond what is of use."""
Shapes = list[tuple[str, np.dtype[Any], tuple[int, ...]]]


def samples_of(saved: Saved, density: Any, bijectors: Mapping[str, Any] | Joint | None = None) -> Samples:
    """The samples that were saved, of the density that they were drawn from.

    UsageError PCB590 where a file says what no run says, PCB592 where its arrays are not those of its settings.
    """
    header = saved.header
    with saving.interpreting(saved.path):
        settings = _settings(header["settings"])
        transform = saved.transform(settings.dtype, bijectors)
        keys = saved.arrays["keys"]
        if (keys.dtype, keys.shape) != (np.dtype(np.uint32), (settings.chains, 2)):
            raise saved.refusal("PCB592", f"the keys of {settings.chains} chains are {keys.dtype}{list(keys.shape)}")
        state, pool = _structures(settings)
        size = transform.size
        origin = Origin(
            density=density,
            data=saved.data(),
            transform=transform,
            keys=keys,
            state=_filled(saved, state, "state", (settings.chains, size)),
            done=header["done"],
            pool=_filled(saved, pool, "pool", (settings.chains, size)) if saved.group("pool") else None,
        )
        _check_draws(saved, settings, origin)
        cost, failed = Cost(*header["cost"]), {int(chain): text for chain, text in header["failed"].items()}
        if not all(0 <= chain < settings.chains for chain in failed):
            raise ValueError(f"chains failed that are none: {list(failed)}")
    return Samples(
        **{group: saved.group(group) for group in GROUPS},
        cost=cost,
        stats=None,
        settings=settings,
        failed=failed,
        interrupted=False,
        origin=origin,
    )


def _settings(written: Mapping[str, Any]) -> Settings:
    """The settings; any exception where they are none."""
    found = Settings(**written)
    schedule_named(found.schedule)
    if found.as_json() != {"strategy": "pc", "superchains": None, "end_weight": 1.0, **written} or not (
        type(found.jit) is type(found.save_warmup) is bool
    ):
        raise ValueError("the settings are none")
    return found


def _structures(settings: Settings) -> tuple[Any, Any]:
    """The state of a chain, and what all know together, for positions of `SIZE` numbers; which are of no account."""
    inverse = np.eye(SIZE) if settings.metric == "dense" else np.ones(SIZE)
    state = fresh_state(np.zeros((1, SIZE), settings.dtype), inverse)
    window = tf.nest.map_structure(lambda array: np.asarray(array[0], np.float64), state.window)
    averaging = tf.nest.map_structure(np.asarray, restarted(tf.constant(1.0, tf.float64)))
    return state, Pool(averaging, window, np.ones(1), np.zeros(1))


def _filled(saved: Saved, structure: Any, group: str, sizes: tuple[int, int]) -> Any:
    """A structure like this one, with the arrays of the group; PCB592 where they are not for so many chains and `SIZE`.

    Of its axes those of length 1 are as long as there are chains, those of length `SIZE` as the positions are.
    """
    arrays, lengths = saved.group(group), {1: sizes[0], SIZE: sizes[1]}
    wanted: Shapes = [
        (name, part.dtype, tuple(lengths.get(axis, axis) for axis in part.shape))
        for name, part in named_arrays(structure)
    ]
    _check(saved, group, arrays, wanted)
    return tf.nest.pack_sequence_as(structure, list(arrays.values()))


def _check_draws(saved: Saved, settings: Settings, origin: Origin) -> None:
    """PCB592 where draws and statistics are not those of so many trajectories."""
    chains, size, done = settings.chains, origin.transform.size, origin.done
    if done > settings.trajectories:
        raise saved.refusal("PCB592", f"{done} trajectories are done of {settings.trajectories}")
    if settings.chunk * row_bytes(chains, size) > LARGEST_CHUNK:
        raise saved.refusal("PCB592", f"a chunk of {settings.chunk} draws has no room anywhere")
    warm = min(done, settings.warmup)
    rows = {"": (done - warm) // settings.thin, "warmup_": warm}
    for group, nothing in SamplingRun(settings, RunState(origin)).nothing().items():
        length = rows["warmup_" if group.startswith("warmup_") else ""]
        wanted: Shapes = [
            (name, part.dtype, (chains, length, *part.shape[2:])) for name, part in sorted(nothing.items())
        ]
        _check(saved, group, dict(sorted(saved.group(group).items())), wanted)
    _check_values(saved, origin)


def _check_values(saved: Saved, origin: Origin) -> None:
    """PCB592 where bijectors do not lead from where the chains stand to the last draws, or a model is another one."""
    transform = origin.transform
    parts = [saved.group(group) for group in ("posterior", "warmup_posterior")]
    posterior = next((part for part in parts if part and next(iter(part.values())).shape[1]), None)
    if posterior is None or not any(isinstance(each, Foreign) for each in transform.bijectors):
        return
    found = by_name(transform.layout, transform.values(np.asarray(origin.state.point.q)))
    for name, values in found.items():
        if not np.allclose(values, posterior[name][:, -1], rtol=1e-3, atol=1e-6, equal_nan=True):
            raise saved.refusal("PCB592", f"the bijector of {name!r} gives other values than their draws")
    chains = [chain for chain in range(len(origin.keys)) if str(chain) not in saved.header["failed"]][:1]
    if transform.whole and chains:  # of a model the digest has the class alone
        point, density = origin.state.point, density_of_vector(origin.density, transform, False)
        if not np.allclose(density(tf.constant(point.q[chains[0]]), None), point.lp[chains[0]], rtol=1e-3, atol=1e-3):
            raise saved.refusal("PCB592", "the model is another one, or its data are: its density is not what it was")


def _check(saved: Saved, group: str, arrays: Mapping[str, np.ndarray], wanted: Shapes) -> None:
    if list(arrays) != [name for name, _, _ in wanted]:
        names = ", ".join(name for name, _, _ in wanted)
        raise saved.refusal("PCB592", f"their {group} has {', '.join(arrays)} where this has {names}")
    for (name, dtype, shape), array in zip(wanted, arrays.values(), strict=True):
        if (array.dtype, array.shape) != (dtype, shape):
            raise saved.refusal(
                "PCB592", f"the array {group}/{name} is {array.dtype}{list(array.shape)}, not {dtype}{list(shape)}"
            )
