"""A lane's draws are the same alone and in any batch, in eager, graph and XLA mode, inside branches and loops."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import random
from pcbatch.random import choices, draws

LANES = 32
KEYS = random.keys(2026, LANES)
LOW = tf.constant(np.linspace(-3, 5, LANES))
HIGH = LOW + np.geomspace(1e-3, 1e5, LANES)
LANE_ARGUMENTS = (KEYS, LOW, HIGH)
BETWEEN_MODES = {
    "normal64": 2e-10,
    "exponential64": 2e-15,
    "gamma64": 1e-9,
}  # equal within one mode, to this tolerance between modes


def draw_everything(key, low, high, more=True):
    """Each kind of draw, of a scalar or a few elements, for one example with float64 bounds of its own.

    `more` are those whose programs take longer to compile.

    Bounds are only cast here: a sum of products would itself be rounded differently by mode.
    """
    new, old = tf.unstack(random.split(key))
    low32, high32 = tf.cast(low, tf.float32), tf.cast(high, tf.float32)
    integer = tf.cast(high, tf.int32)
    others = (
        {
            "categorical of logits by row": random.categorical(
                key, tf.reshape(low32 * tf.range(6.0), [2, 3]), axis=0, shape=(5, 3)
            ),
            "systematic": random.systematic(key, low32 * tf.range(7.0), 11),
            "choice": random.choice(key, 5, (2, 3)),
            "weighted choice": random.choice(key, tf.range(4.0) * low32, (6,), p=[0.1, 0.2, 0.0, 0.4]),
            "weighted sample": random.choice(key, 7, (3,), p=tf.range(7.0), replace=False),
            "permutation": random.permutation(key, 9),
            "gamma": random.gamma(key, tf.abs(low32), (5,)),
            "gamma64": random.gamma(key, tf.abs(low), (5,), tf.float64),
            "beta": random.beta(key, tf.abs(low32) * [1.0, 0.1], 0.3),
            "poisson": random.poisson(key, tf.abs(low32) * [1.0, 3.0, 20.0, 1e5]),
            "poisson64": random.poisson(key, tf.abs(low), (2,), tf.int64),
        }
        if more
        else {}
    )
    return others | {
        "split": new,
        "fold_in": random.fold_in(old, integer),
        "key": random.key(integer),
        "bits": random.bits(key, (3,)),
        "bits64": random.bits(key, (), tf.uint64),
        "uniform": random.uniform(key, (5,), minval=low32, maxval=high32),
        "uniform64": random.uniform(key, (5,), tf.float64, minval=low, maxval=high),
        "bernoulli": random.bernoulli(key, low32 * 0.2, (4,)),
        "randint": random.randint(key, (3,), -integer, 7 * integer),
        "randint64": random.randint(key, (2, 3), tf.cast(integer, tf.int64) * -(10**10), 3, tf.int64),
        "categorical": random.categorical(key, low32 * tf.range(7.0), shape=(6,)),
        "normal": random.normal(key, (7,)),
        "exponential": random.exponential(key, (7,)),
        "normal16": random.normal(key, (2,), tf.bfloat16),
        "normal64": random.normal(key, (7,), tf.float64),
        "exponential64": random.exponential(key, (7,), tf.float64),
    }


@functools.cache
def alone(more):
    """The draws of each example by itself, eagerly."""
    lanes = [draw_everything(*lane, more) for lane in zip(*LANE_ARGUMENTS, strict=True)]
    return {name: np.stack([lane[name].numpy() for lane in lanes]) for name in lanes[0]}


ALL_SIZES = (1, 3, 17)


@pytest.mark.parametrize(
    ("jit", "sizes", "more"),
    [
        pytest.param(False, (3,), True, id="graph", marks=pytest.mark.slow),
        pytest.param(True, (), False, id="xla"),
        *(pytest.param(jit, ALL_SIZES, True, marks=pytest.mark.slow) for jit in (False, True)),
    ],
)
def test_draws_are_the_same_alone_and_in_any_batch(jit, sizes, more):
    def batched(*arguments):
        return tf.vectorized_map(lambda lane: draw_everything(*lane, more), arguments, fallback_to_while_loop=False)

    compiled = tf.function(batched, jit_compile=jit)
    reference = {name: values.numpy() for name, values in compiled(*LANE_ARGUMENTS).items()}
    for name, values in reference.items():
        np.testing.assert_allclose(values, alone(more)[name], rtol=BETWEEN_MODES.get(name, 0), err_msg=name)
    for lanes in sizes:
        start = LANES - lanes - 1  # so that a lane's place in the arrays differs from its place in the largest batch
        place = slice(start, start + lanes)
        part = compiled(*(argument[place] for argument in LANE_ARGUMENTS))
        for name, values in part.items():
            np.testing.assert_array_equal(values.numpy(), reference[name][place], err_msg=f"{name}, {lanes} lanes")


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_draws_inside_a_branch_inside_a_loop(jit):
    """The machine's shape: blocks vectorised inside `cond` inside `while_loop`; a random walk of three steps."""

    def step(key):
        key, now = tf.unstack(random.split(key))
        return key, random.normal(now)

    def walk(keys, steps):
        def body(i, keys, total):
            def block():
                new, moves = tf.vectorized_map(step, keys, fallback_to_while_loop=False)
                return new, total + moves

            return i + 1, *tf.cond(i % 2 == 0, block, lambda: (keys, total))

        start = (0, keys, tf.zeros(tf.shape(keys)[0]))
        return tf.while_loop(lambda i, *_: i < steps, body, start)[2]

    result = tf.function(walk, jit_compile=jit)(KEYS[:5], tf.constant(6)).numpy()
    for lane in range(5):
        key, total = KEYS[lane], np.float32(0)
        for _ in range(3):
            key, move = step(key)
            total += move.numpy()
        assert result[lane] == total


def test_a_draw_stays_one_call_in_a_vectorised_graph():
    graph = tf.function(
        lambda keys: tf.vectorized_map(random.bits, keys, fallback_to_while_loop=False), autograph=False
    ).get_concrete_function(KEYS)
    kinds = [operation.type for operation in graph.graph.get_operations()]
    assert kinds.count("PartitionedCall") == 2  # the example's, which is traced first, and the batch's
    assert len(kinds) < 40


def test_other_function_calls_are_vectorised_as_before():
    inner = tf.function(lambda x: tf.reduce_sum(x) * 2)
    result = tf.vectorized_map(lambda x: inner(x), tf.constant([[1.0, 2.0], [3.0, 4.0]]), fallback_to_while_loop=False)
    np.testing.assert_array_equal(result, [6, 14])


@pytest.mark.parametrize("shared", ["key", "data"])
def test_one_operand_may_be_common_to_all_lanes(shared):
    numbers = tf.range(5)
    if shared == "key":
        result = tf.vectorized_map(lambda n: random.fold_in(KEYS[0], n), numbers, fallback_to_while_loop=False)
        expected = [random.fold_in(KEYS[0], n) for n in range(5)]
    else:
        result = tf.vectorized_map(lambda key: random.fold_in(key, 3), KEYS[:5], fallback_to_while_loop=False)
        expected = [random.fold_in(key, 3) for key in KEYS[:5]]
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("transform", [draws.standard_normal, draws._exponential, choices._gumbel])
def test_float32_transforms_round_alike_in_every_mode_for_every_input(transform):
    """All 2**23 values of a float32 uniform draw: eager against XLA, and against arrays too short for vector code."""
    units = (np.arange(2**23) * 2.0**-23).astype(np.float32)

    def rounded(unit):
        return tf.cast(transform(unit), tf.float32)

    eager = rounded(tf.constant(units)).numpy()
    np.testing.assert_array_equal(tf.function(rounded, jit_compile=True, autograph=False)(units), eager)
    short = tf.function(rounded, input_signature=[tf.TensorSpec([3], tf.float32)], autograph=False)
    for place in np.random.default_rng(0).integers(0, 2**23, size=(300, 3)):
        np.testing.assert_array_equal(short(units[place]), eager[place])


def test_argmax_takes_the_first_of_equal_scores_in_every_mode():
    """`categorical` relies on it, as float32 scores can tie."""
    scores = tf.constant(np.random.default_rng(0).integers(0, 3, size=(200, 37)), tf.float32)
    expected = np.argmax(scores, axis=-1)
    for jit in (False, True):
        argmax = tf.function(lambda s: tf.argmax(s, axis=-1, output_type=tf.int32), jit_compile=jit, autograph=False)
        np.testing.assert_array_equal(argmax(scores), expected)


def test_a_draw_that_many_read_is_computed_once():
    """XLA computes cheap operations anew for everyone who reads them; the rounds of Threefry are 120 of those."""

    def rounds(readers):
        @tf.function(jit_compile=True)
        def chosen(arrays):
            luck = random.uniform(tf.cast(arrays[0][0, :2], tf.uint32), ())
            return [tf.where(luck < 0.5, array, array + 1) for array in arrays]

        arrays = [tf.ones([8, 16]) * number for number in range(readers)]
        text = chosen.experimental_get_compiler_ir(arrays)(stage="optimized_hlo")
        return text.count(" xor(")

    assert rounds(4) == rounds(1) > 0


@pytest.mark.slow
def test_draws_in_native_code_are_those_in_lockstep_and_alone():
    """Loops of draws end for each lane by itself there, and for all lanes at once here."""

    @pcbatch.autobatch
    def simulated(key, turns, a):
        found = tf.zeros([3])
        count = 0
        while turns > 0:
            key, first, second, third = tf.unstack(random.split(key, 4))
            found = random.gamma(first, a, (3,)) * random.beta(second, a, 0.4)
            count = count + random.poisson(third, a * 10.0) + tf.reduce_sum(random.systematic(first, [0.0, a, 1.0], 5))
            count = (
                3 * count + tf.reduce_sum(random.categorical(second, [0.0, a], shape=(4,))) + random.choice(third, 9)
            )
            turns -= 1
        return found, count

    given = KEYS[:6], tf.constant([0, 1, 2, 3, 4, 3]), tf.constant([0.1, 0.5, 1.0, 2.0, 9.0, 30.0])
    lockstep, native = (simulated.options(form=form) for form in ("lockstep", "native"))
    found, count = lockstep(*given)
    for each in (
        native(*given),
        [tf.concat(part, 0) for part in zip(*(native(*(g[i : i + 1] for g in given)) for i in range(6)), strict=True)],
    ):
        np.testing.assert_array_equal(each[1], count)
        np.testing.assert_allclose(each[0], found, rtol=1e-6)
    for lane in range(6):
        single = simulated.single(*(g[lane] for g in given))
        assert int(single[1]) == count[lane]
        np.testing.assert_allclose(single[0], found[lane], rtol=1e-6)


def test_a_draw_is_computed_once_for_all_that_reads_it():
    """XLA fuses what it takes for cheap with each reader: that was an inverse error function each."""
    readers = [
        lambda x: tf.reverse(x, [0]),
        lambda x: tf.pad(x, [[1, 2]]),
        lambda x: tf.reduce_sum(x * x),
        lambda x: tf.where(x > 0, x, 1.0),
    ]

    def choices(readers):
        """How many selections in float64 there are, of coefficients of a polynomial."""
        draw = tf.function(lambda key: [read(random.normal(key, (25,))) for read in readers], jit_compile=True)
        text = draw.experimental_get_compiler_ir(random.key(1))(stage="optimized_hlo")
        return sum("f64[25]" in line and " select(" in line for line in text.splitlines())

    assert 0 < choices(readers) == choices(readers[:1])
