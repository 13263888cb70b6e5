"""Who jumps to a block that only asks where to go on asks itself, if that is cheap and cannot fail."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.ir.machine import Branch, targets

N = np.array([0, 5, 3, 1], np.int32)


def asking(function, *batch):
    """The blocks whose jump or call goes on by a condition, and those that no lane comes to."""
    blocks = function.pipeline(*batch).table.blocks
    arrived = {0}.union(*(targets(block.terminator) for block in blocks))
    arrived |= {back for block in blocks if (back := getattr(block.terminator, "back", None)) is not None}
    unused = [block.label for number, block in enumerate(blocks) if number not in arrived]
    return [b.label for b in blocks if isinstance(getattr(b.terminator, "target", None), Branch)], unused


@pcbatch.autobatch
def depth(n):
    if n <= 0:
        return 0
    return depth(n - 1) + 1


@pcbatch.autobatch
def halvings(n):
    count = 0
    while n > 1 and count < 20:
        n = n // 2
        count = count + 1
    return count


@pcbatch.autobatch
def is_even(n):
    if n == 0:
        return True
    return is_odd(n - 1)


@pcbatch.autobatch
def is_odd(n):
    if n == 0:
        return False
    return is_even(n - 1)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (depth, (["b2"], [])),  # the first call asks in b0, the others before they go there
        (halvings, (["b0", "b2"], ["b1"])),  # nobody comes to the loop's head any more
        (is_even, (["b2", "b5"], ["b3"])),  # across functions, in tail calls
    ],
)
def test_jumps_ask(function, expected):
    assert asking(function, N) == expected
    np.testing.assert_array_equal(function(N), [function.single(int(n)) for n in N])


@pcbatch.autobatch
def quotients(n):
    total = 0
    while 12 // n > 2:
        total = total + n
        n = n + 1
    return total


@pcbatch.autobatch
def vectors(x):
    while tf.reduce_all(x < 10.0):
        x = x * 2.0
    return x


@pcbatch.autobatch
def meeting(n):
    while True:
        pcbatch.sync()
        if n > 7:
            break
        n = n + 1
    return n


@pytest.mark.parametrize(
    ("function", "batch"), [(quotients, N + 1), (vectors, np.ones((2, 3), np.float32)), (meeting, N)]
)
def test_what_may_fail_is_large_or_waits_is_asked_in_one_place(function, batch):
    assert asking(function, batch) == ([], [])
    np.testing.assert_array_equal(function(batch), [function.single(row) for row in batch])


def test_the_question_shows_in_the_source_and_in_the_profile():
    """The line is counted where it is asked."""
    assert "_pcb.Jump(_pcb.Branch('t2', 2, 3), turn=True)" in halvings.source(N)
    profile = halvings.run(N).profile()
    lines = {line.text.strip(): line.counts for function in profile.functions for line in function.lines}
    turns = lines["n = n // 2"].active
    assert lines["while n > 1 and count < 20:"].active == turns + len(N)
