"""Constrained parameters: there and back, Jacobians against finite differences, names of structures."""

from dataclasses import dataclass

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts
from pcbatch.nuts.parameters.parameters import layout_of
from pcbatch.nuts.parameters.transform import Transform
from tests.nuts.densities import QUIET


def lower_triangle(k):
    return lambda x: x[(..., *np.tril_indices(x.shape[-1], k))]


def elements(x):
    return x


@dataclass(frozen=True)
class Case:
    """A bijector, the shape of a parameter, and the numbers in which densities of it are written."""

    bijector: object
    shape: tuple
    coordinates: object = elements


CASES = {
    "positive": Case(nuts.positive, (3,)),
    "lower": Case(nuts.lower(-3), (3,)),
    "upper": Case(nuts.upper(2.5), (3,)),
    "interval": Case(nuts.interval(-2, 5), (3,)),
    "ordered": Case(nuts.ordered, (4,)),
    "simplex": Case(nuts.simplex, (5,), lambda x: x[..., :-1]),
    "zero_sum": Case(nuts.zero_sum, (5,)),
    "unit_vector": Case(nuts.unit_vector, (4,)),
    "cholesky_corr": Case(nuts.cholesky_corr, (4, 4), lower_triangle(-1)),
    "cholesky_cov": Case(nuts.cholesky_cov, (4, 4), lower_triangle(0)),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def free(case, *leading, dtype=np.float64, seed=1):
    return np.random.default_rng(seed).normal(size=(*leading, *case.bijector.free_shape(case.shape))).astype(dtype)


@every_case
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_and_back(case, dtype):
    batch, exact = free(case, 2, 4, dtype=dtype), dtype is np.float64
    values = case.bijector.values(batch)
    assert (values.dtype, values.shape) == (dtype, (2, 4, *case.shape))
    np.testing.assert_allclose(
        case.bijector.forward(tf.constant(batch)), values, rtol=1e-13 if exact else 2e-5, atol=1e-14 if exact else 1e-6
    )
    back = case.bijector.inverse(values)
    if case.bijector is not nuts.unit_vector:  # which keeps no length
        np.testing.assert_allclose(back, batch, rtol=1e-8 if exact else 1e-3, atol=1e-8 if exact else 1e-4)
    np.testing.assert_allclose(case.bijector.values(back), values, atol=1e-10 if exact else 1e-4)


def differences(function, point):
    """The derivatives of a function of a vector, a row for each number, by finite differences."""
    return np.array([(function(point + d) - function(point - d)) / 2e-5 for d in 1e-5 * np.eye(len(point))])


@every_case
def test_log_jacobian_is_that_of_finite_differences(case):
    point = free(case)

    def coordinates(y):
        return np.asarray(case.coordinates(case.bijector.values(y))).ravel()

    derivatives = differences(coordinates, point)
    expected = 0.5 * np.linalg.slogdet(derivatives @ derivatives.T)[1]  # of a map into a subspace, too
    if case.bijector is nuts.unit_vector:
        # In the first numbers and the length; an area of the sphere is that of its shadow over the last number.
        length = np.linalg.norm(point)
        both = differences(lambda y: np.append(coordinates(y)[:-1], np.linalg.norm(y)), point)
        surface = np.linalg.slogdet(both)[1] - np.log(abs(coordinates(point)[-1]))
        expected = surface + (len(point) - 1) * np.log(length) - 0.5 * length**2
    np.testing.assert_allclose(case.bijector.log_jacobian(tf.constant(point)), expected, rtol=1e-7, atol=1e-7)


@every_case
def test_the_jacobian_of_several_is_the_sum(case):
    several = free(case, 3)
    single = [float(case.bijector.log_jacobian(tf.constant(each))) for each in several]
    np.testing.assert_allclose(case.bijector.log_jacobian(tf.constant(several)), sum(single), atol=1e-12)


@every_case
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jacobians_and_their_slopes_are_finite_far_out_and_at_zero(case, dtype):
    for size in (0.0, 1e-9, 80.0, -80.0):
        with tf.GradientTape() as tape:
            far = tf.constant((size * np.sign(free(case))).astype(dtype))
            tape.watch(far)
            found = case.bijector.log_jacobian(far)
        assert np.isfinite(found)
        slope = tape.gradient(found, far)
        assert slope is None or np.isfinite(slope).all()


@every_case
def test_bits_do_not_depend_on_the_place(case):
    rows = free(case, 7)
    values = case.bijector.values(rows)
    for place, row in enumerate(rows):
        np.testing.assert_array_equal(case.bijector.values(row), values[place])


def test_values_are_where_they_may_be():
    values = {name: case.bijector.values(free(case, 50)) for name, case in CASES.items()}
    assert (values["positive"] > 0).all()
    assert (values["lower"] > -3).all()
    assert (values["upper"] < 2.5).all()
    assert ((values["interval"] > -2) & (values["interval"] < 5)).all()
    assert (np.diff(values["ordered"]) > 0).all()
    assert (values["simplex"] > 0).all()
    for name, what, wanted in (
        ("simplex", np.sum(values["simplex"], -1), 1),
        ("zero_sum", np.sum(values["zero_sum"], -1), 0),
        ("unit_vector", np.linalg.norm(values["unit_vector"], axis=-1), 1),
        ("cholesky_corr", np.linalg.norm(values["cholesky_corr"], axis=-1), 1),
        ("cholesky_corr", np.triu(values["cholesky_corr"], 1), 0),
        ("cholesky_cov", np.triu(values["cholesky_cov"], 1), 0),
    ):
        np.testing.assert_allclose(what, wanted, atol=1e-12, err_msg=name)
    for name in ("cholesky_corr", "cholesky_cov"):
        assert (np.diagonal(values[name], axis1=-2, axis2=-1) > 0).all()


def test_an_interval_keeps_its_jacobian_far_out():
    far = tf.constant([-80.0, 80.0], tf.float64)
    np.testing.assert_allclose(nuts.interval(0, 1).log_jacobian(far), -160.0, rtol=1e-12)


PARAMETERS = {
    "loc": np.array([0.5, -1.0]),
    "scale": {"a": 2.0, "b": np.array([0.25, 4.0])},
    "cuts": np.array([-1, 3.0]),
}


def test_parameters_of_a_structure_are_named():
    transform = Transform.of(layout_of(PARAMETERS), {"scale": nuts.positive, "cuts": nuts.ordered})
    flat = np.array([0.5, -1.0, 2.0, 0.25, 4.0, -1.0, 3.0])
    moved = transform.inverse(flat)
    np.testing.assert_allclose(moved, [0.5, -1.0, np.log(2), np.log(0.25), np.log(4), -1.0, np.log(4)])
    np.testing.assert_allclose(transform.forward(tf.constant(moved)), flat)
    np.testing.assert_allclose(transform.forward(tf.constant([[moved] * 3] * 2)), [[flat] * 3] * 2)
    jacobian = np.log(2) + np.log(0.25) + np.log(4) + np.log(4)
    np.testing.assert_allclose(transform.log_jacobian(tf.constant(moved)), jacobian)


def test_positions_may_be_shorter_than_parameters():
    structure = {"a": np.zeros(2), "shares": np.full((2, 3), 1 / 3), "b": 1.0}
    transform = Transform.of(layout_of(structure), {"shares": nuts.simplex, "b": nuts.positive})
    assert (transform.size, transform.layout.size) == (7, 9)
    values = np.array([5.0, 6.0, 0.2, 0.3, 0.5, 0.6, 0.3, 0.1, 2.0])
    position = transform.inverse(values)
    assert position.shape == (7,)
    np.testing.assert_allclose(transform.forward(tf.constant(position)), values)
    np.testing.assert_allclose(transform.values(np.stack([[position] * 2] * 3)), np.stack([[values] * 2] * 3))


def test_the_nearest_name_decides():
    transform = Transform.of(layout_of(PARAMETERS), {"scale": nuts.positive, "scale.b": nuts.interval(0, 9)})
    assert transform.bijectors == (None, nuts.positive, nuts.interval(0, 9), None)


@pytest.mark.parametrize(
    ("bijectors", "message"),
    [
        ({"tau": nuts.positive}, "names 'tau', and the parameters are loc, scale.a, scale.b, cuts"),
        ({"loc": tf.exp}, "the bijector of 'loc' must be one of pcbatch.nuts or an object with forward, inverse and"),
        ({"scale": nuts.ordered}, "'scale.a' is a single number, so it cannot be ordered"),
        ({"scale.a": nuts.simplex}, "'scale.a' is a single number, so it cannot be a simplex"),
        ({"loc": nuts.cholesky_corr}, r"'loc' has the shape \[2\], so it cannot be .*: a square matrix, 2 by 2"),
    ],
)
def test_bijectors_that_make_no_sense(bijectors, message):
    with pytest.raises(UsageError, match=f"PCB558: .*{message}"):
        Transform.of(layout_of(PARAMETERS), bijectors)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_intervals_that_are_none(ends):
    with pytest.raises(UsageError, match="PCB558: an interval is between two finite numbers"):
        nuts.interval(*ends)


@pytest.mark.parametrize("bound", [nuts.lower, nuts.upper])
def test_bounds_that_are_none(bound):
    with pytest.raises(UsageError, match="PCB558: a bound is a finite number, not inf"):
        bound(np.inf)


OUTSIDE = {
    "positive": [1.0, 0.0, 2.0],
    "lower": [1.0, -4.0, 2.0],
    "upper": [1.0, 2.5, 2.0],
    "interval": [1.0, 5.0, 2.0],
    "ordered": [1.0, 2.0, 2.0, 3.0],
    "simplex": [0.5, 0.2, 0.1, 0.1, 0.2],
    "zero_sum": [1.0, 2.0, -1.0, -1.0, -0.9],
    "unit_vector": [0.5, 0.5, 0.5, 0.6],
    "cholesky_corr": np.eye(4) + 0.5 * np.eye(4, k=-1),
    "cholesky_cov": np.eye(4) + 0.5 * np.eye(4, k=1),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_points_outside_are_refused(name):
    transform = Transform.of(layout_of(np.zeros(CASES[name].shape)), {"x": CASES[name].bijector})
    inside = CASES[name].bijector.values(free(CASES[name])).ravel()
    assert np.isfinite(transform.inverse(inside.astype(np.float32))).all(), "rounding is no fault"
    with pytest.raises(UsageError, match="PCB558: the initial 'x' must be strictly inside"):
        transform.inverse(np.ravel(OUTSIDE[name]))


@pytest.mark.parametrize(("name", "sign"), [("cholesky_corr", -1), ("cholesky_cov", -1), ("cholesky_cov", 0)])
def test_a_factor_has_a_positive_diagonal(name, sign):
    transform = Transform.of(layout_of(np.eye(4)), {"x": CASES[name].bijector})
    with pytest.raises(UsageError, match="PCB558: the initial 'x' must be strictly inside"):
        transform.inverse(np.diag([1.0, sign, 1.0, 1.0]).ravel())


# -- bijectors of other libraries --------------------------------------------------------------------------------------


class Squared:
    """x = y |y|, in the manner of a library that counts axes of events."""

    def forward(self, y):
        return y * tf.abs(y)

    def inverse(self, x):
        return tf.sign(x) * tf.sqrt(tf.abs(x))

    def forward_log_det_jacobian(self, y, event_ndims):
        jacobian = tf.math.log(2.0 * tf.abs(y))
        return tf.reduce_sum(jacobian, axis=list(range(-event_ndims, 0)))


class Pair:
    """Two numbers that rise, from two free ones, for one example only, and without a count of axes."""

    def forward(self, y):
        low, gap = tf.unstack(y)
        return tf.stack([low, low + tf.exp(gap)])

    def inverse(self, x):
        low, high = tf.unstack(x)
        return tf.stack([low, tf.math.log(high - low)])

    def forward_log_det_jacobian(self, y):
        return y[1]


def test_objects_with_the_methods_are_bijectors():
    layout = layout_of({"a": np.zeros((2, 3)), "b": np.zeros(2)})
    transform = Transform.of(layout, {"a": Squared(), "b": Pair()})
    values = np.array([4.0, -9.0, 0.25, 1.0, 16.0, -1.0, 2.0, 5.0])
    position = transform.inverse(values)
    np.testing.assert_allclose(position, [2.0, -3.0, 0.5, 1.0, 4.0, -1.0, 2.0, np.log(3.0)])
    np.testing.assert_allclose(transform.forward(tf.constant(position)), values)
    np.testing.assert_allclose(transform.forward(tf.constant([[position] * 3] * 2)), [[values] * 3] * 2)
    np.testing.assert_allclose(transform.values(np.array([[position] * 3] * 2)), [[values] * 3] * 2)
    jacobian = np.log(2 * np.abs(position[:6])).sum() + np.log(3.0)
    np.testing.assert_allclose(transform.log_jacobian(tf.constant(position)), jacobian)


def test_the_same_object_is_the_same_bijector():
    layout, pair = layout_of(np.zeros(2)), Pair()
    one, other, third = (Transform.of(layout, {"x": each}) for each in (pair, pair, Pair()))
    assert one == other
    assert hash(one) == hash(other)
    assert one != third


class Doubling(Pair):
    def forward(self, y):
        return tf.concat([y, y], 0)


class OfFloats(Pair):
    def forward(self, y):
        return tf.cast(super().forward(y), tf.float32)


@pytest.mark.parametrize(
    ("bijector", "shape", "message"),
    [
        (Pair(), (3,), r"does not fit float64\[3\]: .*2"),
        (Pair(), (), r"does not fit float64\[\]"),
        (Doubling(), (2,), r"gives arrays of shape \[4\] where the parameter has \[2\]"),
        (OfFloats(), (2,), "gives numbers of float32, not of float64"),
        (Pair, (2,), "must be one of pcbatch.nuts or an object with"),
    ],
)
def test_objects_that_do_not_fit(bijector, shape, message):
    with pytest.raises(UsageError, match=f"PCB558: the bijector of 'x'.* {message}"):
        Transform.of(layout_of(np.zeros(shape)), {"x": bijector})


def test_a_start_outside_of_an_objects_domain_is_refused():
    with pytest.raises(UsageError, match=r"PCB558: the initial 'x' must be strictly inside .*Pair"):
        Transform.of(layout_of(np.zeros(2)), {"x": Pair()}).inverse(np.array([1.0, 0.5]))


def spread(q):
    return -0.5 * q[0] ** 2 - 2.0 * (q[1] - q[0])


@pytest.mark.slow
def test_draws_by_an_object_are_those_of_the_same_map_and_go_on(tmp_path):
    """`Pair` is `ordered` for two numbers: the same draws, but for rounding; a file asks for the object."""
    options = {"chains": 4, "warmup": 40, "draws": 12, "seed": 2, "dtype": tf.float64, "chunk": 8, **QUIET}
    pair = Pair()
    samples = nuts.sample(spread, np.array([0.0, 1.0]), bijectors={"x": pair}, **options)
    own = nuts.sample(spread, np.array([0.0, 1.0]), bijectors={"x": nuts.ordered}, **options)
    np.testing.assert_allclose(samples["x"], own["x"], rtol=1e-6)
    nuts.sample(spread, np.array([0.0, 1.0]), bijectors={"x": pair}, **{**options, "draws": 5}).save(tmp_path / "part")
    with pytest.raises(UsageError, match=r"PCB592: .*'x' is none of pcbatch's.*\n  help: .*bijectors={'x': ..}"):
        nuts.resume(tmp_path / "part", **QUIET)
    with pytest.raises(UsageError, match=r"PCB592: .*bijector of 'x' gives other values than their draws"):
        nuts.resume(tmp_path / "part", bijectors={"x": Squared()}, **QUIET)
    with pytest.raises(UsageError, match=r"PCB592: .*bijectors names 'y'"):
        nuts.resume(tmp_path / "part", bijectors={"y": pair}, **QUIET)
    longer = nuts.resume(tmp_path / "part", draws=7, bijectors={"x": pair}, **QUIET)
    np.testing.assert_array_equal(longer["x"], samples["x"])
