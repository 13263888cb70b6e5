"""pcbatch, program-counter autobatching: write a function for one example, run a whole batch as one XLA program."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcbatch import nuts, random, saving
    from pcbatch.api import autobatch
    from pcbatch.batched import Batched
    from pcbatch.diagnostics import CompileError, GradientError, PcbatchError, UsageError
    from pcbatch.hints import cost, sync
    from pcbatch.primitives import fallback, primitive
    from pcbatch.runtime.run import LaneError, Run, RunInterruptedError
    from pcbatch.runtime.status import LaneStatus

__version__ = "0.1.0"

__all__ = [
    "Batched",
    "CompileError",
    "GradientError",
    "LaneError",
    "LaneStatus",
    "PcbatchError",
    "Run",
    "RunInterruptedError",
    "UsageError",
    "__version__",
    "autobatch",
    "cost",
    "fallback",
    "nuts",
    "primitive",
    "random",
    "saving",
    "sync",
]

_HOMES = {
    "Batched": "pcbatch.batched",
    "autobatch": "pcbatch.api",
    "cost": "pcbatch.hints",
    "sync": "pcbatch.hints",
    "CompileError": "pcbatch.diagnostics",
    "GradientError": "pcbatch.diagnostics",
    "PcbatchError": "pcbatch.diagnostics",
    "UsageError": "pcbatch.diagnostics",
    "LaneError": "pcbatch.runtime.run",
    "Run": "pcbatch.runtime.run",
    "RunInterruptedError": "pcbatch.runtime.run",
    "LaneStatus": "pcbatch.runtime.status",
    "fallback": "pcbatch.primitives",
    "primitive": "pcbatch.primitives",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: the command line's static answers must not wait for TensorFlow."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in ("nuts", "random", "saving"):
        return import_module(f"pcbatch.{name}")
    raise AttributeError(f"module 'pcbatch' has no attribute {name!r}")
