"""The draws of pcbatch.random have the distributions they claim. Seeds are fixed, so each test has one outcome.

Thresholds are quantiles of the test's own distribution: p-values above 0.001, standardised sums below 4.
"""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from pcbatch import random

SIZE = 20_000
KEY = random.key(1066)


def one_draw_per_lane(draw, lanes=SIZE):
    """The first draw of each of `lanes` keys: what a batch really consumes."""
    return tf.vectorized_map(draw, random.keys(1066, lanes), fallback_to_while_loop=False).numpy()


CONTINUOUS = {
    "uniform": (random.uniform, stats.uniform()),
    "uniform between bounds": (
        lambda key, shape=(): random.uniform(key, shape, minval=-2.0, maxval=5.0),
        stats.uniform(-2, 7),
    ),
    "normal": (random.normal, stats.norm()),
    "exponential": (random.exponential, stats.expon()),
    "gamma": (lambda key, shape=(): random.gamma(key, 2.5, shape), stats.gamma(2.5)),
    "gamma below 1": (lambda key, shape=(): random.gamma(key, 0.3, shape), stats.gamma(0.3)),
    "float64 gamma": (lambda key, shape=(): random.gamma(key, 40.0, shape, tf.float64), stats.gamma(40)),
    "beta": (lambda key, shape=(): random.beta(key, 2.0, 0.5, shape), stats.beta(2, 0.5)),
    "float64 uniform": (lambda key, shape=(): random.uniform(key, shape, tf.float64), stats.uniform()),
    "float64 normal": (lambda key, shape=(): random.normal(key, shape, tf.float64), stats.norm()),
    "float64 exponential": (lambda key, shape=(): random.exponential(key, shape, tf.float64), stats.expon()),
}


@pytest.mark.parametrize("source", ["one key", "one key per lane"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name, source):
    draw, law = CONTINUOUS[name]
    sample = draw(KEY, (SIZE,)).numpy() if source == "one key" else one_draw_per_lane(draw)
    assert stats.kstest(sample, law.cdf).pvalue > 0.001
    mean, variance, kurtosis = law.stats("mvk")
    assert abs(sample.mean() - mean) < 4 * np.sqrt(variance / SIZE)
    assert abs(sample.var() - variance) < 4 * variance * np.sqrt((kurtosis + 2) / SIZE)


def test_tails_of_the_normal_distribution():
    """The 2**23 inputs are spread evenly, so that even rare draws come as often as they should."""
    sample = np.abs(random.normal(KEY, (1_000_000,)).numpy())
    for z in (3.0, 4.0, 4.5):
        expected = 2 * stats.norm.sf(z) * sample.size
        assert abs(np.sum(sample > z) - expected) < 4 * np.sqrt(expected)


def tail(law, last, first=0):
    """The probabilities of `first` and below, of each number up to `last`, and of that and above."""
    between = {k: law.pmf(k) for k in range(first + 1, last)}
    return {first: law.cdf(first), **between, last: law.sf(last - 1)}


DISCRETE = {
    "randint of a die": (lambda key, shape=(): random.randint(key, shape, 1, 7), dict.fromkeys(range(1, 7), 1 / 6)),
    "int64 randint": (
        lambda key, shape=(): random.randint(key, shape, -50, 50, tf.int64),
        dict.fromkeys(range(-50, 50), 0.01),
    ),
    "bernoulli": (lambda key, shape=(): random.bernoulli(key, 0.3, shape), {0: 0.7, 1: 0.3}),
    "categorical": (
        lambda key, shape=(): random.categorical(key, tf.math.log([0.1, 0.2, 0.3, 0.4]) + 5, shape=shape),
        {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4},
    ),
    "many categories": (
        lambda key, shape=(): (
            random.categorical(key, tf.math.log([0.1, 0.2, 0.3, 0.4]) + 5, shape=(*shape, 1))[..., 0]
            if shape == ()
            else random.categorical(key, tf.math.log([0.1, 0.2, 0.3, 0.4]) + 5, shape=shape)
        ),
        {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4},
    ),
    "choice": (lambda key, shape=(): random.choice(key, [2, 3, 5, 7, 11], shape), dict.fromkeys((2, 3, 5, 7, 11), 0.2)),
    "weighted choice": (
        lambda key, shape=(): random.choice(key, 4, shape, p=[3.0, 0.0, 1.0, 4.0]),
        {0: 0.375, 2: 0.125, 3: 0.5},
    ),
    "rare events": (lambda key, shape=(): tf.minimum(random.poisson(key, 0.7, shape), 4), tail(stats.poisson(0.7), 4)),
    "events": (
        lambda key, shape=(): tf.clip_by_value(random.poisson(key, 12.5, shape), 5, 21),
        tail(stats.poisson(12.5), 21, 5),
    ),
    "low bits": (lambda key, shape=(): random.bits(key, shape, tf.uint8), dict.fromkeys(range(256), 1 / 256)),
}


@pytest.mark.parametrize("source", ["one key", "one key per lane"])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name, source):
    draw, law = DISCRETE[name]
    sample = (draw(KEY, (SIZE,)).numpy() if source == "one key" else one_draw_per_lane(draw)).astype(int)
    counts = [np.sum(sample == value) for value in law]
    assert sum(counts) == SIZE
    assert stats.chisquare(counts, [SIZE * p for p in law.values()]).pvalue > 0.001


def test_randint_is_even_over_the_widest_ranges():
    """By the remainder of one word a range of 3/4 of all integers would draw the first third of it twice as often."""
    for bits, dtype in ((32, tf.int32), (64, tf.int64)):
        low = -(2 ** (bits - 1))
        sample = random.randint(KEY, (SIZE,), low, low + 3 * 2 ** (bits - 2), dtype).numpy()
        thirds = np.histogram(sample.astype(float), bins=low + np.arange(4) * 2.0 ** (bits - 2))[0]
        assert stats.chisquare(thirds).pvalue > 0.001


def test_every_bit_is_fair_and_independent_of_the_others():
    words = random.bits(KEY, (SIZE,), tf.uint64).numpy()
    columns = (words[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(float) * 2 - 1
    products = columns.T @ columns / np.sqrt(SIZE)
    assert np.abs(columns.sum(0) / np.sqrt(SIZE)).max() < 4
    assert np.abs(products[np.triu_indices(64, 1)]).max() < 4.5  # the largest of 2016


def test_draws_from_split_and_folded_keys_are_independent():
    """Draws of a key, of keys split from it, of one folded from those, and of the same keys in the lane next door."""

    def draw(key):
        first, second, third = tf.unstack(random.split(key, 3))
        family = (key, first, second, random.fold_in(third, 0), random.fold_in(third, 2**40))
        return tf.stack([random.normal(member) for member in family])

    own = one_draw_per_lane(draw, 2000)
    streams = np.concatenate([own, np.roll(own, 1, axis=0)], axis=1)
    correlation = np.corrcoef(streams.T) * np.sqrt(len(streams))
    assert np.abs(correlation[np.triu_indices(len(correlation), 1)]).max() < 4


def test_different_keys_do_not_collide():
    family = [random.split(KEY, 1000), random.split(random.fold_in(KEY, 0), 1000), random.keys(0, 1000)]
    assert len(np.unique(np.concatenate(family), axis=0)) == 3000


def test_poisson_draws_of_any_rate_have_its_mean_and_variance():
    """Up to the largest, where the series for the logarithm of a factorial decides."""
    for rate in (0.0, 1e-3, 9.999, 10.0, 300.0, 1e6, 2.0**30):
        sample = random.poisson(KEY, rate, (SIZE,)).numpy().astype(float)
        assert abs(sample.mean() - rate) <= 4 * np.sqrt(rate / SIZE)
        assert abs(sample.var() - rate) <= 4 * np.sqrt((rate + 2 * rate * rate) / SIZE)


def test_every_order_is_as_likely_as_any_other():
    keys = random.split(KEY, SIZE)
    orders = tf.vectorized_map(lambda key: random.permutation(key, 4), keys, fallback_to_while_loop=False).numpy()
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 0.001


def test_samples_without_replacement():
    """Each pair, in order, by its weights: the first in proportion, the second in proportion to what is left."""
    weights = np.array([1.0, 2.0, 4.0])
    keys = random.split(KEY, SIZE)

    def drawn(key):
        return random.choice(key, 3, (2,), p=tf.constant(weights), replace=False)

    pairs = tf.vectorized_map(drawn, keys, fallback_to_while_loop=False).numpy()
    counts, expected = [], []
    for i in range(3):
        for j in range(3):
            counts.append(np.sum((pairs == (i, j)).all(1)))
            expected.append(0 if i == j else SIZE * weights[i] / 7 * weights[j] / (7 - weights[i]))
    assert [count for count, law in zip(counts, expected, strict=True) if law == 0] == [0, 0, 0]
    kept = [place for place, law in enumerate(expected) if law]
    assert stats.chisquare([counts[k] for k in kept], [expected[k] for k in kept]).pvalue > 0.001


def test_systematic_draws_are_even_and_of_the_right_mean():
    """Each index comes its share of times, rounded up or down, and on average exactly that."""
    weights = np.array([0.05, 0.4, 0.0, 0.33, 0.22])
    size, lanes = 7, 4000
    logits = tf.math.log(tf.constant(weights, tf.float32))
    found = tf.vectorized_map(
        lambda key: random.systematic(key, logits, size), random.keys(3, lanes), fallback_to_while_loop=False
    ).numpy()
    assert (np.diff(found, axis=1) >= 0).all()
    counts = (found[:, :, None] == np.arange(5)).sum(1)
    shares = size * weights
    assert ((counts >= np.floor(shares - 1e-6)) & (counts <= np.ceil(shares + 1e-6))).all()
    spread = np.sqrt((shares % 1) * (1 - shares % 1) / lanes)
    assert (np.abs(counts.mean(0) - shares) <= 4 * spread + 1e-6).all()


def test_choices_from_many_weights_find_the_right_place():
    """Inversion against NumPy's search in the same whole numbers, for sizes around powers of 2."""
    for n in (1, 2, 3, 31, 32, 33, 1000):
        logits = tf.constant(np.random.default_rng(n).normal(size=n), tf.float64)
        sample = random.categorical(KEY, logits, shape=(SIZE,)).numpy()
        p = np.exp(logits - tf.reduce_max(logits))
        expected = SIZE * p / p.sum()
        some = expected > 5
        counts = np.bincount(sample, minlength=n)
        assert len(counts) == n
        if some.sum() > 1:
            rest = [counts[~some].sum()], [expected[~some].sum()]
            pairs = np.concatenate([counts[some], rest[0]]), np.concatenate([expected[some], rest[1]])
            keep = pairs[1] > 0
            assert stats.chisquare(pairs[0][keep], pairs[1][keep]).pvalue > 0.001
