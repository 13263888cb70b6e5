"""A contestant's side of the conversation: jobs come in as lines of JSON, figures go out as lines of JSON.

    {"do": "start"}             -> {}, once everything is imported
    {"do": "prepare", "target": .., "chains": .., "trajectories": .., "variant": ..}
                                -> {"seconds": first call: trace, compile, run}
    {"do": "run", "seed": .., "draws": file or None}
                                -> {"wall": .., "cpu": .., "leapfrogs": total of all chains, "draws": file or None}
    {"do": "count", "seed": ..} -> {"leapfrogs": .., "rows": .., "lockstep": .., "at_end": ..}

A failure gives {"error": one line}. Wall and CPU seconds (all threads of the process) are of one warm call, from
starting points to draws in the host's memory; these are written to the file afterwards, for all are judged by the
same estimates of their effective sizes, which are not the contestant's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import conversation
from benchmarks.nuts.targets import TARGETS, Target


@dataclass(frozen=True)
class Job:
    """What a contestant is to be made ready for; `variant` is one of its own ways to run."""

    target: Target
    chains: int
    trajectories: int
    variant: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one run did.

    `leapfrogs` are those that the chains needed by the sampler's own statistics, of each trajectory
    (`[chains, trajectories]`) or, where it does not say, of each chain (`[chains]`). `rows` are the gradients that were
    computed, those of chains that had nothing to do included; None of a run that was not counted. `draws` are the ends
    of the trajectories, `[chains, trajectories, size]`; None where it does not give them.
    """

    leapfrogs: np.ndarray
    rows: int | None
    draws: np.ndarray | None = None


Run = Callable[[int, bool], Outcome]
"""`(seed, counted) -> Outcome`"""


def serve(prepare: Callable[[Job], Run]) -> None:
    """Answer until the input ends."""
    run: Run | None = None

    def answer(command: dict[str, Any]) -> dict[str, Any]:
        nonlocal run
        if command["do"] == "start":
            return {}
        if command["do"] == "prepare":
            run, reply = _prepared(prepare, command)
            return reply
        assert run is not None, "nothing is prepared"
        return (
            _timed(run, command["seed"], command["draws"]) if command["do"] == "run" else _counted(run, command["seed"])
        )

    conversation.serve(answer)


def _prepared(prepare: Callable[[Job], Run], command: dict[str, Any]) -> tuple[Run, dict[str, float]]:
    target = TARGETS[command["target"]]
    job = Job(target, command["chains"], command["trajectories"], command["variant"])
    target.starts(job.chains)  # finding a mode is not the sampler's work
    started = time.perf_counter()
    run = prepare(job)
    run(0, False)
    return run, {"seconds": time.perf_counter() - started}


def _timed(run: Run, seed: int, file: str | None) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = run(seed, False)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    written = file if outcome.draws is not None else None
    if written:
        np.save(written, outcome.draws)
    return {"wall": wall, "cpu": cpu, "leapfrogs": int(outcome.leapfrogs.sum()), "draws": written}


def _counted(run: Run, seed: int) -> dict[str, Any]:
    outcome = run(seed, True)
    leapfrogs = outcome.leapfrogs
    chains, total = len(leapfrogs), int(leapfrogs.sum())
    by_chain = leapfrogs.reshape(chains, -1).sum(axis=1)
    return {
        "leapfrogs": total,
        "rows": outcome.rows,
        "lockstep": total / (chains * int(leapfrogs.max(axis=0).sum())) if leapfrogs.ndim == 2 else None,
        "at_end": total / (chains * int(by_chain.max())),
    }
