"""What is tuned to XLA's CPU compiler gives what the plain form gives, and is off where it is switched off."""

import re

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend, graphs, xla_cpu
from pcbatch.runtime.backends.tensorflow.xla_cpu import gathering, softplus
from pcbatch.runtime.costs.device import CPU
from tests.runtime.lanes import for_all_lanes

BACKEND = TensorFlowBackend()
LANES = 6
RNG = np.random.default_rng(0)
MASK = np.array([True, False, True, True, False, True])
COLUMNS = [RNG.normal(size=(LANES, 3)).astype(np.float32) for _ in range(5)]
NEW = [RNG.normal(size=(LANES, 3)).astype(np.float32) for _ in range(5)]
LARGE = RNG.normal(size=(LANES, CPU.split_read // 16)).astype(np.float32)
MATRIX = RNG.normal(size=(12, 5)).astype(np.float32)


def guarded(go, *arrays):
    return BACKEND.guarded(go, lambda go, *now: [array * 2.0 + 1.0 for array in now], arrays, [False] * len(arrays))


def looped_product(rows, matrix):
    """In a loop, which the matrix comes into from outside."""
    return tf.while_loop(
        lambda turn, _: turn < 3,
        lambda turn, found: (turn + 1, found + gathering.times_transposed(rows, matrix)),
        (0, tf.zeros([rows.shape[0], matrix.shape[0]])),
    )[1]


OPERATIONS = {
    "a guard that runs": (guarded, [True, *COLUMNS], {"StatelessWhile", "While"}),
    "a guard that does not": (guarded, [False, *COLUMNS], {"StatelessWhile", "While"}),
    "many writes": (
        lambda mask, *each: BACKEND.where([mask] * 5, each[:5], each[5:]),
        [MASK, *NEW, *COLUMNS],
        {"LogicalAnd"},
    ),
    "a tally": (
        lambda numbers: BACKEND.tally(numbers, [2, 0, 5]),
        [np.array([0, 2, 2, 7, 5, 2], np.int32)],
        {"MatMul", "BatchMatMulV2"},
    ),
    "a tally of all": (
        lambda numbers: BACKEND.tally(numbers, range(6)),
        [np.array([0, 2, 2, 7, 5, -1], np.int32)],
        {"MatMul", "BatchMatMulV2"},
    ),
    "a tally of many": (
        lambda numbers: BACKEND.tally(numbers, range(6)),
        [np.arange(1003, dtype=np.int32) ** 2 % 11 - 2],
        {"FloorMod"},
    ),
    "a long vector": (lambda *scalars: BACKEND.stack(scalars), [np.float32(x) for x in range(11)], {"SelectV2"}),
    "a row": (BACKEND.with_rows, [COLUMNS[0], np.int32(4), NEW[0][:1]], {"XlaDynamicUpdateSlice"}),
    "a large array": (
        lambda array, index: BACKEND.load(array, [index]),
        [LARGE, np.array([0, 5, 9, LARGE.shape[1] - 1, LARGE.shape[1], -1], np.int32)],
        {"XlaDynamicUpdateSlice"},
    ),
    "a row of a large array": (
        lambda array, index: for_all_lanes(lambda i: [tf.gather(array, i)], [index])[0],
        [LARGE.T, np.array([3, 0, LARGE.shape[1] - 1], np.int32)],
        {"XlaDynamicUpdateSlice"},
    ),
    "arrays to write on": (
        lambda count, *zeros: BACKEND.made_apart(zeros, count),
        [np.int32(0), *[np.zeros((CPU.copied // 8, 2), np.float32)] * 2, np.zeros(CPU.copied, bool)],
        {"Fill"},
    ),
    "a product": (looped_product, [RNG.normal(size=(4, 5)).astype(np.float32), MATRIX], {"Transpose"}),
    "softplus": (lambda x: for_all_lanes(lambda row: [tf.nn.softplus(row)], [x])[0], [COLUMNS[0]], {"Relu"}),
    "a long sum": (
        lambda x: for_all_lanes(lambda row: [tf.reduce_sum(row)], [x])[0],
        [RNG.normal(size=(3, CPU.quartered + 3)).astype(np.float32)],
        {"Pad"},
    ),
}
"""A function of TensorFlow's arrays, arguments, and operations of which its tuned form has one, its plain form none."""
ROUNDED = {"a product", "softplus", "a long sum"}
"""What the two forms round otherwise."""


def kinds_in(function, arguments):
    """The types of all operations of a function as XLA would compile it now."""
    graph = tf.function(function, jit_compile=True, autograph=False).get_concrete_function(*arguments).graph
    bodies = graph.as_graph_def().library.function
    return {op.type for op in graph.get_operations()} | {node.op for body in bodies for node in body.node_def}


@pytest.mark.parametrize("name", OPERATIONS)
def test_both_forms_give_the_same(name, monkeypatch):
    """The same bits, NaN and all, but where `ROUNDED` says otherwise."""
    monkeypatch.setattr(graphs, "has_gpu", lambda: False)
    function, arguments, telling = OPERATIONS[name]
    arguments = [*map(tf.constant, arguments)]

    def found():
        results = tf.function(function, jit_compile=True, autograph=False)(*arguments)
        return [np.asarray(each) for each in tf.nest.flatten(results)]

    tuned = found()
    assert kinds_in(function, arguments) & telling
    with xla_cpu.switched(False):
        plain = found()
        assert not kinds_in(function, arguments) & telling
    for one, other in zip(tuned, plain, strict=True):
        assert one.dtype == other.dtype
        if name in ROUNDED:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_plain_form_on_a_gpu(name, monkeypatch):
    monkeypatch.setattr(graphs, "has_gpu", lambda: True)
    function, arguments, telling = OPERATIONS[name]
    assert not kinds_in(function, [*map(tf.constant, arguments)]) & telling


def test_arrays_to_write_on_are_not_copied(monkeypatch):
    """XLA copies those that it knows to be equal, for the loop that writes on each."""
    monkeypatch.setattr(graphs, "has_gpu", lambda: False)
    rows = CPU.copied // 8

    def written(turns):
        zeros = BACKEND.made_apart([tf.zeros([rows, 2]) for _ in range(4)], turns)

        def turn(number, *arrays):
            row = tf.cast(number, tf.float32) * tf.constant([1.0, 2.0])
            return number + 1, *(
                BACKEND.with_rows(array, number, row[None] * scale) for scale, array in enumerate(arrays, 1)
            )

        return tf.while_loop(lambda number, *_: number < turns, turn, (tf.constant(0), *zeros))[1:]

    def copies():
        function = tf.function(written, jit_compile=True, autograph=False)
        text = function.experimental_get_compiler_ir(tf.constant(3))(stage="optimized_hlo")
        return len(re.findall(rf" = f32\[{rows},2\]\S* copy\(", text)), function(tf.constant(3))

    few, tuned = copies()
    with xla_cpu.switched(False):
        many, expected = copies()
    assert few == 0
    assert many >= 3
    for one, other in zip(tuned, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_programs_are_kept_apart():
    """A compiled program is traced once with the switch on and once with it off."""
    traced = []

    def doubled(x):
        traced.append(xla_cpu.is_on())
        return x * 2

    program = BACKEND.compile(doubled, True)
    for on in (True, False, True, False):
        with xla_cpu.switched(on):
            assert program(tf.constant(3)).numpy() == 6
    assert traced == [True, False]


def test_the_switch_goes_back():
    assert xla_cpu.is_on()
    with xla_cpu.switched(False):
        assert not xla_cpu.is_on()
        with xla_cpu.switched(True):
            assert xla_cpu.is_on()
        assert not xla_cpu.is_on()

    def fails():
        with xla_cpu.switched(False):
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fails()
    assert xla_cpu.is_on()


def test_the_environment_decides():
    wanted = [xla_cpu.wanted(environment) for environment in ({}, {"PCBATCH_XLA_CPU": "1"}, {"PCBATCH_XLA_CPU": "0"})]
    assert wanted == [True, True, False]


@pcbatch.autobatch
def walk(n, table, x):
    """Calls, loops, stores and many variables."""
    a, b, c, d = x[0], x[1], x[2], 0.0
    while n > 0:
        a, b, c, d = b + table[n], c - a, d * 0.5, a
        x[n % 3] = a
        n -= 1
    if a > 2.0 and c < 100.0:
        return walk(2, table, x) + tf.reduce_max(x)
    return a + b + c + d


def test_a_program_gives_the_same_bits():
    n, table = np.array([0, 5, 3, 9, 1, 2], np.int32), LARGE[:, : CPU.split_read // 16]
    tuned = walk.run(n, table, NEW[0])
    with xla_cpu.switched(False):
        plain = walk.run(n, table, NEW[0])
    np.testing.assert_array_equal(np.asarray(tuned.value).view(np.int32), np.asarray(plain.value).view(np.int32))
    assert tuned.status.tolist() == plain.status.tolist()
    assert (tuned.trips, tuned.block_runs) == (plain.trips, plain.block_runs)


def test_softplus_is_the_only_rule_here():
    """Others lie by family beside TensorFlow's."""
    assert set(softplus.CORRECTIONS) == {"SoftplusGrad"}
