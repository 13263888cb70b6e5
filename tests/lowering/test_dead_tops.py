"""Values that nobody reads once their block is over are not kept: what a call has taken back from its stacks, say."""

import numpy as np
import pytest

import pcbatch
from pcbatch.ir.machine import Block, Piece, Program, Return
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.machine.machine import Machine
from tests.runtime.tables import INT

N = np.array([0, 5, 3, 1], np.int32)


@pcbatch.autobatch
def leaves(n):
    """Fibonacci's tree; `left` waits on a stack for the second call."""
    if n < 2:
        return 1
    left = leaves(n - 1)
    return left + leaves(n - 2)


@pcbatch.autobatch
def checked(n):
    """The same, but what is taken back from the stack is shown by a message of a later block."""
    if n < 2:
        return 1
    left = checked(n - 1)
    right = checked(n - 2)
    if left + right > 5:
        raise ValueError(f"{left} and {right}")
    return left + right


def dead(function):
    """What each block does not keep of what it pops."""
    blocks = function.pipeline(N).table.blocks
    return {name for block in blocks for name in block.dead if name in block.pops}


def test_what_is_taken_back_and_used_up_is_not_kept():
    assert "left" in dead(leaves)
    np.testing.assert_array_equal(leaves(N), [leaves.single(int(n)) for n in N])


def test_what_a_message_shows_is_kept():
    assert "left" not in dead(checked)
    run = checked.run(N)
    assert [error.lane for error in run.errors] == [1]
    assert "ValueError: 5 and 3" in str(run.errors[0])


def test_tables_that_lose_stored_arrays_are_refused():
    blocks = (Block("b0", (Piece(lambda x: (x,), ("x",), ("x",)),), Return(), dead=("y",)),)
    program = Program("wrong", ("x",), ("x",), {"x": INT}, {"x": "register"}, blocks)
    with pytest.raises(ValueError, match="cannot all be dead"):
        Machine(program, TensorFlowBackend())
