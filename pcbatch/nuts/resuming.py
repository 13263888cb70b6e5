"""Saved samples as samples again: the chains' state, the settings and the density, ready to go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.nuts.adaptation import restarted
from pcbatch.nuts.chain import fresh_state
from pcbatch.nuts.pooling import Pool
from pcbatch.nuts.samples import Cost, Samples
from pcbatch.nuts.savefile import GROUPS, Origin, Saved, named_arrays
from pcbatch.nuts.settings import Settings

STATE = fresh_state(np.zeros((1, 1)), np.ones(1))
POOL = Pool(restarted(tf.constant(1.0)), STATE.window, np.ones(1), np.zeros(1))
"""Structures; the numbers in them are of no account."""


def samples_of(saved: Saved, density: Any) -> Samples:
    """What was saved, of the density that it was drawn from; PCB592 where the chains' state is another one's."""
    header = saved.header
    origin = Origin(
        density=density,
        data=saved.data(),
        transform=saved.transform(),
        keys=saved.arrays["keys"],
        state=_filled(saved, STATE, saved.group("state")),
        done=header["done"],
        pool=_filled(saved, POOL, saved.group("pool")) if saved.group("pool") else None,
    )
    return Samples(
        **{group: saved.group(group) for group in GROUPS},
        cost=Cost(*header["cost"]),
        stats=None,
        settings=Settings(**header["settings"]),
        failed={int(chain): message for chain, message in header["failed"].items()},
        interrupted=False,
        origin=origin,
    )


def _filled(saved: Saved, structure: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """A structure like this one, with these arrays."""
    names = [name for name, _ in named_arrays(structure)]
    if names != list(arrays):
        raise saved.refusal("PCB592", f"they hold {', '.join(arrays)} where this has {', '.join(names)}")
    return tf.nest.pack_sequence_as(structure, list(arrays.values()))
