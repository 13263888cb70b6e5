"""A contestant's side of the conversation: jobs come in as lines of JSON, CPU seconds go out as lines of JSON.

    {"do": "start", "variant": ..}  -> {}, once everything is imported
    {"do": "prepare", "network": .., "examples": ..}
                  -> {"seconds": first call: trace, compile, run; "result": a file; "launches": of each cell, if known}
    {"do": "run"} -> {"seconds": CPU seconds of one warm call}

A call goes from arrays of trees in the host's memory to results there: whoever builds graphs or schedules of them
builds them anew. Python 3.8 has to read this file.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import numpy as np

from benchmarks import conversation
from benchmarks.trees.networks import NETWORKS, Arrays, Network

SHORT = 0.1
"""CPU seconds. A shorter call is repeated for so long, and the shortest counts."""

Call = Callable[[], np.ndarray]


@dataclass(frozen=True)
class Job:
    """The network, its weights and the batch that a contestant is to be made ready for."""

    network: Network
    weights: Arrays
    batch: Arrays


@dataclass(frozen=True)
class Ready:
    """A call, and what is known of how it ran: launches and rows of expensive code, by name."""

    call: Call
    counts: Callable[[], dict[str, Any]] = dict


def serve(prepare: Callable[[Job], Ready], start: Callable[[str], None] | None = None) -> None:
    """Answer until the input ends; `prepare` gives the call that a job is about, `start` hears of the variant."""
    ready: Ready | None = None
    folder = tempfile.TemporaryDirectory()

    def answer(command: dict[str, Any]) -> dict[str, Any]:
        nonlocal ready
        if command["do"] == "start":
            if start is not None:
                start(command["variant"])
            return {}
        if command["do"] == "prepare":
            network = NETWORKS[command["network"]]
            job = Job(network, network.weights(), network.batch(command["examples"], command["seed"]))
            started = time.perf_counter()
            ready = prepare(job)
            result = ready.call()
            seconds = time.perf_counter() - started
            path = Path(folder.name) / "result.npy"
            np.save(path, result)
            return {"seconds": seconds, "result": str(path), "counts": ready.counts()}
        assert ready is not None, "nothing is prepared"
        return {"seconds": timed(ready.call)}

    with folder:
        conversation.serve(answer)


def timed(call: Call) -> float:
    """CPU seconds of a warm call of the process, the least of several where it is short; on several cores seconds."""
    clock = time.process_time if os.environ.get("BENCHMARK_CORES", "1") == "1" else time.perf_counter
    best, spent = math.inf, 0.0
    while spent < SHORT:
        started = clock()
        call()
        seconds = clock() - started
        best, spent = min(best, seconds), spent + seconds
    return best
