"""A contestant's side of the conversation: jobs come in as lines of JSON, figures go out as lines of JSON.

    {"do": "start"}   -> {}, once everything is imported
    {"do": "prepare", "task": .., "lanes": .., "variant": ..}
                      -> {"seconds": first call: trace, compile, run; "result": a file with what it gave}
    {"do": "run"}     -> {"seconds": of one warm call, "cpu": seconds of all cores that it took}
    {"do": "memory"}  -> {"bytes": by which the process grows while a warm call runs, or None where nobody knows}

Seconds go from arguments that are where the contestant takes them to results in the host's memory.
"""

from __future__ import annotations

import ctypes
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
"""Seconds. A shorter call is repeated until that many have gone, and counts with its mean: clocks take time to read."""
MORE = 4
"""Times as many calls as before, while that is too short. The last round counts, in whose caches only this ran."""
PROCESS = Path("/proc/self")
"""Where Linux says how much memory a process has."""

Call = Callable[[], np.ndarray]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Job:
    """What a contestant is to be made ready for; `variant` is one of its own ways to run."""

    task: str
    lanes: int
    variant: str = ""

    def arguments(self) -> tuple[np.ndarray, ...]:
        """The batch, `[lanes, ...]`."""
        return batch(self.task, self.lanes)


def serve(prepare: Callable[[Job], Call], cpu: Clock = time.process_time) -> None:
    """Answer until the input ends; `prepare` gives the call that a job is about.

    `cpu` is the clock of all threads that work for it, those of this process by default.
    """
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
                started = time.perf_counter()
                call = prepare(job)
                result = call()
                seconds = time.perf_counter() - started
                path = Path(folder.name) / "result.npy"
                np.save(path, result)
                return {"seconds": seconds, "result": str(path)}
            case what:
                assert call is not None, "nothing is prepared"
                return timed(call, cpu) if what == "run" else {"bytes": growth(call)}

    with folder:
        conversation.serve(answer)


def timed(call: Call, cpu: Clock = time.process_time) -> dict[str, float]:
    """Seconds of a warm call by both clocks; the mean of several where it is short."""
    count = 1
    while True:
        began, started = cpu(), time.perf_counter()
        for _ in range(count):
            call()
        seconds, used = time.perf_counter() - started, cpu() - began
        if seconds >= SHORT:
            return {"seconds": _rounded(seconds / count), "cpu": _rounded(used / count)}
        count *= MORE


def _rounded(seconds: float) -> float:
    """To four digits: no call takes exactly as long again."""
    return float(f"{seconds:.4g}")


def growth(call: Call) -> int | None:
    """The bytes by which the process grows while a warm call runs, its results included."""
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is not None:
        give_back(0)  # or the call runs in what calls before it have left
    try:
        (PROCESS / "clear_refs").write_text("5")  # forget the largest size so far
        before = _bytes("VmRSS")
        call()
        return _bytes("VmHWM") - before
    except OSError:
        return None


def _bytes(entry: str) -> int:
    lines = (PROCESS / "status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{entry}:"))
