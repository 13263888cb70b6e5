"""pcbatch in lockstep; the variant says what its blocks become.

"apart" is each by itself, "predicated" with cheap arms under predicates, "merged" with the blocks of loops merged where
that pays, "both" as it runs; "all merged" with those of all loops merged, whatever they cost.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch
from benchmarks.against.contestants.worker import Call, Job, serve
from benchmarks.against.texts import compiled_by
from pcbatch.function import executing
from pcbatch.optimize.machine.merging import MERGING, Merging
from pcbatch.optimize.machine.predication import PREDICATION, Predication
from pcbatch.runtime.machine.machine import Machine

WAYS: dict[str, dict[str, Any]] = {
    "apart": {"merging": None, "predication": None},
    "predicated": {"merging": None},
    "merged": {"predication": None},
    "both": {},
    "all merged": {"merging": Merging(always=True)},
    "all predicated": {"merging": None, "predication": Predication(always=True)},
}


def choose(way: str) -> None:
    """Machines that are made from now on run so."""
    given = {"merging": MERGING, "predication": PREDICATION, **WAYS[way]}
    vars(executing)["Machine"] = functools.partial(Machine, **given)


@functools.cache
def _tasks() -> dict[str, Any]:
    return compiled_by(pcbatch.autobatch)


def prepare(job: Job) -> Call:
    """A call of the batched function."""
    choose(job.variant)
    function = _tasks()[job.task].options(form="lockstep")
    given = tuple(map(tf.constant, job.arguments()))
    return lambda: np.asarray(function(*given))


if __name__ == "__main__":
    serve(prepare)
