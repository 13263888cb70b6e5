"""pcbatch.random against published vectors and against numbers that jax.random prints, and its argument errors."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from pcbatch import random
from pcbatch.random import draws, rejection
from pcbatch.random.draws import FRACTION
from pcbatch.random.keys import threefry2x32

# From `kat_vectors` of Random123 (Salmon et al., SC 2011), threefry2x32, 20 rounds: counter, key, result.
KNOWN_ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_threefry_meets_the_published_known_answers(counter, key, answer):
    result = threefry2x32(*(tf.constant([word], tf.uint32) for word in (*key, *counter)))
    assert tuple(int(word[0]) for word in result) == answer


# Printed by jax.random of JAX 0.10.2 with PRNGKey(42) (64-bit lines with jax_enable_x64).
KEY = random.key(42)
JAX_EXACT = {
    "key": (random.key(42), [0, 42]),
    "key of -1": (random.key(-1), [2**32 - 1, 2**32 - 1]),
    "key of 2**40 + 3": (random.key(2**40 + 3), [256, 3]),
    "split": (
        random.split(KEY, 3),
        [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]],
    ),
    "fold_in": (random.fold_in(KEY, 5), [2765691542, 824333390]),
    "bits": (random.bits(KEY, (4,)), [2098992034, 2919706841, 2646866425, 2409546199]),
    "scalar bits": (random.bits(KEY), 2098992034),
    "64 bits": (random.bits(KEY, 2, tf.uint64), [7871734211187709741, 276886910877598708]),
    "uniform": (
        random.uniform(KEY, (4,)),
        [0.48870956897735596, 0.6797971725463867, 0.6162714958190918, 0.5610160827636719],
    ),
    "uniform between bounds": (
        random.uniform(KEY, (2, 2), minval=-1.0, maxval=3.0),
        [[0.9548382759094238, 1.7191886901855469], [1.4650859832763672, 1.2440643310546875]],
    ),
    "float64 uniform": (
        random.uniform(KEY, 3, tf.float64),
        [0.4267275666499091, 0.015010069515314584, 0.5741444178995352],
    ),
    "bernoulli": (random.bernoulli(KEY, 0.3, (12,)), [i == 6 for i in range(12)]),
    "categorical": (
        random.categorical(KEY, np.tile(np.log(np.float32([0.1, 0.2, 0.3, 0.4])), (12, 1))),
        [3, 3, 3, 3, 3, 3, 1, 1, 1, 1, 3, 3],
    ),
}
JAX_ROUNDED = {
    "normal": (
        random.normal(KEY, (4,)),
        [-0.02830461598932743, 0.4671318531036377, 0.2957029640674591, 0.15354591608047485],
    ),
    "exponential": (
        random.exponential(KEY, (4,)),
        [0.670817494392395, 1.1388006210327148, 0.9578199982643127, 0.8232924938201904],
    ),
    "float64 normal": (
        random.normal(KEY, 3, tf.float64),
        [-0.18471174528191162, -2.169824560397754, 0.18693555179382582],
    ),
    "float64 exponential": (
        random.exponential(KEY, 3, tf.float64),
        [0.5563942243855916, 0.015123860720489336, 0.8536549993431988],
    ),
}


@pytest.mark.parametrize("name", JAX_EXACT)
def test_equal_to_jax(name):
    drawn, expected = JAX_EXACT[name]
    np.testing.assert_array_equal(drawn.numpy(), np.asarray(expected, drawn.dtype.as_numpy_dtype))


@pytest.mark.parametrize("name", JAX_ROUNDED)
def test_equal_to_jax_to_rounding(name):
    drawn, expected = JAX_ROUNDED[name]
    np.testing.assert_allclose(drawn.numpy(), expected, rtol=1e-14 if drawn.dtype == tf.float64 else 3e-7)


def test_seeds_and_folded_numbers_may_be_tensors():
    for seed in (42, -1, 2**31 - 1, -(2**31)):
        np.testing.assert_array_equal(random.key(tf.constant(seed)), random.key(seed))
        np.testing.assert_array_equal(random.key(tf.constant(seed, tf.int64)), random.key(seed))
        np.testing.assert_array_equal(random.fold_in(KEY, tf.constant(seed)), random.fold_in(KEY, seed))


def test_folding_in_a_number_gives_the_key_split_off_at_that_place():
    np.testing.assert_array_equal([random.fold_in(KEY, n) for n in range(4)], random.split(KEY, 4))


def test_the_key_of_a_lane_does_not_depend_on_the_number_of_lanes():
    np.testing.assert_array_equal(random.keys(7, 3), random.keys(7, 100)[:3])
    np.testing.assert_array_equal(random.split(KEY, (2, 3)), tf.reshape(random.split(KEY, 6), (2, 3, 2)))


class Weak:
    """A number that becomes a tensor of whatever dtype is asked for, much as pcbatch's weak numbers do."""

    def __init__(self, value):
        self.value = value

    def __tf_tensor__(self, dtype=None, name=None):
        return tf.constant(self.value, dtype)


def test_bounds_may_be_numbers_tensors_or_weak_numbers():
    plain = random.uniform(KEY, (3,), minval=-1, maxval=2)
    for low, high in ((tf.constant(-1.0), tf.constant(2.0)), (Weak(-1), Weak(2)), (np.float64(-1), tf.fill([3], 2.0))):
        np.testing.assert_array_equal(random.uniform(KEY, (3,), minval=low, maxval=high), plain)
    plain = random.randint(KEY, (3,), -5, 90)
    for low, high in ((tf.constant(-5), tf.constant(90, tf.int64)), (Weak(-5), Weak(90)), (np.int64(-5), [90] * 3)):
        np.testing.assert_array_equal(random.randint(KEY, (3,), low, high), plain)
    np.testing.assert_array_equal(random.bernoulli(KEY, Weak(0.3), (3,)), random.bernoulli(KEY, 0.3, (3,)))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 7), (-3, 2**20 + 5), (-(2**31), 2**31), (2**31 - 1, 2**31)])
def test_int32_randint_is_a_64_bit_number_scaled_exactly(low, high):
    r = [(int(w) & 0xFFFFFFFF) << 32 | int(w) >> 32 for w in random.bits(KEY, 200, tf.uint64).numpy()]
    expected = [low + (word * (high - low) >> 64) for word in r]
    assert random.randint(KEY, 200, low, high).numpy().tolist() == expected


@pytest.mark.parametrize(("low", "high"), [(-3, 2**40 + 5), (-(2**63), 2**63 - 1), (0, 2**63 - 1), (5, 6)])
def test_int64_randint_is_a_128_bit_number_scaled_exactly(low, high):
    words = [(int(w) >> 32, int(w) & 0xFFFFFFFF) for w in random.bits(KEY, 400, tf.uint64).numpy()]
    pairs = zip(words[:200], words[200:], strict=True)
    r = [h0 | h1 << 32 | l0 << 64 | l1 << 96 for (h0, l0), (h1, l1) in pairs]
    expected = [low + (word * (high - low) >> 128) for word in r]
    assert random.randint(KEY, 200, low, high, tf.int64).numpy().tolist() == expected


def test_randint_of_an_empty_range_of_tensors_is_minval():
    low = tf.constant([5, 5, -7])
    np.testing.assert_array_equal(random.randint(KEY, 3, low, tf.constant([5, 2, -(2**31)])), low)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_float_dtypes(dtype):
    uniform = random.uniform(KEY, 2000, dtype)
    assert uniform.dtype == random.normal(KEY, 3, dtype).dtype == random.exponential(KEY, 3, dtype).dtype == dtype
    assert 0 <= float(tf.reduce_min(uniform)) < 0.01
    assert 0.99 < float(tf.reduce_max(uniform)) < 1
    assert random.categorical(KEY, tf.zeros([4], dtype)).dtype == tf.int32
    assert random.bernoulli(KEY, tf.fill([3], tf.constant(0.5, dtype))).shape == (3,)


def test_categorical_axes_and_shapes():
    logits = tf.constant(np.log(np.eye(4, 3) + 1e-30), tf.float32)  # one sure category for each of the first three rows
    assert random.categorical(KEY, logits).numpy()[:3].tolist() == [0, 1, 2]
    assert random.categorical(KEY, tf.transpose(logits), axis=0).numpy()[:3].tolist() == [0, 1, 2]
    assert random.categorical(KEY, logits, axis=0).numpy().tolist() == [0, 1, 2]
    assert random.categorical(KEY, logits, shape=(5, 2, 4)).numpy()[..., :3].tolist() == [[[0, 1, 2]] * 2] * 5
    assert int(random.categorical(KEY, [-np.inf, 0.0, -np.inf])) == 1


def test_what_is_chosen_from_and_how_many():
    assert sorted(random.permutation(KEY, 6).numpy().tolist()) == [0, 1, 2, 3, 4, 5]
    rows = tf.reshape(tf.range(6), [3, 2])
    assert sorted(random.permutation(KEY, rows).numpy().tolist()) == [[0, 1], [2, 3], [4, 5]]
    assert random.choice(KEY, rows, (4, 5)).shape == (4, 5, 2)
    assert sorted(random.choice(KEY, rows, 3, replace=False).numpy()[:, 0].tolist()) == [0, 2, 4]
    assert random.choice(KEY, [7, 8, 9], (5,), p=[0.0, 3.0, 0.0]).numpy().tolist() == [8] * 5
    assert set(random.choice(KEY, 4, 2, p=[0.0, 1.0, 0.0, 1.0], replace=False).numpy().tolist()) == {1, 3}
    assert int(random.choice(KEY, 1)) == 0
    assert random.systematic(KEY, [0.0, 0.0, 0.0]).numpy().tolist() == [0, 1, 2]
    assert random.systematic(KEY, tf.math.log([0.5, 0.25, 0.25]), 4).numpy().tolist() == [0, 0, 1, 2]


def test_weights_that_are_none_count_as_nothing():
    """NaN and -inf; where all are, there is an index all the same."""
    nan, inf = float("nan"), float("inf")
    assert set(random.categorical(KEY, [-inf, 0.0, -inf], shape=(9,)).numpy().tolist()) == {1}
    assert set(random.choice(KEY, 3, (9,), p=[-1.0, nan, 2.0]).numpy().tolist()) <= {0, 1, 2}
    for logits in ([nan, 0.0, nan, -inf], [-inf, inf, 3.0, nan], [-3.0, inf, -inf, -3.0]):
        assert int(random.categorical(KEY, logits)) == 1
        assert set(random.categorical(KEY, logits, shape=(9,)).numpy().tolist()) == {1}
        assert set(random.systematic(KEY, logits).numpy().tolist()) == {1}
    for weights in ([0.0, 1.0, nan, -1.0], [2.0, inf, nan, 0.0], [0.0, 1e-300, 0.0, nan]):
        assert set(random.choice(KEY, 4, (9,), p=np.array(weights)).numpy().tolist()) == {1}
        assert int(random.choice(KEY, 4, (1,), p=np.array(weights), replace=False)[0]) == 1
    for logits in ([-inf] * 3, [nan] * 3):
        found = [*random.categorical(KEY, logits, shape=(9,)).numpy(), *random.systematic(KEY, logits).numpy()]
        assert set(found) <= {0, 1, 2}


BOUNDS = [(1.0, 1.0000001), (1e8, 1e8 + 8), (1000.0, 1001.0), (-1001.0, -1000.0), (-1.0, 0.0), (-1.0, 1e-3), (2.0, 2.0)]
WIDE_BOUNDS = [*BOUNDS, (-3e38, 3e38), (3.0, 1.0), (-1e-38, 1e38)]


@pytest.mark.parametrize("dtype", FRACTION, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "xla"])
def test_uniform_draws_at_the_ends_of_their_range(dtype, jit, monkeypatch):
    """The least and the largest fractions lie in the range, and what JAX gives stays as it is where it is below."""
    bits = FRACTION[dtype]
    unit = np.array([0, 1, 2 ** (bits - 1), 2**bits - 2, 2**bits - 1]) / 2.0**bits
    monkeypatch.setattr(draws, "unit_draws", lambda key, shape, dtype: tf.constant(unit, dtype))
    drawn = tf.function(
        lambda low, high: random.uniform(KEY, (5,), dtype, minval=low, maxval=high), jit_compile=jit, autograph=False
    )
    for pair in BOUNDS if dtype == tf.float16 else WIDE_BOUNDS:
        low, high = (tf.constant(each, dtype) for each in pair)
        if not bool(tf.math.is_finite(low) & tf.math.is_finite(high)):
            continue
        found = drawn(low, high)
        if low >= high:
            assert bool(tf.reduce_all(found == low))
            continue
        assert bool(tf.reduce_all((low <= found) & (found < high))), (pair, found)
        plain = tf.constant(unit, dtype) * (high - low) + low
        same = (found == plain) | (plain >= high) | ~tf.math.is_finite(plain)
        assert bool(tf.reduce_all(same)), (pair, found, plain)
        assert bool(tf.reduce_all(found[1:] >= found[:-1]))


def test_gradients_at_the_ends_of_a_range(monkeypatch):
    unit = tf.constant([0.0, 0.5, 1 - 2.0**-23])
    monkeypatch.setattr(draws, "unit_draws", lambda key, shape, dtype: unit)
    low, high = tf.constant(1000.0), tf.constant(1001.0)
    with tf.GradientTape() as tape:
        tape.watch((low, high))
        found = random.uniform(KEY, (3,), minval=low, maxval=high)
    assert found[2] < high
    gradients = tape.gradient(found, (low, high))
    np.testing.assert_allclose(gradients, [float(sum(1 - unit)), float(sum(unit))], rtol=1e-6)


def test_the_least_and_the_largest_fraction_of_the_other_draws(monkeypatch):
    for fraction in (0.0, 1 - 2.0**-23, 1 - 2.0**-52):
        for place in (draws, draws):
            monkeypatch.setattr(
                place, "unit_draws", lambda key, shape, dtype, u=fraction: tf.fill(shape, tf.constant(u, dtype))
            )
        dtype = tf.float64 if fraction > 1 - 2.0**-23 else tf.float32
        assert np.isfinite(random.normal(KEY, (2,), dtype)).all()
        assert np.isfinite(random.exponential(KEY, (2,), dtype)).all()
        assert (random.exponential(KEY, (2,), dtype).numpy() >= 0).all()
        never, always = (random.bernoulli(KEY, tf.constant(p, dtype)) for p in (0.0, 1.0))
        assert (bool(never), bool(always)) == (False, True)
        assert int(random.categorical(KEY, tf.constant([-np.inf, 0.0, -np.inf], dtype))) == 1


def test_a_poisson_draw_ends_where_the_sum_of_probabilities_does(monkeypatch):
    monkeypatch.setattr(rejection, "_fraction", lambda *_: tf.fill([50], tf.constant(1 - 2.0**-52, tf.float64)))
    word, rate = tf.constant([1], tf.uint32), np.linspace(0.01, 9.99, 50)
    found = rejection._searched(word, word, tf.zeros([50], tf.uint32), tf.constant(rate))
    # By the distribution's tail, of which a sum that ends at 1 - 2**-53 knows the first digits.
    np.testing.assert_allclose(found, stats.poisson(rate).isf(2.0**-52), atol=2)


def test_gamma_beta_and_poisson_of_extreme_parameters():
    odd = tf.constant([0.0, -1.0, float("nan"), float("inf")])
    assert np.isnan(random.gamma(KEY, odd)).all()
    assert np.isnan(random.beta(KEY, odd, 1.0)).all()
    assert random.poisson(KEY, odd).numpy().tolist() == [0, -1, -1, -1]
    assert random.poisson(KEY, tf.constant([1e12])).numpy().tolist() == [-1]
    assert abs(float(random.poisson(KEY, 1e12, dtype=tf.int64)[...]) / 1e12 - 1) < 1e-5
    small = random.beta(KEY, 1e-3, 1e-3, (1000,)).numpy()
    assert np.isfinite(small).all()
    assert 400 < (small < 0.5).sum() < 600
    assert float(random.gamma(KEY, 1e8)) == pytest.approx(1e8, rel=1e-3)
    assert random.gamma(KEY, 2.0, (2, 3), tf.bfloat16).dtype == tf.bfloat16
    assert random.gamma(KEY, tf.ones([3, 1]), (3, 4)).shape == (3, 4)
    assert random.beta(KEY, tf.ones([3, 1]), tf.ones([4])).shape == (3, 4)


def test_shapes_without_elements_and_of_scalars():
    assert random.categorical(KEY, [0.0, 0.0], shape=(0,)).shape == (0,)
    assert random.choice(KEY, 3, (0, 2), p=[1.0, 1.0, 1.0]).shape == (0, 2)
    assert random.choice(KEY, 0, (0,)).shape == (0,)
    assert random.permutation(KEY, 0).shape == (0,)
    assert random.gamma(KEY, 1.0, (0, 3)).shape == random.poisson(KEY, 1.0, (0, 3)).shape == (0, 3)
    assert random.normal(KEY, (0, 3)).shape == (0, 3)
    assert random.randint(KEY, (), 0, 9).shape == ()
    assert random.bits(KEY, tf.TensorShape([2, 3])).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.normal(42), TypeError, r"not the number 42; make one with pcbatch.random.key\(seed\)"),
        (
            lambda: random.normal(tf.constant([1, 2])),
            TypeError,
            r"uint32 tensor of shape \[2\], not of dtype int32; make",
        ),
        (lambda: random.bits(random.keys(1, 5)), ValueError, r"shape \(5, 2\).*each lane has its own key"),
        (lambda: random.uniform(KEY, tf.constant(3)), TypeError, "shape must consist of integers >= 0 that are known"),
        (lambda: random.uniform(KEY, (3, None)), TypeError, "draw the largest and ignore the rest"),
        (lambda: random.split(KEY, -1), TypeError, "num must consist of integers >= 0"),
        (lambda: random.bits(KEY, (2**17, 2**17)), ValueError, r"at most 2\*\*32 elements"),
        (lambda: random.bits(KEY, 3, tf.int32), TypeError, "uint8, uint16, uint32 or uint64, not int32"),
        (lambda: random.normal(KEY, 3, tf.int32), TypeError, "float16, bfloat16, float32, float64, not int32"),
        (lambda: random.randint(KEY, 3, 0, 9, tf.uint8), TypeError, "int32 or int64, not uint8"),
        (lambda: random.randint(KEY, 3, 0, 2.5), TypeError, r"maxval must be an integer.*tf.cast\(maxval, tf.int64\)"),
        (lambda: random.randint(KEY, 3, 0, 2**31 + 1), ValueError, "maxval 2147483649 is out of range for int32"),
        (lambda: random.randint(KEY, 3, 4, 4), ValueError, "no integer n with 4 <= n < 4"),
        (lambda: random.randint(KEY, 3, tf.zeros([2], tf.int32), 4), ValueError, r"minval has shape \(2,\)"),
        (lambda: random.uniform(KEY, (), minval=tf.zeros([2])), ValueError, r"does not broadcast to the shape \[\]"),
        (lambda: random.uniform(KEY, maxval=tf.constant(1, tf.float64)), TypeError, r"tf.cast\(maxval, tf.float32\)"),
        (lambda: random.uniform(KEY, minval=2.0), ValueError, r"minval 2.0 is above maxval 1.0"),
        (lambda: random.uniform(KEY, maxval=float("inf")), ValueError, "must be finite, not 0.0 and inf"),
        (lambda: random.bernoulli(KEY, 1.5), ValueError, "between 0 and 1, not 1.5"),
        (lambda: random.bernoulli(KEY, tf.constant(1)), TypeError, "probabilities are float16.*not int32"),
        (lambda: random.categorical(KEY, tf.constant([1, 2])), TypeError, "logits are float16.*not int32"),
        (lambda: random.categorical(KEY, tf.constant(1.0)), ValueError, r"logits of shape \(\) have no axis -1"),
        (lambda: random.categorical(KEY, tf.zeros([2, 3]), shape=(5,)), ValueError, r"shape \[5\] must end with \[2\]"),
        (lambda: random.choice(KEY, 3, 4, replace=False), ValueError, "4 elements cannot be chosen from 3"),
        (lambda: random.choice(KEY, 3, p=[1.0, 1.0]), ValueError, "p has 2 weights for 3 elements"),
        (lambda: random.choice(KEY, 0), ValueError, "nothing to choose from"),
        (lambda: random.choice(KEY, tf.constant(3)), TypeError, "must be known when the program is compiled"),
        (lambda: random.systematic(KEY, tf.zeros([2, 2])), ValueError, r"one axis, not shape \(2, 2\)"),
        (lambda: random.gamma(KEY, -1.0), ValueError, "alpha must be positive and finite, not -1.0"),
        (lambda: random.gamma(KEY, tf.constant(1)), TypeError, "alpha are float16.*not int32"),
        (lambda: random.poisson(KEY, -0.5), ValueError, r"between 0 and 2\*\*30, not -0.5"),
        (lambda: random.poisson(KEY, 1.0, dtype=tf.float32), TypeError, "int32 or int64, not float32"),
        (lambda: random.key(1.5), TypeError, "seed must be a scalar integer, not float32"),
        (lambda: random.key(2**64), ValueError, "seed must fit in 64 bits"),
        (lambda: random.fold_in(KEY, tf.constant([1, 2])), TypeError, "data must be a scalar integer"),
    ],
)
def test_errors_say_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()
