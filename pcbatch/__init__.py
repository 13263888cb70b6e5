"""pcbatch, program-counter autobatching: write a function for one example, run a whole batch as one XLA program."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pcbatch.quiet import expect_tensorflow
from pcbatch.version import __version__

if TYPE_CHECKING:
    from pcbatch import exported, nuts, random, saving
    from pcbatch.api import autobatch
    from pcbatch.caching import cache
    from pcbatch.device_loops import gpu
    from pcbatch.errors import CompileError, GradientError, PcbatchError, UsageError
    from pcbatch.function.batched import Batched
    from pcbatch.function.explaining import explain
    from pcbatch.function.hints import cost, debug, sync
    from pcbatch.function.per_example import per_example_gradients
    from pcbatch.function.primitives import fallback, from_jax, primitive
    from pcbatch.function.sharding import Sharded, shard
    from pcbatch.ir.machine import LaneStatus
    from pcbatch.runtime.backends.tensorflow.bounded import Bounded, bounded
    from pcbatch.runtime.backends.tensorflow.mapping import map
    from pcbatch.runtime.backends.tensorflow.ragged import Ragged, ragged
    from pcbatch.runtime.report.run import LaneError, Run, RunInterruptedError
    from pcbatch.trees import Tree, pack, unpack

__all__ = [
    "Batched",
    "Bounded",
    "CompileError",
    "GradientError",
    "LaneError",
    "LaneStatus",
    "PcbatchError",
    "Ragged",
    "Run",
    "RunInterruptedError",
    "Sharded",
    "Tree",
    "UsageError",
    "__version__",
    "autobatch",
    "bounded",
    "cache",
    "cost",
    "debug",
    "explain",
    "exported",
    "fallback",
    "from_jax",
    "gpu",
    "map",
    "nuts",
    "pack",
    "per_example_gradients",
    "primitive",
    "ragged",
    "random",
    "saving",
    "shard",
    "sync",
    "unpack",
]

_HOMES = {
    "Batched": "pcbatch.function.batched",
    "autobatch": "pcbatch.api",
    "Bounded": "pcbatch.runtime.backends.tensorflow.bounded",
    "bounded": "pcbatch.runtime.backends.tensorflow.bounded",
    "cache": "pcbatch.caching",
    "cost": "pcbatch.function.hints",
    "debug": "pcbatch.function.hints",
    "explain": "pcbatch.function.explaining",
    "map": "pcbatch.runtime.backends.tensorflow.mapping",
    "Ragged": "pcbatch.runtime.backends.tensorflow.ragged",
    "ragged": "pcbatch.runtime.backends.tensorflow.ragged",
    "sync": "pcbatch.function.hints",
    "CompileError": "pcbatch.errors",
    "GradientError": "pcbatch.errors",
    "PcbatchError": "pcbatch.errors",
    "UsageError": "pcbatch.errors",
    "LaneError": "pcbatch.runtime.report.run",
    "Run": "pcbatch.runtime.report.run",
    "RunInterruptedError": "pcbatch.runtime.report.run",
    "LaneStatus": "pcbatch.ir.machine",
    "fallback": "pcbatch.function.primitives",
    "from_jax": "pcbatch.function.primitives",
    "gpu": "pcbatch.device_loops",
    "per_example_gradients": "pcbatch.function.per_example",
    "primitive": "pcbatch.function.primitives",
    "Tree": "pcbatch.trees",
    "pack": "pcbatch.trees",
    "unpack": "pcbatch.trees",
    "Sharded": "pcbatch.function.sharding",
    "shard": "pcbatch.function.sharding",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: the command line's static answers must not wait for TensorFlow."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in ("exported", "nuts", "random", "saving"):
        return import_module(f"pcbatch.{name}")
    raise AttributeError(f"module 'pcbatch' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, too, that have not been loaded: completion and Python's "did you mean" know them then."""
    return sorted({*globals(), *__all__})


expect_tensorflow()
if os.environ.get("PCBATCH_CACHE"):  # before TensorFlow's first operation, which may be before the first of ours
    import_module("pcbatch.runtime.store.cache_session").use_environment()
if os.environ.get("PCBATCH_DEVICE_LOOPS"):  # before XLA reads its flags
    import_module("pcbatch.device_loops").use_environment()
