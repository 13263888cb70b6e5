"""What a user sees of pcbatch when something is wrong: the message, the own line, and one frame of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

ROOT = Path(__file__).parents[2]
X = np.array([1.0, -1.0], np.float32)


@pcbatch.autobatch(jit=False)
def positive(x):
    assert x > 0.0, f"{x} is not positive"
    return x


@pcbatch.autobatch(jit=False)
def grown(xs):
    total = 0.0
    while tf.reduce_sum(total) < 3.0:
        total = total + xs
    return total


@pcbatch.autobatch(jit=False)
def multiplied(x):
    return tf.matmul(x, x)


def trying(x):
    try:
        return x
    finally:
        pass


def in_graph(x):
    return grown(tf.stack([x, x], axis=1))


MISTAKES = {
    "a lane fails": lambda: positive(X),
    "types do not meet": lambda: grown(np.ones((2, 3), np.float32)),
    "types do not meet, in check": lambda: grown.check(np.ones((2, 3), np.float32)),
    "types do not meet, in ir": lambda: grown.ir("optimized", np.ones((2, 3), np.float32)),
    "types do not meet, in a tf.function": lambda: tf.function(in_graph, autograph=False)(X),
    "an error inside TensorFlow": lambda: multiplied.run(X),
    "an argument is missing": lambda: positive(),
    "an argument does not fit": lambda: positive(1.0),
    "an option is wrong": lambda: positive.options(jit=None),
    "a decorator's option is wrong": lambda: pcbatch.autobatch(jitt=True),
    "syntax is refused": lambda: pcbatch.autobatch(trying),
    "syntax is refused under options": lambda: pcbatch.autobatch(jit=False)(trying),
    "a stage is wrong": lambda: positive.ir("ssa"),
    "nothing to show yet": lambda: positive.options(max_steps=9).source(),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_frame_of_ours_at_the_most(mistake):
    with pytest.raises(pcbatch.PcbatchError) as caught:
        MISTAKES[mistake]()
    frames = traceback.extract_tb(caught.value.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(ROOT / "pcbatch")]
    assert len(ours) == 1
    assert frames[-1] == ours[0]
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_the_users_own_error_in_a_single_run_is_the_users_own():
    """`single` is plain Python: what the function raises comes through as it is."""
    with pytest.raises(AssertionError, match=r"-1\.0 is not positive"):
        positive.single(-1.0)


PROGRAM = """import numpy as np
import pcbatch

@pcbatch.autobatch(jit=False)
def root(x):
    assert x >= 0.0, f"{x} is negative"
    return x**0.5

root(np.array([4.0, -1.0, 9.0]))
"""

SEEN = """Traceback (most recent call last):
  File "program.py", line 9, in <module>
    root(np.array([4.0, -1.0, 9.0]))
  File "calls.py", in __call__
    raise error.with_traceback(None) from None
pcbatch.runtime.report.run.LaneError: 1 of 3 lanes of root failed

lane 1 (ASSERTION): AssertionError: -1.0 is negative
  --> program.py:6:5
     |
   6 |     assert x >= 0.0, f"{x} is negative"
     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""


def test_an_uncaught_error_as_the_terminal_shows_it(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    lines = done.stderr[done.stderr.index("Traceback") :].replace(str(tmp_path) + "/", "").splitlines()
    lines = [line for line in lines if not set(line) <= set(" ^~")]  # Python's own carets differ by version
    shown = ['  File "calls.py", in __call__' if line.endswith("in __call__") else line for line in lines]
    assert shown == [line for line in SEEN.splitlines() if line]
