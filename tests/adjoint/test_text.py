"""What `f.ir("adjoint", ..)` prints, and what the profile of a run that is taped shows beside other figures."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from pcbatch.errors import UsageError
from tests.adjoint import shown
from tests.goldens import check_golden

GOLDENS = Path(__file__).parent / "golden"
GIVEN = {
    "tree": (tf.ones([3, 2]), tf.constant([1, 4, 3])),
    "stored": (tf.ones([3, 3]), tf.constant([1, 4, 3])),
}


@pytest.mark.parametrize("name", GIVEN)
def test_the_way_back_as_text(name):
    text = getattr(shown, name).options(jit=False).ir("adjoint", *GIVEN[name])
    check_golden(GOLDENS / f"{name}.txt", text)


def test_arguments_are_needed():
    with pytest.raises(UsageError, match=r"PCB506: .*adjoint"):
        shown.tree.ir("adjoint")


@pytest.fixture(scope="module")
def taped():
    with tf.GradientTape():
        return shown.tree.options(jit=False, name="tree_taped").run(*GIVEN["tree"])


def test_bytes_on_the_tape_by_line(taped):
    profile = taped.profile()
    by_line = {line.text.strip(): line.counts.tape for line in profile.lines}
    assert sum(by_line.values()) == profile.total.tape
    leaves, nodes = 5 + 1 + 3, 4 + 2  # of trees of 1, 4 and 3: each node has a left and a right
    # Of a leaf the lane, the row that was looked up, its number and the product; of a node also what it reads.
    floats, number = 2 * 4, 4
    assert by_line["return tf.tanh(tf.linalg.matvec(W, TABLE[n]))"] == leaves * (2 * floats + 2 * number)
    assert by_line["return tf.tanh(tf.linalg.matvec(W, left) + right * x)"] >= nodes * 4 * floats
    assert "tape: " in str(profile)
    assert "tape: " in profile._repr_html_()


def test_no_bytes_where_nobody_watches(taped):
    profile = shown.tree.options(jit=False, name="tree_taped").run(*GIVEN["tree"]).profile()
    assert profile.total.tape == 0
    assert "tape: " not in str(profile)
    assert [line.counts.runs for line in profile.lines] == [line.counts.runs for line in taped.profile().lines]


def test_compilations_of_both_are_counted():
    function = shown.stored.options(jit=False, name="stored_counted")
    function(*GIVEN["stored"])
    before = function.stats()
    with tf.GradientTape() as tape:
        tape.watch(GIVEN["stored"][0])
        value = tf.reduce_sum(function(*GIVEN["stored"]))
    forward = function.stats()
    tape.gradient(value, GIVEN["stored"][0])
    back = function.stats()
    assert before.compilations < forward.compilations < back.compilations
    assert 0 < before.compile_seconds < forward.compile_seconds < back.compile_seconds
    assert before.trace_seconds < forward.trace_seconds < back.trace_seconds
