"""The samplers from nothing to an effective size: the search, the judge, and densities that are the same in all."""

import json
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.conversation import ContestantError
from benchmarks.nuts.effective import errors, least_sizes
from benchmarks.nuts.end_to_end import crew
from benchmarks.nuts.end_to_end.contestants.in_tensorflow import DENSITIES
from benchmarks.nuts.end_to_end.crew import Question, Run, distance
from benchmarks.nuts.end_to_end.posteriors import POSTERIORS, DataMissingError, Posterior
from benchmarks.nuts.end_to_end.report import line, page, verdicts


def autoregressive(correlation, shape, seed=0):
    """Chains of a stationary process of variance 1."""
    normal = np.random.default_rng(seed).normal(size=shape)
    for i in range(1, shape[1]):
        normal[:, i] = correlation * normal[:, i - 1] + np.sqrt(1 - correlation**2) * normal[:, i]
    return normal


def test_least_sizes_are_those_of_the_worst_number():
    """An AR(1) process has (1 - r) / (1 + r) of its draws for x, and for x^2 the same with r squared."""
    draws = np.stack([autoregressive(r, (8, 4000), seed=i) for i, r in enumerate((0.0, 0.8))], axis=2) + 5.0
    x, x2 = least_sizes(draws)
    assert x == pytest.approx(32_000 * 0.2 / 1.8, rel=0.1)
    assert x2 == pytest.approx(32_000 * 0.36 / 1.64, rel=0.1)
    assert least_sizes(draws[:, :19]) is None
    assert least_sizes(np.zeros((512, 20, 1)) + autoregressive(0, (512, 20))[..., None]) is not None


def test_distance_is_in_errors_of_both_sides():
    draws = autoregressive(0.0, (16, 500))[..., None]
    mean, sd = errors(draws)
    assert mean == pytest.approx(1 / np.sqrt(8000), rel=0.2)
    right = np.array([[0.0], [0.0], [1.0], [0.0]])
    assert distance(draws, right) < 4
    assert distance(draws, right + np.array([[20 * mean[0]], [0.0], [0.0], [0.0]])) > 15
    assert distance(draws, right + np.array([[0.0], [0.0], [20 * sd[0]], [0.0]])) > 15
    assert distance(draws * np.nan, right) == np.inf


class Drawing:
    """A process whose draws are independent, but for one that is wrong and one that fails in its warm calls."""

    started: ClassVar[list[str]] = []

    def __init__(self, name):
        self.name, self.warm = name, False
        Drawing.started.append(name)

    def ask(self, limit, do, **command):
        if do == "start":
            return {}
        if self.name == "tfp" and self.warm:
            raise ContestantError("took more than 3 s to run")
        self.warm = True
        draws = np.random.default_rng(command["seed"]).normal(size=(4, command["job"]["draws"], 1))
        assert set(np.load(command["inputs"])) == {"starts", "x", "y"}
        np.save(command["draws"], draws + 0.5 * (self.name == "numpyro"))
        return {"wall": {"pcbatch": 1.0, "blackjax": 2.0}.get(self.name, 3.0), "cpu": 1.0}

    def close(self):
        pass


@pytest.fixture
def found(monkeypatch):
    names = ("pcbatch", "blackjax", "numpyro", "tfp")
    normal = Posterior(
        "normal", {"z": 1}, lambda: {"x": np.zeros(1), "y": np.zeros(1)}, lambda: np.array([[0.0], [0.0], [1.0], [0.0]])
    )
    monkeypatch.setitem(POSTERIORS, "normal", normal)
    monkeypatch.setattr(crew.Contestant, "process", lambda self: Drawing(self.script.removesuffix("_run")))
    monkeypatch.setattr(Drawing, "started", [])
    with Run("normal", names, Question(4, 10, 50, 600, 1600, 3)) as run:
        yield run.measure(repeats=2, cold=2)


def test_draws_are_doubled_until_they_are_enough(found):
    assert found["pcbatch"].draws == 200
    assert Drawing.started.count("pcbatch") == 4  # 50, 100, 200 draws, and the second cold run
    assert (len(found["pcbatch"].cold), len(found["pcbatch"].warm)) == (2, 2)
    assert min(map(min, found["pcbatch"].sizes)) > 400


def test_wrong_draws_and_failures_are_told(found):
    assert "standard errors from the reference" in found["numpyro"].failure
    assert "took more than 3 s" in line("tfp", found["tfp"])
    assert verdicts(found) == [f"{kind}: pcbatch beats blackjax, 0.50 times its time" for kind in ("cold", "warm")]
    text = "\n".join(page({"normal": found}, Question(4, 10, 50, 600, 1600, 3), "Measured here."))
    assert "- numpyro: a figure is" in text
    assert "| pcbatch | 1.00 | 1.00 |" in text


def test_a_search_that_finds_too_little_ends(monkeypatch):
    monkeypatch.setattr(crew.Contestant, "process", lambda self: Drawing("pcbatch"))
    monkeypatch.setitem(
        POSTERIORS,
        "normal",
        Posterior("", {"z": 1}, lambda: {"x": np.zeros(1), "y": np.zeros(1)}, lambda: np.array([[0.0], [1], [1], [1]])),
    )
    with Run("normal", ["pcbatch"], Question(4, 10, 50, 1e6, 100, 3)) as run:
        assert "100 draws of each chain have effective sizes" in run.measure(1, 1)["pcbatch"].failure


def test_data_that_are_not_there_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PCBATCH_DATA", str(tmp_path))
    with pytest.raises(DataMissingError, match=r"PCBATCH_DATA names the folder that has posteriordb/arK-arK\.data"):
        POSTERIORS["arK"].data()


@pytest.mark.parametrize("name", POSTERIORS)
def test_densities_are_the_same_in_jax(name, pcbatch_data):
    in_jax = pytest.importorskip("benchmarks.nuts.end_to_end.contestants.in_jax")
    model = POSTERIORS[name]
    data = {key: array.astype(np.float32) for key, array in model.data().items()}
    data = data if name != "kidscore" else {key: array / 100 for key, array in data.items()}  # float32 has few digits
    points = 0.3 * model.starts(3, 1)
    density, forward = in_jax.of_vector(model, name)
    tensors = {key: tf.constant(array) for key, array in data.items()}
    for start in points:
        values = {key: value[0] for key, value in model.constrained(start[np.newaxis]).items()}
        np.testing.assert_allclose(forward(start), np.concatenate([np.ravel(each) for each in values.values()]), 1e-5)
        logs = [start[model.places()[key]] for key in model.positive]
        logits = [start[model.places()[key]] for key in model.unit]
        jacobian = sum(map(np.sum, logs)) - sum(np.sum(np.log1p(np.exp(z)) + np.log1p(np.exp(-z))) for z in logits)
        expected = float(DENSITIES[name]({key: tf.constant(each) for key, each in values.items()}, tensors)) + jacobian
        np.testing.assert_allclose(float(density(data, start)), expected, rtol=1e-3)


@pytest.mark.parametrize("name", ["breast-cancer", "arK", "mesquite", "kidscore", "process"])
def test_the_reference_has_a_high_density(name, pcbatch_data):
    """Its mean lies near the mode: no step of two standard deviations in one number leads up by much."""
    model = POSTERIORS[name]
    mean, _, sd, _ = model.reference()
    assert len(mean) == model.numbers
    data = {key: tf.constant(array) for key, array in model.data().items()}

    def density(q):
        return float(DENSITIES[name]({key: tf.constant(q[place]) for key, place in model.places().items()}, data))

    for i in range(model.numbers):
        step = 2 * sd[i] * np.eye(model.numbers)[i]
        assert density(mean) > max(density(mean + step), density(mean - step)), i


def test_starts_are_where_parameters_belong():
    model = POSTERIORS["mesquite"]
    starts = model.starts(5, 0)
    points = model.constrained(starts)
    assert starts.shape == (5, 8)
    assert points["beta"].shape == (5, 7)
    np.testing.assert_allclose(np.log(points["sigma"]), starts[:, 7], rtol=1e-5)
    assert json.dumps(model.sizes) == '{"beta": 7, "sigma": 0}'
