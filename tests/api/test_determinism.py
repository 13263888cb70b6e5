"""Under `tf.config.experimental.enable_op_determinism` every program runs, and gives the same bits.

TensorFlow then refuses operations that it cannot make deterministic. The switch cannot be turned off again, so each
setting has a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import numpy as np
import tensorflow as tf
if sys.argv[1] == "deterministic":
    tf.keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
from tests.harness import leaves, load
for name, jit in [(name, False) for name in sys.argv[2:]] + [(sys.argv[2], True)]:
    program = load(name)
    run = program.function.options(jit=jit).run(*program.arguments(17))
    bits = [np.asarray(leaf).tobytes().hex() for leaf in leaves(run.value)]
    print(name, jit, run.status.tolist(), run.trips, *bits)
"""
NAMES = ("mixed_failures", "bubble_sort", "random_tree", "row_store")
"""Failures and a recursion, stores of elements and rows, random numbers; in graph mode, the first under XLA too."""


def printed(setting: str) -> str:
    """What the programs print, in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, setting, *NAMES],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_results_are_the_same_under_op_determinism() -> None:
    usual, deterministic = printed("usual"), printed("deterministic")
    assert usual.splitlines() == deterministic.splitlines()
    assert len(usual.splitlines()) == 1 + len(NAMES)
