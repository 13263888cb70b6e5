"""Compaction: which blocks run on gathered lanes, said in the program that is executed."""

import numpy as np
import tensorflow as tf

import pcbatch
from pcbatch.ir.machine import Chunks
from pcbatch.ir.machine_verifier import verify_machine
from tests.ir.machine_parser import parse_machine

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


def chunks_in(text):
    """The lines that say how many rows are computed at a time."""
    return [line.strip() for line in text.splitlines() if line.strip().startswith("rows ")]


def test_what_is_executed_says_on_how_many_rows():
    text = walk.ir("machine", *batch(64))
    assert chunks_in(text) == ["rows 8, in pairs"]
    program = parse_machine(text)
    verify_machine(program)
    assert [block.chunks for block in program.blocks if block.chunks] == [Chunks(8, pairs=True)]


def test_few_chunks_are_no_pairs():
    assert chunks_in(walk.ir("machine", *batch(16))) == ["rows 8, all from 13"]


def test_deterministic_programs_are_the_same_for_all_numbers_of_lanes():
    fixed = walk.options(deterministic=True)
    text = fixed.ir("machine", *batch(64))
    assert chunks_in(text) == ["rows 8"]
    assert fixed.ir("machine", *batch(3)) == text


def test_few_lanes_and_the_reference_have_no_chunks():
    assert not chunks_in(walk.ir("machine", *batch(4)))
    assert not chunks_in(walk.options(backend="reference").ir("machine", *batch(64)))
