"""`pcbatch.explain`: counts that are known beforehand, and the advice that five programs deserve."""

import html
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

ROW = 1e6  # so that a block is expensive and compiles as fast as a cheap one


@pcbatch.autobatch
@pcbatch.cost(ROW)
def cell(a, b):
    return tf.tanh(a + 0.5 * b)


@pcbatch.autobatch
def encode(left, right, node):
    if left[node] < 0:
        return 0.1
    return cell(encode(left, right, left[node]), encode(left, right, right[node]))


@pcbatch.autobatch
def late(before, n):
    x = 0.0
    for _ in range(before):
        x = x * 0.5 + 1.0
    for _ in range(n):
        x = cell(x, 1.0)
    return x


@pcbatch.autobatch
def collatz(n):
    turns = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        turns += 1
    return turns


@pcbatch.autobatch
def straight(x):
    return tf.sin(x) + 1.0


@pcbatch.autobatch
def reciprocal(n):
    assert n > 0
    x = 1.0
    for _ in range(n):
        x = cell(x, 1.0)
    return x


def chain(nodes, room=16):
    """A tree in which each left child is a leaf: as deep as it can be."""
    left, right = np.full(room, -1, np.int32), np.full(room, -1, np.int32)
    for node in range(0, nodes, 2):
        left[node], right[node] = node + 1, node + 2
    return left, right


def balanced(room=16):
    """Seven cells over eight leaves."""
    left, right = np.full(room, -1, np.int32), np.full(room, -1, np.int32)
    left[:7], right[:7] = 2 * np.arange(7) + 1, 2 * np.arange(7) + 2
    return left, right


def test_trees_are_told_what_their_own_parallelism_is_worth():
    trees = [balanced(), balanced(), chain(6)]
    left, right = (np.stack(each) for each in zip(*trees, strict=True))
    found = pcbatch.explain(encode, left, right, np.zeros(3, np.int32))
    (block,) = found.blocks
    assert (block.longest, block.by_depth, block.by_agenda) == (7, 3, 3)
    assert [way.name for way in found.ways][1] == "with fork=True"
    usual, forked, local = (way.blocks[block.label] for way in found.ways[:3])
    assert usual.active == local.active == forked.active == 7 + 7 + 3
    assert forked.launches == 3, "one for each level of the deepest tree"
    assert usual.launches >= 7
    names = ["its hybrid", "the switch", "Fold, by depth", "DyNet, by agenda"]
    assert [way.name for way in found.ways[3:]] == names
    assert [way.blocks[block.label].active for way in found.ways[3:]] == [7 + 7 + 3] * 4
    assert "3 would do" in found.advice[0]
    assert f"{__file__.rpartition('/')[2]}" in str(found)


def test_lanes_that_do_not_meet_are_told_to_wait():
    before, turns = np.array([0, 10, 20, 30], np.int32), np.array([5, 3, 5, 2], np.int32)
    found = pcbatch.explain(late.options(schedule="sweep"), before, turns)
    (block,) = found.blocks
    assert block.longest == block.by_agenda == 5 < block.by_depth, "what lies before the loop counts in a depth"
    assert found.ways[0].blocks[block.label].launches > 10
    assert found.ways[1].blocks[block.label].launches == 5
    assert "the longest lane needs it 5 times" in found.advice[0]
    assert "`pcbatch.sync()`" in found.advice[0]


def test_cheap_code_is_told_so():
    found = pcbatch.explain(collatz, np.arange(1, 9, dtype=np.int32))
    assert not found.blocks
    assert "no block has expensive rows" in found.advice[0]
    assert "native code" in found.advice[0]


def test_a_straight_line_is_told_so():
    found = pcbatch.explain(straight, np.ones(3, np.float32))
    assert "tf.vectorized_map" in found.advice[0]


def test_one_lane_is_told_to_look_for_others():
    found = pcbatch.explain(reciprocal, np.array([3], np.int32))
    assert "there is one lane" in found.advice[0]


def test_failed_lanes_are_counted():
    found = pcbatch.explain(reciprocal, np.array([3, 0, 4, 5], np.int32))
    assert found.advice[0].startswith("1 of 4 lanes failed")


@pcbatch.autobatch
def factored(n):
    x = 1.0
    for _ in range(n):
        x = x + 1.0
        x = x + tf.linalg.cholesky(tf.eye(2) * x)[0, 0]
    return x


def line_of(text):
    """The line of this file that begins with a text."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


def test_it_says_why_native_code_was_not_chosen():
    found = pcbatch.explain(factored, np.array([1, 3], np.int32))
    line = line_of("x = x + tf.linalg.cholesky")
    assert found.not_native.endswith(f"test_explain.py:{line}: this is not run in native code: {found.form[10:]}")
    assert "Cholesky" in found.not_native
    assert found.not_native in str(found).splitlines()
    assert html.escape(found.not_native) in found._repr_html_()
    assert "lockstep: no native code" in repr(found)


def test_it_says_at_which_line_a_row_is_expensive():
    found = pcbatch.explain(late, np.array([0, 2], np.int32), np.array([1, 2], np.int32))
    assert re.search(
        r"test_explain\.py:\d+: (this is|some blocks are) not run in native code: a row of", found.not_native
    )
    text = found._repr_html_()
    assert text.count("<table>") == 1 + len(found.blocks)
    assert text.count("<li>") == len(found.advice) + len(found.calls)


def test_native_code_needs_no_excuse():
    found = pcbatch.explain(collatz, np.arange(1, 9, dtype=np.int32))
    assert (found.form, found.not_native) == ("native", "")


def test_what_is_no_batched_function_is_refused():
    with pytest.raises(pcbatch.UsageError, match="PCB568"):
        pcbatch.explain(len, [1, 2])
