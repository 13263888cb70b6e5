"""A contestant's side of the conversation: one run after another, from starting points to draws.

    {"do": "start"} -> {}, once everything is imported
    {"do": "run", "seed": .., "inputs": file, "draws": file, "job": {..}}
                    -> {"wall": .., "cpu": ..}; the draws are in the file, `[chains, draws, numbers]`

The first run of a job traces and compiles; all that is not an import is in its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


Run = Callable[[int, np.ndarray], np.ndarray]
"""`(seed, starts [chains, numbers]) -> draws [chains, draws, numbers]`, parameters as the model has them."""
Prepare = Callable[[Job, dict[str, np.ndarray]], Run]
"""Of a job and its data, in float32."""


def serve(prepare: Prepare) -> None:
    """Answer until the input ends."""
    runs: dict[Job, Run] = {}

    def answer(command: dict[str, Any]) -> dict[str, Any]:
        if command["do"] == "start":
            return {}
        job = Job(**command["job"])
        starts, *data = (array for _, array in sorted(np.load(command["inputs"]).items()))
        wall, cpu = time.perf_counter(), time.process_time()
        if job not in runs:
            runs[job] = prepare(job, dict(zip(("x", "y"), data, strict=True)))
        draws = runs[job](command["seed"], starts)
        reply = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        np.save(command["draws"], draws)
        return reply

    conversation.serve(answer)
