"""A contestant's side of the conversation: one run after another, from starting points to draws.

    {"do": "start"} -> {}, once everything is imported
    {"do": "run", "seed": .., "inputs": file, "draws": file, "job": {..}}
                    -> {"wall": .., "cpu": ..}; the draws are in the file, `[chains, draws, numbers]`; of contestants
                       that count them {"gradients": .., "warmup": ..}, too

The first run of a job traces and compiles; all that is not an import is in its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks import conversation
from benchmarks.nuts.end_to_end.posteriors import POSTERIORS, Posterior


@dataclass(frozen=True)
class Job:
    """What is to be sampled, how long, and one of the contestant's ways to do it."""

    posterior: str
    chains: int
    warmup: int
    draws: int
    variant: str

    @property
    def model(self) -> Posterior:
        """The posterior itself."""
        return POSTERIORS[self.posterior]


class Counts(NamedTuple):
    """Gradients of all chains: those of the draws, and those of the warm-up before."""

    gradients: int
    warmup: int


Run = Callable[[int, np.ndarray], "np.ndarray | tuple[np.ndarray, Counts]"]
"""`(seed, starts [chains, numbers]) -> draws [chains, draws, numbers]`, parameters as the model has them."""
Prepare = Callable[[Job, dict[str, np.ndarray]], Run]
"""Of a job and its data, in the dtype to compute in."""


def serve(prepare: Prepare) -> None:
    """Answer until the input ends."""
    runs: dict[Job, Run] = {}

    def answer(command: dict[str, Any]) -> dict[str, Any]:
        if command["do"] == "start":
            return {}
        job = Job(**command["job"])
        data = dict(np.load(command["inputs"]))
        starts = data.pop("starts")
        wall, cpu = time.perf_counter(), time.process_time()
        if job not in runs:
            runs[job] = prepare(job, data)
        found = runs[job](command["seed"], starts)
        reply = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        draws, counts = found if isinstance(found, tuple) else (found, None)
        np.save(command["draws"], draws)
        reply |= counts._asdict() if counts else {}
        return reply

    conversation.serve(answer)
