"""Casts: a weaker value is cast by an op, so that the ends of blocks mean nothing, and answers stay Python's."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.ir import program as ir
from pcbatch.ir.payload import Cast, Copy
from pcbatch.ir.verifier import verify
from pcbatch.optimize.cfg.block_merging import merge_straight_lines
from pcbatch.optimize.pipeline import optimize
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.interpreter import interpret

N = np.array([0, 1, 4, 7], np.int32)
X = np.array([0.5, -1.5, 2.25, 3.0], np.float32)


@pcbatch.autobatch
def halved(n, x):
    total = 7
    third = total // 2  # an int still
    while n > 0:
        total = total * x + third
        n = n - 1
    return total


@pcbatch.autobatch
def arms(n, x):
    y = x
    if n > 2:
        y = 7
        z = y // 2
    else:
        y = 7
        z = y / 2
    return y * 1.5 + z


@pcbatch.autobatch
def shared_work(n, x):
    y = x
    if n > 2:
        y = 3
        z = tf.exp(x) + y // 2
    else:
        y = 5
        z = tf.exp(-x) + y // 2
    return y / 2 + z


@pcbatch.autobatch
def number(n, x):
    if n > 2:
        return 7
    return x


@pcbatch.autobatch
def takes_float(x, n):
    if n > 0:
        return takes_float(x * 0.5, n - 1)
    return x


@pcbatch.autobatch
def called(n, x):
    first = takes_float(x, n)
    y = 1
    if n > 1:
        y = takes_float(3.0, 1)
    return first + y


@pcbatch.autobatch
def weak_number(n):
    if n > 2:
        return 2
    return 3


@pcbatch.autobatch
def by_result(n, x):
    y = weak_number(n)
    z = y // 2
    while n > 0:
        y = y * x
        n = n - 1
    return y + z


@pcbatch.autobatch
def down(n, x, y):
    if n == 0:
        return y + x
    return down(n - 1, x, 7)


class Pair(NamedTuple):
    a: float
    b: int


@dataclass(frozen=True)
class State:
    pair: Pair
    c: float


@pcbatch.autobatch
def structured(n, x):
    state = State(Pair(1, 2), 3)
    whole = state.pair.a // 2
    while n > 0:
        state = State(Pair(state.pair.a * x, state.pair.b), state.c + x)
        n = n - 1
    a, b = state.pair
    return a + b + state.c + whole


@pcbatch.autobatch
def packed(n, x):
    one = 1
    pair = (one, one)
    while n > 0:
        a, b = pair
        pair = (a + x, b)
        n = n - 1
    return pair[0] * pair[1]


@pcbatch.autobatch
def rows(n, x):
    first, second = tf.stack([x, x + 1.0])
    copy, cast = 1, 2
    pack = (copy, cast)
    unpack, constant = pack
    while n > 0:
        copy = copy + first
        cast = cast * 2
        n = n - 1
    index = [copy, second]
    return index[0] + index[1] + unpack + constant + cast


@pcbatch.autobatch
def hoisted(n, x):
    if n > 2:
        y = 7
        z = y << 1  # of an int only
    else:
        y = 7
        z = y >> 1
    while n > 0:
        y = y * x
        n = n - 1
    return y + z // 2


@pcbatch.autobatch
def read_behind_what_melds(n, x):
    other = -x
    if n > 2:
        y = n // 3  # it might fail, for all that passes know: the arms stay blocks
        y = 7
        w = tf.exp(x)
        z = y & 3  # of an int only
    else:
        y = n // 4
        y = 9
        w = tf.exp(other)
        z = y & 5
    while n > 0:
        y = y * x
        n = n - 1
    return y + z // 2 + w


@pcbatch.autobatch
def chosen(n, x):
    y = 1 if n > 2 else 0
    z = 3 if n > 1 else x
    while n > 0:
        y = y * x + (y // 2)
        n = n - 1
    return y + z


PROGRAMS = [
    hoisted,
    read_behind_what_melds,
    chosen,
    halved,
    arms,
    shared_work,
    number,
    called,
    by_result,
    structured,
    packed,
    rows,
]


def parts(function):
    """The typed program of a function, and what runs a program like it on a lane."""
    compilation = function.pipeline(N, X)
    evaluate, store = interpreter_callbacks(compilation.cfg, compilation.environment)

    def run(program, lane):
        arguments = [function.as_example(name, value[lane]) for name, value in (("n", N), ("x", X))]
        value = interpret(program, arguments, evaluate, store).value
        array = np.asarray(getattr(value, "value", value))  # of a weak number
        assert array.dtype != object
        return array

    return compilation.cfg, run


def casts(program):
    ops = (op for block in program.blocks() for op in block.ops)
    return [op for op in ops if isinstance(op, ir.Coded) and isinstance(op.code, Cast)]


PYTHON = {function: function.__wrapped__ for function in PROGRAMS}
PYTHON[called] = lambda n, x: x * 0.5**n + (1.5 if n > 1 else 1)
PYTHON[by_result] = lambda n, x: (2 if n > 2 else 3) * x**n + 1


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_answers_are_pythons(function):
    plain = [float(PYTHON[function](int(n), float(x))) for n, x in zip(N, X, strict=True)]
    np.testing.assert_allclose(np.asarray(function(N, X)), np.array(plain, np.float32), rtol=1e-6)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_each_pass_keeps_each_bit(function):
    """The interpreter converts nothing at the ends of blocks: a value that a pass leaves uncast shows."""
    program, run = parts(function)
    expected = [run(program, lane).tobytes() for lane in range(len(N))]
    stages: list[tuple[str, ir.Program]] = []
    optimize(program, after=lambda name, after: stages.append((name, after)))
    before = program
    for name, after in stages:
        if after != before:
            verify(after)
            assert [run(after, lane).tobytes() for lane in range(len(N))] == expected, name
        before = after


def test_every_call_hands_over_and_gives_what_the_callee_says():
    for function in PROGRAMS:
        program, _ = parts(function)
        types = {f.name: {v.name: v.type for v in f.variables} for f in program.functions}
        for owner in program.functions:
            for op in (op for block in owner.blocks for op in block.ops if isinstance(op, ir.Call)):
                callee = program.function(op.function)
                operands = zip((*op.arguments, *op.outputs), (*callee.parameters, *callee.results), strict=True)
                for mine, theirs in operands:
                    assert types[owner.name][mine] == types[callee.name][theirs], (function.__name__, mine)


def test_merging_blocks_is_the_identity():
    program, _ = parts(halved)
    ops = [op for block in program.blocks() for op in block.ops]
    merged = merge_straight_lines(program)
    assert [op for block in merged.blocks() for op in block.ops] == ops


def test_without_a_cast_an_answer_changes():
    program, run = parts(number)
    assert casts(program)

    def uncast(op: ir.Op) -> ir.Op:
        found = isinstance(op, ir.Primitive) and isinstance(op.code, Cast)
        return replace(op, code=Copy()) if found else op

    entry = program.entry
    blocks = tuple(replace(block, ops=tuple(map(uncast, block.ops))) for block in entry.blocks)
    broken = replace(program, functions=(replace(entry, blocks=blocks), *program.functions[1:]))
    assert any(run(broken, lane).tobytes() != run(program, lane).tobytes() for lane in range(len(N)))


def test_a_tail_call_with_a_cast_stays_one():
    deep = np.full(4, 3000, np.int32)
    np.testing.assert_array_equal(np.asarray(down(deep, X, X)), X + 7)
    program = optimize(down.pipeline(deep, X, X).cfg)
    (function,) = program.functions
    (block,) = [b for b in function.blocks if any(isinstance(op, ir.Call) for op in b.ops)]
    assert isinstance(block.ops[-1], ir.Call)
    assert block.ops[-1].outputs == function.results
    assert any(isinstance(op, ir.Primitive) and isinstance(op.code, Cast) for op in block.ops)
