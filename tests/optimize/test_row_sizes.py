"""Row sizes: which blocks run on gathered lanes, said in the program that is executed."""

import numpy as np
import tensorflow as tf

import pcbatch
from pcbatch.ir.text.machine_parser import parse_machine
from pcbatch.ir.verify.machine import verify_machine
from pcbatch.optimize.machine.row_sizes import DEFAULT, Compaction

W = tf.ones([600, 600]) / 600


@pcbatch.autobatch
def walk(n, x):
    """A loop around a product that is expensive for each lane."""
    while n > 0:
        if n % 3 == 0:
            x = tf.linalg.matvec(W, x)
        n = n - 1
    return x


def batch(lanes):
    return np.arange(lanes, dtype=np.int32), np.ones((lanes, 600), np.float32)


def test_what_is_executed_says_on_how_many_rows():
    text = walk.ir("machine", *batch(64))
    rows = [line.strip() for line in text.splitlines() if line.strip().startswith("rows ")]
    assert len(rows) == 1, text
    sizes = [int(size) for size in rows[0].removeprefix("rows ").split(", ")]
    assert sizes == sorted(sizes)
    assert all(size < 64 and size % DEFAULT.multiple == 0 for size in sizes)
    program = parse_machine(text)
    verify_machine(program)
    assert [block.sizes for block in program.blocks if block.sizes] == [tuple(sizes)]


def test_few_lanes_and_deterministic_runs_have_no_sizes():
    assert "rows " not in walk.ir("machine", *batch(4))
    assert "rows " not in walk.options(deterministic=True).ir("machine", *batch(64))
    assert "rows " not in walk.options(backend="reference").ir("machine", *batch(64))


def test_where_gathering_costs_nothing_every_block_may_gather():
    pipeline = walk.pipeline(*batch(8))
    program = pipeline.machine_program
    costs = [1.0 if not block.body else 1e4 for block in program.blocks]
    every = Compaction(floor=2, most=2, multiple=1, fixed=0.0, scale=0.0).sized(program, costs, 8)
    verify_machine(every)
    assert any(block.sizes for block in every.blocks)
