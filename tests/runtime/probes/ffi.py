"""Tests of XLA's foreign function interface as `private` uses it."""

from __future__ import annotations

import uuid

from pcbatch.runtime.backends.tensorflow import handlers
from tests.runtime.probes.use import Use


def _handlers_are_called() -> bool:
    return handlers.are_called(f"pcbatch.probed.{uuid.uuid4().hex}")


USES = (
    Use(
        "handlers of machine code",
        _handlers_are_called,
        "cheap programs run in lockstep inside a tf.function, which takes several times as long; recursive ones need "
        "max_depth under jit_compile=True",
    ),
)
