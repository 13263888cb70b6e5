"""`pcbatch.gpu`: leave loops and conditionals of XLA's programs to the GPU, by two flags of the process."""

from __future__ import annotations

import os
import warnings

from pcbatch.errors import UsageError
from pcbatch.installed import tensorflow_version
from pcbatch.runtime.backends.tensorflow import private

VARIABLE = "PCBATCH_DEVICE_LOOPS"
FLAGS = {
    "--xla_gpu_enable_command_buffer": "+CONDITIONAL,+WHILE",
    "--xla_gpu_graph_min_graph_size": "1",
}
"""The flags; with the first alone, a program whose top level is a few loops gets no graph at all."""


def gpu(*, device_loops: bool = False) -> None:
    """Say how XLA's programs are to run on a GPU, all of this process, those of others among them.

    TensorFlow's XLA leaves loops and conditionals to the host, which then waits for a number of the GPU's before it
    goes on. With `device_loops` the GPU runs them by itself, as graphs of CUDA: this adds two flags to the environment
    variable XLA_FLAGS, which XLA reads once. pcbatch never sets them unasked. They need CUDA 12.3 or newer, and change
    nothing on a CPU.

    Call it before TensorFlow's first operation. The environment variable PCBATCH_DEVICE_LOOPS=1 does the same when
    pcbatch is imported.

    Arguments:
        device_loops: whether the GPU runs loops and conditionals by itself; if not, nothing is changed.

    Raises:
        UsageError: PCB585, TensorFlow has begun, is older than 2.21, or XLA_FLAGS has other values of these flags.
    """
    if not device_loops:
        return
    given = dict(each.partition("=")[::2] for each in os.environ.get("XLA_FLAGS", "").split())
    others = [f"{name}={given[name]}" for name in FLAGS if name in given and given[name] != FLAGS[name]]
    if others:
        raise UsageError("PCB585", f"XLA_FLAGS says {' '.join(others)}; leave it out, or ask for device loops there")
    missing = [f"{name}={value}" for name, value in FLAGS.items() if name not in given]
    if not missing:
        return
    found = tensorflow_version()
    if found is not None and _numbers(found) < (2, 21):  # its second run of such a graph crashes
        raise UsageError("PCB585", f"device loops need TensorFlow 2.21 or newer, this is {found}")
    if private.has_begun():
        raise UsageError(
            "PCB585",
            "XLA reads its flags once, and TensorFlow has begun; call pcbatch.gpu(device_loops=True) before its first "
            "operation, or set the environment variable PCBATCH_DEVICE_LOOPS=1",
        )
    os.environ["XLA_FLAGS"] = " ".join([*os.environ.get("XLA_FLAGS", "").split(), *missing])


def _numbers(text: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in text.split(".")[:2])


def use_environment() -> None:
    """Follow the environment variable PCBATCH_DEVICE_LOOPS; warn where that is impossible."""
    try:
        gpu(device_loops=os.environ.get(VARIABLE, "") not in ("", "0"))
    except UsageError as error:
        warnings.warn(f"{VARIABLE} is of no use: {error}", RuntimeWarning, stacklevel=2)
