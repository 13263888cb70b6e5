"""A contestant's side of the conversation: jobs come in as lines of JSON, seconds go out as lines of JSON.

    {"do": "start"}  -> {}, once everything is imported
    {"do": "prepare", "task": .., "lanes": .., "variant": ..}
                     -> {"seconds": first call: trace, compile, run; "result": a file with what it gave}
    {"do": "run"}    -> {"seconds": of one warm call}

Seconds go from arguments that are where the contestant takes them to results in the host's memory.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import conversation
from benchmarks.against.inputs import batch

SHORT = 2e-3
"""Seconds. A shorter call is repeated for so long, and the shortest counts: others have run since, in these caches."""

CPU_CLOCK = "PCBATCH_CPU_CLOCK"
"""An environment variable: with it seconds are those of all threads of the process, for machines that others use."""
CLOCK = time.process_time if os.environ.get(CPU_CLOCK) else time.perf_counter

Call = Callable[[], np.ndarray]


@dataclass(frozen=True)
class Job:
    """What a contestant is to be made ready for; `variant` is one of its own ways to run."""

    task: str
    lanes: int
    variant: str = ""

    def arguments(self) -> tuple[np.ndarray, ...]:
        """The batch, `[lanes, ...]`."""
        return batch(self.task, self.lanes)


def serve(prepare: Callable[[Job], Call]) -> None:
    """Answer until the input ends; `prepare` gives the call that a job is about."""
    call: Call | None = None
    folder = tempfile.TemporaryDirectory()

    def answer(command: dict[str, Any]) -> dict[str, Any]:
        nonlocal call
        match command["do"]:
            case "start":
                return {}
            case "prepare":
                job = Job(command["task"], command["lanes"], command["variant"])
                job.arguments()  # making them is nobody's work
                started = CLOCK()
                call = prepare(job)
                result = call()
                seconds = CLOCK() - started
                path = Path(folder.name) / "result.npy"
                np.save(path, result)
                return {"seconds": seconds, "result": str(path)}
            case _:
                assert call is not None, "nothing is prepared"
                return {"seconds": timed(call)}

    with folder:
        conversation.serve(answer)


def timed(call: Call) -> float:
    """Seconds of a warm call; the shortest of several where it is short."""
    best, spent = math.inf, 0.0
    while spent < SHORT:
        started = CLOCK()
        call()
        seconds = CLOCK() - started
        best, spent = min(best, seconds), spent + seconds
    return best
