"""`pcbatch.nuts.sample`: right moments, right counts, chains apart, nothing compiled twice."""

import signal

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError, nuts, threads
from pcbatch.nuts import api
from pcbatch.nuts.results import diagnostics
from pcbatch.nuts.running import sampling_run
from tests.nuts.densities import COVARIANCE, MEAN, QUIET, assert_near, exact_draws, gaussian, gaussian_data

FIXED = {"data": gaussian_data(), "step_size": 0.6, "adapt": None, "warmup": 0, "seed": 3, **QUIET}


@pytest.fixture(scope="module")
def samples():
    """Without warm-up, from exact draws: every later draw must be one too, and chains are independent of each other."""
    starts = exact_draws(500, 8)
    return nuts.sample(gaussian, MEAN, chains=500, draws=20, initial_per_chain=starts, chunk=20, **FIXED)


@pytest.mark.slow
def test_moments_of_a_correlated_gaussian(samples):
    x = samples["x"] - MEAN
    assert_near(x.mean(axis=1), [0.0, 0.0])
    assert_near((x**2).mean(axis=1), np.diag(COVARIANCE))
    assert_near((x[..., 0] * x[..., 1]).mean(axis=1), COVARIANCE[0, 1])
    assert_near((x[..., 0] ** 3 * x[..., 1]).mean(axis=1), 3 * COVARIANCE[0, 0] * COVARIANCE[0, 1])


def test_draws_decorrelate(samples):
    x = samples["x"] - MEAN
    assert (x[:, 1:] * x[:, :-1]).mean() / (x**2).mean() < 0.5


def test_statistics_under_arvizs_names(samples):
    stats = samples.sample_stats
    names = {"acceptance_rate", "diverging", "energy", "lp", "n_steps", "step_size", "tree_depth"}
    assert set(stats) == names
    assert all(array.shape == (500, 20) for array in stats.values())
    centred = samples["x"] - MEAN
    lp = -0.5 * np.einsum("cdi,ij,cdj->cd", centred, np.linalg.inv(COVARIANCE), centred)
    np.testing.assert_allclose(stats["lp"], lp, rtol=1e-9, atol=1e-12)
    assert np.all(stats["energy"] >= -stats["lp"])
    assert np.all((stats["acceptance_rate"] > 0) & (stats["acceptance_rate"] <= 1))
    assert np.all(stats["n_steps"] >= 2 ** stats["tree_depth"] - 1)
    assert np.all(stats["n_steps"] <= 2 ** (stats["tree_depth"] + 1) - 1)
    assert np.all(stats["step_size"] == 0.6)
    assert not stats["diverging"].any()


def test_gradients_are_counted(samples):
    cost = samples.cost
    assert cost.gradients == samples.sample_stats["n_steps"].sum() + 500
    assert cost.gradients <= cost.rows


def test_new_data_seed_and_numbers_of_draws_compile_nothing(samples):
    options = {**FIXED, "data": gaussian_data(MEAN + 10, 2 * COVARIANCE), "seed": 4, "chunk": 20, "chains": 500}
    starts = exact_draws(500, 8) + 10
    again = nuts.sample(gaussian, MEAN, draws=3, initial_per_chain=starts, **options)
    assert again["x"].shape == (500, 3, 2)
    assert again.stats.compilations == samples.stats.compilations


@pytest.mark.slow
def test_another_warmup_compiles_nothing():
    """There is one program for chains that adapt, whatever they learn, and one for those that never do."""
    none = few(draws=2, warmup=0, step_size=0.1)
    other = few(draws=5, warmup=25, thin=2, target_accept=0.9, save_warmup=True, seed=9)
    assert other["x"].shape == (5, 5, 3)
    assert other.warmup_posterior["x"].shape == (5, 25, 3)
    assert other.stats.compilations == none.stats.compilations


# -- one program for the rest ------------------------------------------------------------------------------------------


def few(**options):
    """Five chains of an element-wise density, in chunks of eight: compiled once for all tests that keep to it."""
    return nuts.sample(steep, np.zeros(3), **{"chains": 5, "chunk": 8, "seed": 5, **QUIET, **options})


def steep(q):
    """Independent normal numbers with deviations 1, 1/4 and 1/16."""
    return -0.5 * tf.reduce_sum((q * tf.constant([1.0, 4.0, 16.0], tf.float64)) ** 2)


@pytest.fixture(scope="module")
def warmed():
    return few(warmup=200, draws=60, save_warmup=True)


def test_the_warm_up_finds_scales_and_a_step_size(warmed):
    scales = warmed.inverse_mass_matrix * np.array([1.0, 16.0, 256.0])
    assert ((scales > 0.3) & (scales < 3)).all()
    stats = warmed.sample_stats
    assert (stats["step_size"] == stats["step_size"][:, :1]).all()
    assert len(np.unique(stats["step_size"])) == 5
    assert 0.7 < stats["acceptance_rate"].mean() < 0.95
    assert warmed.warmup_posterior["x"].shape == (5, 200, 3)
    assert len(np.unique(warmed.warmup_sample_stats["step_size"][0])) > 150


def test_chunks_and_thinning_change_no_draw(warmed):
    thinned = few(warmup=200, draws=20, thin=3)
    np.testing.assert_array_equal(thinned["x"], warmed["x"][:, 2::3])
    np.testing.assert_array_equal(thinned.sample_stats["lp"], warmed.sample_stats["lp"][:, 2::3])


def test_a_chain_does_not_depend_on_the_others(warmed):
    """Alone, in chunks of another size, all through the warm-up, to the bit."""
    alone = few(chains=1, warmup=200, draws=60, chunk=300)
    np.testing.assert_array_equal(alone["x"][0], warmed["x"][0])
    assert alone.cost.gradients == alone.cost.rows, "in native form there are no rows but those of use"
    assert alone.stats.forms == ("native",)


def test_chains_meet_for_a_product_that_all_share(monkeypatch):
    """Though one chain's gradient is cheap enough for native code: several are cheaper by one product."""
    monkeypatch.setattr(sampling_run.SamplingRun, "run", lambda course, progress: course)
    monkeypatch.setattr(api, "_told", lambda course, extra: course)
    x = tf.constant(np.random.default_rng(0).normal(size=(200, 8)), tf.float32)

    def product(q, x):
        return -tf.reduce_sum(tf.linalg.matvec(x, q) ** 2)

    def elements(q, x):
        return -tf.reduce_sum((x * q) ** 2)

    def meets(density, chains, **options):
        options = {"warmup": 0, "adapt": None, "step_size": 0.1, **options}
        return nuts.sample(density, np.zeros(8, np.float32), data=x, chains=chains, **options)._meets

    assert meets(product, 8)
    assert not meets(product, 4)
    assert not meets(product, 8, schedule="adaptive")
    assert not meets(elements, 8)
    assert not meets(lambda q, x: product(q, x[:20]), 8)


def test_a_cheap_leaf_is_native_whatever_its_momentum_costs():
    """To draw 100 numbers is more work than native code is for; the gradients, which are many, are not."""
    samples = nuts.sample(
        lambda x: -0.5 * tf.reduce_sum(tf.square(x)),
        np.zeros(100),
        chains=2,
        draws=2,
        **{**FIXED, "data": None, "chunk": 2, "max_tree_depth": 3},
    )
    assert samples.stats.forms == ("native",)


@pytest.mark.slow
def test_nor_on_rows_gathered_for_the_few_that_begin_a_trajectory():
    """Of 64 chains few draw momenta at a time; they do it on 16 rows."""
    options = {**FIXED, "data": None, "draws": 6, "chunk": 6, "schedule": "adaptive"}
    starts = np.random.default_rng(8).normal(size=(64, 100))
    many, alone = (
        nuts.sample(
            lambda x: -0.5 * tf.reduce_sum(tf.square(x)), starts[0], chains=n, initial_per_chain=starts[:n], **options
        )
        for n in (64, 1)
    )
    np.testing.assert_array_equal(many["x"][0], alone["x"][0])


@pytest.mark.slow
def test_nor_on_the_schedule():
    """In lockstep; native code, which adds up in another order, has draws of its own."""
    every = [
        few(chains=chains, warmup=200, draws=60, schedule=schedule)["x"][0]
        for schedule in ("adaptive", "earliest", "sweep", "busiest")
        for chains in (9, 1)
    ]
    for draws in every[1:]:
        np.testing.assert_array_equal(draws, every[0])


@pytest.mark.slow
def test_pooled_chains_share_step_size_and_metric(warmed):
    pooled = few(warmup=600, draws=60, adapt="pooled", save_warmup=True)
    assert len(np.unique(pooled.sample_stats["step_size"])) == 1
    assert (pooled.inverse_mass_matrix == pooled.inverse_mass_matrix[0]).all()
    np.testing.assert_allclose(pooled.inverse_mass_matrix[0], [1.0, 1 / 16, 1 / 256], rtol=0.35)
    assert 0.7 < pooled.sample_stats["acceptance_rate"].mean() < 0.95
    step_size, apart = pooled.sample_stats["step_size"][0, 0], warmed.sample_stats["step_size"][:, 0]
    assert 0.5 * apart.mean() < step_size < 2 * apart.mean()
    assert pooled["x"].shape == (5, 60, 3)


@pytest.mark.usefixtures("no_collector")
def test_ctrl_c_gives_back_what_is_there(monkeypatch, tmp_path):
    advance, calls = sampling_run.SamplingRun.advance, []
    monkeypatch.setattr(threads, "PATIENCE", 10**6)  # what takes long, as while it is compiled, is waited for

    def interrupted(course, *args, **kwargs):
        calls.append(course.done)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
        return advance(course, *args, **kwargs)

    whole = few(warmup=10, draws=30)
    with monkeypatch.context() as patch:
        patch.setattr(sampling_run.SamplingRun, "advance", interrupted)
        with pytest.warns(nuts.SamplerWarning, match="interrupted: 16 of 30 draws"):
            part = few(warmup=10, draws=30)
    assert part.interrupted
    np.testing.assert_array_equal(part["x"], whole["x"][:, :16])
    part.save(tmp_path / "part.npz")
    rest = nuts.resume(tmp_path / "part.npz", progress=False)
    assert not rest.interrupted
    np.testing.assert_array_equal(rest["x"], whole["x"])


def test_progress_is_shown(capsys):
    few(warmup=10, draws=9, progress=True)
    shown = capsys.readouterr().err
    assert "5 chains, 9 draws: 100%" in shown
    assert "0 diverged" in shown


def half_line(q):
    return tf.where(q > 0, -q, tf.constant(-np.inf, q.dtype))


def test_starts_outside_of_the_support_are_drawn_again_or_refused():
    options = {"chains": 8, "draws": 5, "chunk": 5, **FIXED, "data": None}
    samples = nuts.sample(half_line, 0.0, **options)
    assert not samples.failed
    assert (samples["x"] > 0).all()
    alone = nuts.sample(half_line, 0.0, **{**options, "chains": 2})
    np.testing.assert_array_equal(alone["x"], samples["x"][:2])
    few = {**options, "chains": 3}
    given = np.array([1.0, -1.0, 2.0])
    with pytest.raises(UsageError, match=r"PCB557: 1 of 3 chains \(1\) cannot start where they are told to"):
        nuts.sample(half_line, 1.0, initial_per_chain=given, **few)
    with pytest.raises(UsageError, match=r"PCB557: 3 of 3 chains \(0, 1, 2\) cannot start where they are told to"):
        nuts.sample(half_line, -1.0, init="exact", **few)
    with pytest.raises(UsageError, match=r"PCB557: 3 of 3 .* at any of 100 points .*\(-1, 1\) around `initial`, \[-3"):
        nuts.sample(half_line, -3.0, **few)


def square(q, data):
    return -0.5 * tf.reduce_sum((q - data["seen"]) ** 2) + 0.0 * tf.cast(data["counts"][1], q.dtype)


SLOW_STARTS = [pytest.param(each, marks=pytest.mark.slow) for each in (np.zeros(()), np.float32(0.0), 0)]


@pytest.mark.parametrize("start", [0.0, *SLOW_STARTS])
def test_floats_are_cast_to_the_dtype_of_the_sampler(start):
    found = [
        nuts.sample(
            square,
            start,
            data={"seen": seen, "counts": np.arange(3)},
            chains=2,
            draws=2,
            chunk=2,
            warmup=0,
            step_size=0.5,
            **QUIET,
        )
        for seen in (np.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32), tf.linspace(0.0, 1.0, 5))
    ]
    data = found[0].origin.data
    assert data["seen"].dtype == found[0]["x"].dtype == (np.float64 if isinstance(start, np.ndarray) else np.float32)
    assert data["counts"].dtype == np.int64
    for each in found:
        np.testing.assert_allclose(each["x"], found[0]["x"], rtol=1e-4)


def test_what_cannot_be_cast_says_so():
    with pytest.raises(UsageError, match=r"PCB551: data\['seen'\] has numbers .* too large .* give dtype=tf.float64"):
        nuts.sample(square, 0.0, data={"seen": np.array([1e60]), "counts": np.arange(3)})
    seen = tf.constant([1.0], tf.float64)
    with pytest.raises(
        pcbatch.CompileError, match=r"(?s)one dtype, not float32 and float64.*test_sampling.*dtype=tf.float64\)"
    ):
        nuts.sample(lambda q: -tf.reduce_sum((q - seen) ** 2), 0.0, progress=False)
    for mixed in (lambda q: tf.concat([q, seen], 0)[0], lambda q: tf.tensordot(q, seen, 1)):
        with pytest.raises(pcbatch.CompileError, match=r"(?s)test_sampling.*dtype=tf.float64\)"):
            nuts.sample(mixed, np.zeros(1, np.float32), progress=False)


def one_of_two(q, data):
    return -0.5 * tf.reduce_sum(q * q)


def branching(q):
    return -tf.reduce_sum(q) if q[0] > 0.0 else tf.reduce_sum(q)


def looping(q):
    n = 0
    while q[0] > 0.5 and n < 3:
        q, n = 0.5 * q, n + 1
    return -np.sum(q * q)


def listed(q):
    return -tf.reduce_sum(q["rates"] ** 2)


WRONG = {
    "a parameter too many": (
        one_of_two,
        {},
        r"PCB551: .* called with the parameters, .* with \(q, data\): .* as data=",
    ),
    "a parameter too few": (
        branching,
        {"data": 1.0},
        r"PCB551: .* parameters and data, but .* with \(q\): let it take both",
    ),
    "no function": (3.0, {}, "PCB551: log_density must be a function, not float"),
    "text": (one_of_two, {"data": {"name": "here"}}, r"PCB551: data\['name'\] is text"),
    "a branch": (branching, {}, r"Python branches on a lane's value.*help: .* a log density, .* decorate it with"),
    "a loop": (looping, {}, r"Python branches on a lane's value.*help: .* a log density, .* decorate it with"),
    "a list": (
        listed,
        {"initial": {"rates": [0.5, 1.5]}},
        r"'list' and 'int'.*help: arithmetic is for arrays: make one",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_densities_that_cannot_be_run_are_refused_where_they_are_written(what):
    density, options, message = WRONG[what]
    with pytest.raises(pcbatch.PcbatchError, match=f"(?s){message}") as caught:
        nuts.sample(density, **{"initial": np.ones(2, np.float32), **options}, progress=False)
    assert what in ("no function", "text") or "test_sampling.py" in str(caught.value)


def test_the_advice_works():
    options = {"chains": 2, "warmup": 0, "draws": 3, "step_size": 0.2, "progress": False}
    for density in (branching, looping):
        assert np.isfinite(nuts.sample(pcbatch.autobatch(density), np.ones(2, np.float32), **options)["x"]).all()
    assert np.isfinite(nuts.sample(listed, {"rates": np.array([0.5, 1.5])}, **options)["rates"]).all()


def test_energies_that_are_large_are_judged_without_warnings_of_numpys():
    huge = np.array([[1e30, -2e30, 1e30, 3e30], [1.0, 2.0, 1.0, 2.0]], np.float32)
    assert np.isfinite(diagnostics.energy_fractions(huge)).all()
    assert np.isnan(diagnostics.energy_fractions(huge.astype(np.float64) * 1e200)[0])


def test_an_improper_posterior_is_said_to_be_one():
    with pytest.raises(ValueError, match=r"all 2 chains failed, the first with: .* an improper posterior"):
        nuts.sample(lambda q: 0.0 * q, 0.0, chains=2, warmup=30, draws=5, progress=False)


def test_starting_points():
    def starts(**options):
        state = few(warmup=0, draws=0, step_size=0.1, **options).origin.state
        return np.asarray(state.point.q)

    jittered, uniform = starts(), starts(init="uniform")
    assert (np.abs(jittered) < 1).all()
    assert len(np.unique(jittered)) == 15
    np.testing.assert_allclose(uniform, 2 * jittered)
    assert (starts(init="exact") == 0).all()
    grouped = starts(chains=4, superchains=2)
    np.testing.assert_array_equal(grouped, starts(chains=4)[[0, 0, 2, 2]])
    with pytest.raises(UsageError, match="PCB551: initial_per_chain must have one point for all chains of each"):
        starts(chains=4, superchains=2, initial_per_chain=np.arange(12.0).reshape(4, 3))
    given = np.arange(15.0).reshape(5, 3)
    np.testing.assert_array_equal(starts(initial_per_chain=given), given)


REFUSED = {
    "chains": 0,
    "draws": -1,
    "warmup": 1.5,
    "init": "somewhere",
    "adapt": "all",
    "kernel": "gibbs",
    "metric": "unit",
    "target_accept": 1.0,
    "end_weight": 0.4,
    "max_tree_depth": 25,
    "seed": "one",
    "jit": "maybe",
    "thin": 0,
    "step_size": -1.0,
    "inverse_mass_matrix": np.ones(3),
    "dtype": tf.float16,
    "initial_per_chain": np.zeros((3, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_make_no_sense(name):
    with pytest.raises(pcbatch.UsageError, match=f"PCB551: {name} must"):
        nuts.sample(gaussian, MEAN, **{"data": gaussian_data(), name: REFUSED[name]})


def test_the_other_kernel_weighs_no_ends():
    with pytest.raises(pcbatch.UsageError, match="PCB551: end_weight belongs to kernel='multinomial'"):
        nuts.sample(gaussian, MEAN, data=gaussian_data(), kernel="slice", end_weight=0.5)


@pytest.mark.parametrize("metric", [np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[1.0, 0.5], [0.0, 1.0]])])
def test_metrics_that_are_none(metric):
    with pytest.raises(pcbatch.UsageError, match="PCB551: inverse_mass_matrix must be positive, and symmetric"):
        nuts.sample(gaussian, MEAN, data=gaussian_data(), metric="dense", inverse_mass_matrix=metric)


@pytest.mark.parametrize("without", [{"warmup": 0}, {"adapt": None}])
def test_a_step_size_comes_from_somewhere(without):
    with pytest.raises(pcbatch.UsageError, match="PCB551: without a warm-up that adapts it, step_size must be given"):
        nuts.sample(gaussian, MEAN, data=gaussian_data(), **without)


def vector(q):
    return -0.5 * q**2


def constant(q):
    return tf.constant(1.0)


def misspelt(q):
    return -tf.reduce_sums(q**2)


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize(
    ("density", "message", "line"),
    [
        (vector, r"a scalar, not of shape \(2,\): sum its terms", "def vector(q):"),
        (constant, "the log density has no gradient", "def constant(q):"),
        (misspelt, "has no attribute 'reduce_sums'", "return -tf.reduce_sums(q**2)"),
    ],
)
def test_faults_of_a_density_are_shown_where_they_are(density, message, line, jit):
    """Nothing of pcbatch's own source is."""
    with pytest.raises(pcbatch.PcbatchError, match=message) as caught:
        nuts.sample(density, tf.zeros(2), draws=2, warmup=2, progress=False, jit=jit)
    text = str(caught.value)
    assert text.count("-->") == 1
    assert "test_sampling.py" in text
    assert line in text
