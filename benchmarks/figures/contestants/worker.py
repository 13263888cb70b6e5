"""A contestant's side of the conversation: jobs come in as lines of JSON, figures go out as lines of JSON.

    {"do": "start"}             -> {}, once everything is imported
    {"do": "prepare", "target": .., "chains": .., "trajectories": .., "leapfrogs": .., "variant": ..}
                                -> {"seconds": first call: trace, compile, run}
    {"do": "run", "seed": ..}   -> {"seconds": .., "gradients": .., "rows": .., "moments": ..}

Seconds are of one call, from starting points to results in the host's memory, unless the contestant gives its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks import conversation
from benchmarks.figures.agreement import Moments
from benchmarks.figures.paper import Sizes
from benchmarks.nuts.targets import TARGETS


@dataclass(frozen=True)
class Job:
    """What a contestant is to be made ready for; `variant` is one of its own ways to run."""

    sizes: Sizes
    chains: int
    variant: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one call did.

    `gradients` are the leapfrog steps that the chains needed, by the sampler's own statistics; `rows` the gradients
    that were computed, those of chains that had nothing to do included, None where nobody counts. `draws` are
    `[chains, n, size]`, far enough apart to be as good as independent: the last of each chain, if trajectories are few.
    `seconds` are what the contestant says that it took, where that leaves out what is not its own.
    """

    gradients: int
    rows: int | None
    draws: np.ndarray
    seconds: float | None = None


Run = Callable[[int], Outcome]
"""`seed -> Outcome`"""


def serve(prepare: Callable[[Job], Run]) -> None:
    """Answer until the input ends."""
    job: Job | None = None
    run: Run | None = None

    def answer(command: dict[str, Any]) -> dict[str, Any]:
        nonlocal job, run
        if command["do"] == "start":
            return {}
        if command["do"] == "prepare":
            sizes = Sizes(TARGETS[command["target"]], command["trajectories"], command["leapfrogs"])
            job = Job(sizes, command["chains"], command["variant"])
            job.sizes.target.starts(job.chains)  # finding a mode is not the sampler's work
            started = time.perf_counter()
            run = prepare(job)
            run(0)
            return {"seconds": time.perf_counter() - started}
        assert job is not None, "nothing is prepared"
        assert run is not None, "nothing is prepared"
        return timed(job, run, command["seed"])

    conversation.serve(answer)


def timed(job: Job, run: Run, seed: int) -> dict[str, Any]:
    """The reply to "run"."""
    started = time.perf_counter()
    outcome = run(seed)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds if outcome.seconds is None else outcome.seconds,
        "gradients": int(outcome.gradients),
        "rows": outcome.rows,
        "moments": asdict(Moments.of(outcome.draws, job.sizes.target.starts(job.chains))),
    }
