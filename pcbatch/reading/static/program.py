"""The program of a function of a file that is parsed, not imported."""

from __future__ import annotations

import linecache
import os

import numpy as np

from pcbatch.frontend.module import read_module
from pcbatch.reading.static.module import StaticModule, module_of
from pcbatch.reading.static.opaque import Opaque, batched_of, is_opaque
from pcbatch.reading.untyped.program import UntypedProgram, read_untyped


def read_file(path: str | os.PathLike[str], name: str) -> UntypedProgram:
    """The program of the batched function `name`, or `Class.name`, of a file, for arguments of any types.

    Raises CompileError with what is refused whatever the types are.
    """
    source = read_module(path)
    module = StaticModule(source, "".join(linecache.getlines(source.file)))
    entry = batched_of(module.entry(name))
    assert entry is not None
    return read_untyped(
        entry, batched_of, is_array=_is_array, takes_gradients=_is_tape, is_opaque=is_opaque, module_of=module_of
    )


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _is_tape(value: object) -> bool:
    return isinstance(value, Opaque) and value.opaque_name.origin == "tensorflow.GradientTape"
