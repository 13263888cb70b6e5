"""C: a loop over the lanes, by the machine's compiler, on one thread or, as variant "cores", on all by OpenMP."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.against.contestants.worker import Call, Job, serve
from benchmarks.against.texts import result_type
from benchmarks.environments import PeerUnavailableError

SOURCE = Path(__file__).with_name("tasks.c")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fno-finite-math-only", "-shared", "-fPIC")


def compiler() -> str:
    """The C compiler's command; PeerUnavailableError where there is none."""
    command = os.environ.get("CC", "cc")
    if shutil.which(command) is None:
        raise PeerUnavailableError(f"{command} is not installed")
    return command


def version() -> str:
    """What the compiler says of itself."""
    try:
        done = subprocess.run([compiler(), "--version"], capture_output=True, text=True)
    except PeerUnavailableError as why:
        return str(why)
    return (done.stdout.splitlines() or ["an unknown compiler"])[0]


@functools.cache
def library(parallel: bool) -> ctypes.CDLL:
    """The tasks, compiled; PeerUnavailableError where there is no compiler, or it fails."""
    command = compiler()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.so"
        flags = [*FLAGS, "-fopenmp"] if parallel else FLAGS
        done = subprocess.run([command, *flags, "-o", path, SOURCE, "-lm"], capture_output=True, text=True)
        if done.returncode:
            raise PeerUnavailableError(f"{command} failed: {(done.stderr.splitlines() or ['no message'])[0]}")
        return ctypes.CDLL(str(path))


def prepare(job: Job) -> Call:
    """A call of the loop."""
    arguments = [np.ascontiguousarray(array) for array in job.arguments()]
    out = np.zeros(arguments[0].shape if job.task == "quicksort" else job.lanes, result_type(job.task))
    loop = getattr(library(job.variant == "cores"), job.task)
    loop.restype, loop.argtypes = None, [ctypes.c_int64, *[ctypes.c_void_p] * (len(arguments) + 1)]
    addresses = [array.ctypes.data for array in (*arguments, out)]

    def call() -> np.ndarray:
        loop(job.lanes, *addresses)
        assert arguments, "they live as long as the loop reads them"
        return out

    return call


if __name__ == "__main__":
    serve(prepare)
