"""The contestants, and each one's process, kept alive so that timed calls of all can take turns."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.nuts.environments import JAX, TENSORFLOW_PROBABILITY, Environment

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Contestant:
    """A script of `contestants/`, one of its variants, and where it runs: beside pcbatch unless said otherwise.

    A peer is another sampler; the best one is what pcbatch is compared with.
    """

    name: str
    script: str
    variant: str = ""
    environment: Environment | None = None

    @property
    def is_peer(self) -> bool:
        """Whether it is someone else's sampler."""
        return self.environment is not None


CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant("pcbatch", "pcbatch_sampler", "xla"),
        Contestant("pcbatch-auto", "pcbatch_sampler", "auto"),
        Contestant("tfp", "tfp_sampler", "", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-xla", "tfp_autobatched", "xla", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-graph", "tfp_autobatched", "graph", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-stackless", "tfp_autobatched", "stackless", TENSORFLOW_PROBABILITY),
        Contestant("numpyro", "numpyro_sampler", "", JAX),
        Contestant("blackjax", "blackjax_sampler", "", JAX),
        Contestant("loop-xla", "leapfrog_loop", "xla"),
        Contestant("loop-graph", "leapfrog_loop", "graph"),
    )
}


class ContestantError(Exception):
    """A contestant that died, gave an error or took too long; says which."""


class Process:
    """A contestant at work; a context manager that ends it."""

    def __init__(self, contestant: Contestant):
        environment = contestant.environment
        python = environment.python(ROOT / "out" / "peers") if environment else sys.executable
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed by `close`
        self._process = subprocess.Popen(
            [str(python), "-m", f"benchmarks.nuts.contestants.{contestant.script}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._replies: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, limit: float, **command: Any) -> dict[str, Any]:
        """The reply to a command; ContestantError if there is none within `limit` seconds."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            line = self._replies.get(timeout=limit)
        except queue.Empty:
            raise ContestantError(f"took more than {limit:.0f} s to {command['do']}") from None
        except BrokenPipeError:
            line = ""
        if not line:
            raise ContestantError(f"ended: {self._last_words()}")
        reply = json.loads(line)
        if "error" in reply:
            raise ContestantError(reply["error"])
        return reply

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._replies.put(line)
        self._replies.put("")

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._errors.close()
