"""Under `tf.config.experimental.enable_op_determinism` every program runs, and gives the same bits.

TensorFlow then refuses operations that it cannot make deterministic. The switch cannot be turned off again, so it is
turned on in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.harness import leaves, load

ROOT = Path(__file__).parents[2]
PROGRAM = """
import tensorflow as tf
tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()
from tests.api.test_determinism import lines
print(*lines(), sep="\\n")
"""
NAMES = ("mixed_failures", "bubble_sort", "random_tree", "row_store")
"""Failures and a recursion, stores of elements and rows, random numbers; in graph mode, the first under XLA too."""


def lines() -> list[str]:
    """What each run gives, to the bit."""
    found = []
    for name, jit in [*((name, False) for name in NAMES), (NAMES[0], True)]:
        program = load(name)
        run = program.function.options(jit=jit).run(*program.arguments(17))
        bits = [np.asarray(leaf).tobytes().hex() for leaf in leaves(run.value)]
        found.append(" ".join([name, str(jit), str(run.status.tolist()), str(run.trips), *bits]))
    return found


@pytest.mark.slow
def test_results_are_the_same_under_op_determinism() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == lines()
