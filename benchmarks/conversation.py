"""Contestants in processes of their own: lines of JSON go in, lines of JSON come out.

A contestant so has its own Python, flags of its own and threads of its own, may die or hang, and is kept alive between
its calls, so that those of all contestants can take turns.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.environments import PeerUnavailableError

ROOT = Path(__file__).resolve().parents[1]


class ContestantError(Exception):
    """A contestant that died, gave an error or took too long; says which."""


class Process:
    """A module at work that answers commands by `serve`; `close` ends it.

    Args:
        module: what `python -m` runs, from the root of the repository.
        python: its interpreter.
        variables: of its environment, beside those of this process.
        cores: how many it may use, if not all of this process.
    """

    def __init__(
        self,
        module: str,
        python: str | Path = sys.executable,
        variables: Mapping[str, str] | None = None,
        cores: int | None = None,
    ):
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed by `close`
        with held_to(cores):
            self._process = subprocess.Popen(
                [str(python), "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                cwd=ROOT,
                env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "PYTHONPATH": str(ROOT), **(variables or {})},
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


@contextmanager
def held_to(cores: int | None) -> Iterator[None]:
    """Within, processes that this thread starts may use so many cores; None: as many as it may itself.

    PeerUnavailableError where the system has no such bounds.
    """
    if cores is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise PeerUnavailableError("this system holds no process to some of its cores")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer commands until the input ends; a failure gives {"error": one line}.

    Whatever libraries print goes to the error stream.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
