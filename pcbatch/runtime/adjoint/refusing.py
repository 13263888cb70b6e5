"""Refusals by the array library's compiler of a taped run or its backward pass, as refusals of the gradient."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pcbatch.errors import PrimitiveError, in_gradient
from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.error_translation import explaining


@contextlib.contextmanager
def refusing(program: Program, backend: Backend, jit: bool) -> Iterator[None]:
    """Raise the library's refusals inside at the user's source: GradientError PCB603 for failures to compile."""
    try:
        with explaining(program, backend, jit):
            yield
    except PrimitiveError as error:
        if any(each.code != "PCB440" for each in error.diagnostics):
            raise
        raise in_gradient(error, "") from error
