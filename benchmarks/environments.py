"""Environments of peers: that `venv` and pip make once in the user's cache, and flags of XLA."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


def cache() -> Path:
    """The user's folder for caches: XDG_CACHE_HOME if that is set, else as the system has it."""
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


FOLDER = cache() / "pcbatch" / "peers"
"""The folder of all environments, outside of the checkout."""


class PeerUnavailableError(Exception):
    """An environment that could not be made; says why."""


@dataclass(frozen=True)
class Environment:
    """A name and what pip is to install there, in pinned versions; for which `interpreter`, if not for this one."""

    name: str
    requirements: tuple[str, ...]
    interpreter: str = sys.executable

    def python(self, folder: Path = FOLDER) -> Path:
        """Its interpreter, made if need be; PeerUnavailableError if that fails."""
        place = (folder / self.name).absolute()
        python, stamp = place / "bin" / "python", place / "installed.txt"
        wanted = "\n".join(self.requirements)
        if python.exists() and stamp.exists() and stamp.read_text() == wanted:
            return python
        if shutil.which(self.interpreter) is None:
            raise PeerUnavailableError(f"{self.interpreter} is not installed")
        print(
            f"installing {', '.join(self.requirements)} in {folder / self.name}, once; XDG_CACHE_HOME moves it",
            file=sys.stderr,
            flush=True,
        )
        for command in (
            [self.interpreter, "-m", "venv", str(place)],
            [str(python), "-m", "pip", "install", "--quiet", *self.requirements],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
                raise PeerUnavailableError(f"{' '.join(command[1:4])} .. failed: {said[-1]}")
        stamp.write_text(wanted)
        return python


JAX = Environment("jax", ("jax==0.10.2", "numpyro==0.22.0", "blackjax==1.7.1"))
JAX_ON_GPU = Environment("jax-gpu", ("jax[cuda13]==0.10.2", "numpyro==0.22.0", "blackjax==1.7.1"))
NUTPIE = Environment("nutpie", ("nutpie==0.16.8", "numba==0.68.1", "jax==0.10.2"))
NUMBA = Environment("numba", ("numba==0.68.1",))
TENSORFLOW_PROBABILITY = Environment(
    "tfp", ("tensorflow==2.21.0", "tensorflow-probability==0.25.0", "tf-keras==2.21.0")
)
TENSORFLOW_PROBABILITY_ON_GPU = Environment(
    "tfp-gpu", ("tensorflow[and-cuda]==2.21.0", "tensorflow-probability==0.25.0", "tf-keras==2.21.0")
)
DYNET = Environment("dynet", ("dyNET38==2.2", "numpy==1.24.4"), "python3.8")
"""The last wheel that there is of it, for the last Python that it has one for."""

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""How many this process and those that it starts may use."""
DEVICES = f"--xla_force_host_platform_device_count={CORES}"
"""A device of JAX's for each core; by default there is one, whose small kernels keep one core busy."""
NATIVE_LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000"
"""XLA's CPU compiler makes one native function of each loop of fewer bytes; 1 kB by default."""


def with_flags(flags: str) -> dict[str, str]:
    """The environment variable that gives a process these flags of XLA's, beside those that are set."""
    return {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()} if flags else {}
