"""A contestant's side of the conversation: commands come in as lines of JSON, CPU seconds go out as lines of JSON.

    {"do": "start", "variant": ..}  -> {}, once everything is imported
    {"do": "prepare", "network": .., "examples": .., "seed": ..}
                 -> {"first": CPU seconds of the first call of each part: trace, compile, run; "gradients": a file}
    {"do": "run"} -> {"seconds": CPU seconds of a warm call of each part}
    {"do": "memory", "network": .., "examples": .., "lengths": ..} -> {"bytes": what a step takes at each length}

The parts are "inference", "step" (forward, backward, the gradients of all weights) and, where it is another program,
"taped": the forward half of a step. Python 3.8 has to read this file.
"""

from __future__ import annotations

import ctypes
import gc
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import numpy as np

from benchmarks import conversation
from benchmarks.training.losses import targets
from benchmarks.trees.contestants.worker import Job, timed
from benchmarks.trees.networks import TRAINED, Arrays

Part = Callable[[Arrays, np.ndarray], Any]
"""Takes a batch and its targets, and returns when all is computed."""


@dataclass(frozen=True)
class Trained:
    """A network that is ready to be trained.

    Attributes:
        inference: its results.
        step: whatever holds the gradients.
        gradients: those by name, as in `Network.weights`, of what `step` gave.
        taped: the forward half of a step.
    """

    inference: Part
    step: Part
    gradients: Callable[[Any], Arrays]
    taped: Part | None = None

    def parts(self) -> dict[str, Part]:
        """The parts by name."""
        found = {"inference": self.inference, "step": self.step}
        return {**found, "taped": self.taped} if self.taped else found


def serve(prepare: Callable[[Job], Trained], start: Callable[[str], None] | None = None) -> None:
    """Answer until the input ends; `prepare` makes a network ready, `start` hears of the variant."""
    calls: dict[str, Callable[[], Any]] = {}
    folder = tempfile.TemporaryDirectory()

    def prepared(command: dict[str, Any]) -> dict[str, Any]:
        job = _job(command, TRAINED[command["network"]].batch(command["examples"], command["seed"]))
        aim, first = targets(job.network, job.batch), {}
        trained = prepare(job)
        calls.clear()
        for name, part in trained.parts().items():
            calls[name] = lambda part=part: part(job.batch, aim)
            started = time.process_time()
            found = calls[name]()
            first[name] = time.process_time() - started
            if name == "step":
                path = Path(folder.name) / "gradients.npz"
                np.savez(path, **trained.gradients(found))
        return {"first": first, "gradients": str(path)}

    def answer(command: dict[str, Any]) -> dict[str, Any]:
        if command["do"] == "prepare":
            return prepared(command)
        if command["do"] == "run":
            return {"seconds": {name: timed(call) for name, call in calls.items()}}
        if command["do"] == "memory":
            return {"bytes": memory(prepare, command)}
        if start is not None:
            start(command["variant"])
        return {}

    with folder:
        conversation.serve(answer)


def _job(command: dict[str, Any], batch: Arrays) -> Job:
    network = TRAINED[command["network"]]
    return Job(network, network.weights(), batch)


def memory(prepare: Callable[[Job], Trained], command: dict[str, Any]) -> list[int]:
    """Bytes by which the process grows in a step, at each length: its peak, less what it has before."""
    examples, lengths = command["examples"], command["lengths"]
    whole = {"word": np.zeros((examples, max(lengths)), np.int32), "length": np.ones(examples, np.int32)}
    job = _job(command, whole)
    trained, aim = prepare(job), targets(job.network, whole)
    trained.step(whole, aim)  # compiles
    found = []
    for length in lengths:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system, or it would not count anew
        before = _status("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        trained.step({**whole, "length": np.full(examples, length, np.int32)}, aim)
        found.append(_status("VmHWM") - before)
    return found


def _status(name: str) -> int:
    """A number of bytes that Linux knows of this process."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) * 1024
