"""Models of TensorFlow Probability as densities: stand-ins with their methods, and its own where it is installed."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts
from pcbatch.nuts.parameters import models
from pcbatch.nuts.parameters.parameters import layout_of
from pcbatch.nuts.parameters.transform import Transform
from tests.nuts.densities import QUIET
from tests.nuts.loops import moments

Value = collections.namedtuple("Value", ["scale", "share"])


class Bijector:
    """Of a positive scale, and a share between zero and the scale."""

    def forward(self, y):
        scale = tf.exp(y.scale)
        return Value(scale, scale[..., None] * tf.sigmoid(y.share))

    def inverse(self, x):
        share = x.share / x.scale[..., None]
        return Value(tf.math.log(x.scale), tf.math.log(share) - tf.math.log1p(-share))

    def inverse_event_shape(self, shape):
        return shape

    def forward_log_det_jacobian(self, y, event_ndims):
        assert event_ndims == Value(0, 1)
        slopes = tf.math.log_sigmoid(y.share) + tf.math.log_sigmoid(-y.share)
        return y.scale + tf.reduce_sum(y.scale + slopes)


class Stand:
    """A stand-in for a joint distribution: an exponential scale, and shares of it, uniform."""

    dtype = Value(tf.float64, tf.float64)
    event_shape = Value(tf.TensorShape([]), tf.TensorShape([2]))
    batch_shape = Value(tf.TensorShape([]), tf.TensorShape([]))

    def unnormalized_log_prob(self, value):
        return -value.scale - 2.0 * tf.math.log(value.scale)

    def experimental_default_event_space_bijector(self):
        return Bijector()


def test_a_model_has_names_a_start_and_one_bijector():
    stand = Stand()
    model = models.read(stand)
    assert models.read(stand) is model
    assert model.dtype == tf.float64
    assert {name: value.tolist() for name, value in model.initial.items()} == {"scale": 1.0, "share": [0.5, 0.5]}
    assert float(model.density({"scale": tf.constant(2.0), "share": tf.zeros(2)})) == pytest.approx(-2 - 2 * np.log(2))
    transform = Transform.of(layout_of(model.initial), model.bijector)
    assert (transform.size, len(transform.bijectors)) == (3, 1)
    values = np.array([[4.0, 1.0, 2.0], [2.0, 1.0, 1.5]])
    position = transform.inverse(values)
    np.testing.assert_allclose(position, [[np.log(4), -np.log(3), 0.0], [np.log(2), 0.0, np.log(3)]])
    np.testing.assert_allclose(transform.values(position), values)
    np.testing.assert_allclose(transform.forward(tf.constant(position[0])), values[0])
    differences = [
        (transform.values(position[0] + d) - transform.values(position[0] - d)) / 2e-6 for d in 1e-6 * np.eye(3)
    ]
    expected = np.linalg.slogdet(np.array(differences))[1]
    np.testing.assert_allclose(transform.log_jacobian(tf.constant(position[0])), expected, rtol=1e-7)
    with pytest.raises(UsageError, match="PCB558: the initial 'parameters' must be strictly inside the support"):
        transform.inverse(np.array([1.0, 2.0, 0.5]))


class Discrete(Stand):
    dtype = Value(tf.float64, tf.int32)


class Mixed(Stand):
    dtype = Value(tf.float64, tf.float32)


class Batch(Stand):
    batch_shape = Value(tf.TensorShape([]), tf.TensorShape([2]))


class WithoutBijector(Stand):
    def experimental_default_event_space_bijector(self):
        return None


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Discrete(), "the parameter 'share' of the model is discrete: pin it, or sum over its values"),
        (Mixed(), "the parameters of a model must be of one dtype, not float32, float64"),
        (Batch(), "the model is a batch, .* tfd.Independent"),
        (WithoutBijector(), "one of the parameters scale, share of the model has no bijector"),
    ],
)
def test_models_that_are_refused(model, message):
    with pytest.raises(UsageError, match=f"PCB551: {message}"):
        nuts.sample(model, **QUIET)


def test_arguments_that_do_not_go_with_a_model():
    for options, message in (
        ({"data": 1.0}, r"a model has its data pinned: model.experimental_pin\(y=..\)"),
        ({"dtype": tf.float32}, "dtype must be that of the model, float64"),
        ({"initial": {"scale": 1.0}}, "the parameters of the model are scale, share, not scale"),
    ):
        with pytest.raises(UsageError, match=f"PCB551: {message}"):
            nuts.sample(Stand(), **{**QUIET, **options})
    with pytest.raises(UsageError, match="PCB551: initial must be parameters of one example"):
        nuts.sample(lambda q: -(q**2), **QUIET)


@pytest.mark.slow
def test_draws_of_a_model_whose_supports_depend_on_each_other(tmp_path):
    options = {"chains": 4, "warmup": 100, "seed": 1, **QUIET}
    stand = Stand()
    samples = nuts.sample(stand, draws=300, **options)
    assert samples["share"].shape == (4, 300, 2)
    assert (samples["share"] < samples["scale"][..., None]).all()
    np.testing.assert_allclose(samples["scale"].mean(), 1.0, atol=0.2)
    part = nuts.sample(stand, draws=200, **options)
    part.save(tmp_path / "part.npz")
    again = nuts.resume(tmp_path / "part.npz", draws=100, log_density=stand, **QUIET)
    np.testing.assert_array_equal(again["scale"], samples["scale"])
    with pytest.raises(UsageError, match=r"PCB592: .*this process has not sampled their density"):
        nuts.resume(tmp_path / "part.npz", **QUIET)

    class Other(Stand):
        def unnormalized_log_prob(self, value):
            return -3.0 * value.scale

    with pytest.raises(UsageError, match=r"PCB592: .*(density now|its density is not what it was)"):
        nuts.resume(tmp_path / "part.npz", log_density=Other(), **QUIET)


# -- those of the library ----------------------------------------------------------------------------------------------

OBSERVED = np.array([1.2, 0.4, 1.9], np.float32)


@pytest.fixture(scope="module")
def tfp():
    return pytest.importorskip("tensorflow_probability")


def named(tfd):
    return tfd.JointDistributionNamed(
        {
            "a": tfd.Normal(0.0, 1.0),
            "u": lambda a: tfd.Uniform(0.0, tf.exp(a)),
            "y": lambda u: tfd.Sample(tfd.Normal(u, 1.0), 3),
        }
    )


def sequential(tfd):
    return tfd.JointDistributionSequential(
        [
            tfd.Normal(0.0, 1.0, name="a"),
            lambda a: tfd.Uniform(0.0, tf.exp(a), name="u"),
            lambda u: tfd.Sample(tfd.Normal(u, 1.0), 3, name="y"),
        ]
    )


def coroutine(tfd):
    @tfd.JointDistributionCoroutineAutoBatched
    def model():
        a = yield tfd.Normal(0.0, 1.0, name="a")
        u = yield tfd.Uniform(0.0, tf.exp(a), name="u")
        yield tfd.Normal(u * tf.ones(3), 1.0, name="y")

    return model


def by_quadrature():
    """Mean and deviation of `u`, the prior of `a` summed out on a grid."""
    grid, a = np.linspace(1e-3, 30.0, 6001), np.linspace(-6.0, 6.0, 2401)
    with np.errstate(divide="ignore"):
        prior = np.where(grid[:, None] < np.exp(a), -a - 0.5 * a**2, -np.inf)
        prior = np.log(np.exp(prior).sum(axis=1))
    return moments(grid, prior - 0.5 * np.sum((OBSERVED - grid[:, None]) ** 2, axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [named, sequential, coroutine])
def test_posteriors_are_those_of_quadrature(kind, tfp):
    pinned = kind(tfp.distributions).experimental_pin(y=OBSERVED)
    samples = nuts.sample(pinned, chains=16, warmup=400, draws=500, seed=1, target_accept=0.95, **QUIET)
    assert set(samples) == {"a", "u"}
    table, (mean, sd) = samples.summary(), by_quadrature()
    assert abs(table.loc["u", "mean"] - mean) < 4 * table.loc["u", "mcse_mean"]
    assert abs(table.loc["u", "sd"] - sd) < 4 * table.loc["u", "mcse_sd"]


@pytest.mark.slow
def test_bijectors_of_the_library(tfp):
    """With and without axes of events, and those that change a shape."""
    tfb = tfp.bijectors
    bijectors = {
        "a": tfb.Softplus(),
        "b": tfb.Shift(np.float64(3.0))(tfb.Exp()),
        "c": tfb.FillScaleTriL(diag_bijector=tfb.Exp(), diag_shift=None),
        "d": tfb.Scale(np.float64(2.0)),
    }
    values = {"a": np.array([1.0, 2.0]), "b": np.full((2, 2), 4.0), "c": np.eye(2) + np.tri(2), "d": np.ones(3)}
    transform = Transform.of(layout_of(values), bijectors)
    flat = np.concatenate([each.ravel() for each in values.values()])
    position = transform.inverse(flat)
    assert position.shape == (2 + 4 + 3 + 3,)
    np.testing.assert_allclose(transform.values(np.stack([position] * 3)), np.stack([flat] * 3))

    def coordinates(y):
        return np.delete(transform.values(y), 7)  # the zero above the diagonal

    columns = [(coordinates(position + d) - coordinates(position - d)) / 2e-6 for d in 1e-6 * np.eye(12)]
    expected = np.linalg.slogdet(np.array(columns))[1]
    np.testing.assert_allclose(transform.log_jacobian(tf.constant(position)), expected, rtol=1e-6)
