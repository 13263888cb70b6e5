"""Runs of kernels for GPUs on the CPU: the same code, a loop in the place of the threads."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from pcbatch.runtime.backends.tensorflow import graphs
from pcbatch.runtime.llvm import ptx
from pcbatch.runtime.llvm.kernel import Kernel
from pcbatch.runtime.llvm.on_gpu import KernelProgram, Kernels
from pcbatch.runtime.machine import state

BUDGET, CAPACITY = 7, 2
"""Steps of a lane in a launch, and live calls that stacks have room for at first: few, so that runs are long."""


@contextlib.contextmanager
def forced(budget: int = BUDGET, capacity: int = CAPACITY) -> Iterator[list[Kernel]]:
    """Programs inside are for a GPU, in native form as kernels; gives those that are made.

    Their PTX is translated, too, where there is a translator.
    """
    made: list[Kernel] = []
    texts: list[str] = []
    make, begin = Kernels._made, ptx.Kernel.__init__

    def noted(kernels: Kernels, again: bool) -> Kernel:
        made.append(make(kernels, again))
        return made[-1]

    def called(kernel: ptx.Kernel, backend: Any, text: str, *rest: Any) -> None:
        texts.append(text)
        begin(kernel, backend, text, *rest)

    with (
        graphs.targeting("GPU", kernels=True),
        mock.patch.object(KernelProgram, "budget", budget),
        mock.patch.object(state, "FIRST_CAPACITY", capacity),
        mock.patch.object(Kernels, "_made", noted),
        mock.patch.object(ptx.Kernel, "__init__", called),
    ):
        yield made
    if can_translate():
        for text in texts:
            assert translated(ptx.ptx(text)) == ""


def can_translate() -> bool:
    """Return whether NVIDIA's assembler is there, and its library of functions."""
    return shutil.which("ptxas") is not None and ptx.libdevice() is not None


def translated(text: str) -> str:
    """The complaints of NVIDIA's assembler about a text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_text(text)
        command = ["ptxas", "-arch=sm_90", "-o", f"{folder}/out", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""
