"""The sampler's benchmark: starting points that are draws of the densities, verdicts that can say no, failures told."""

import numpy as np
import pytest

from benchmarks.conversation import ContestantError
from benchmarks.environments import with_flags
from benchmarks.nuts import adaptation, crew, criterion, many_chains
from benchmarks.nuts.contestants.parts import joined, parted
from benchmarks.nuts.crew import Crew
from benchmarks.nuts.pages import page
from benchmarks.nuts.report import Figures, best_peer, line, over_best_peer, verdicts
from benchmarks.nuts.targets import TARGETS, regression


def figures(rate, *, chains=64, share=0.9, first=5.0):
    """Figures of a contestant with so many useful gradients per second, and this share of its rows useful."""
    count = {"leapfrogs": int(1000 * share), "rows": 1000, "at_end": 0.9, "lockstep": 0.3}
    return Figures(chains, 10, first, [1.0, 1.0, 2.0], [2.0, 2.0, 4.0], [rate, rate, 2 * rate], count)


def test_starts_of_the_gaussian_have_its_covariance():
    starts = TARGETS["gaussian"].starts(20_000)
    covariance = np.cov(starts[:, :3], rowvar=False)
    np.testing.assert_allclose(covariance, [[1, 0.9, 0.81], [0.9, 1, 0.9], [0.81, 0.9, 1]], atol=0.04)


def test_starts_of_a_regression_are_around_the_mode():
    """The gradient of the log density vanishes where the starting points lie on average."""
    target = TARGETS["logistic-small"]
    x, y = regression(target.observations, target.size)
    starts = target.starts(5_000).astype(float)
    weights = starts.mean(axis=0)
    gradient = x.T @ (y - 1 / (1 + np.exp(-x @ weights))) - weights
    precision = np.linalg.inv(np.cov(starts, rowvar=False))
    assert np.abs(np.linalg.solve(precision, gradient)).max() < 0.01


def test_rates_are_medians_of_calls():
    assert figures(100).rate("gradients") == 100
    assert figures(100).rate("gradients", "cpu") == 50
    assert figures(100).rate("draws") == 640
    assert figures(100).rate("x") is None
    assert Figures(8, 10).rate("gradients") is None
    assert Figures(8, 10, None, [2.0] * 3, sizes=[(10, 5), (20, 6), (30, 4)]).rate("x2") == 2.5


def test_the_best_peer_is_someone_elses():
    cell = {"pcbatch": figures(300), "numpyro": figures(100), "blackjax": figures(200), "loop-xla": figures(900)}
    assert best_peer(cell, "gradients") == ("blackjax", 200)
    assert best_peer({"pcbatch": figures(300)}, "gradients") is None


@pytest.mark.parametrize(
    ("rate", "share", "texts"),
    [
        (300, 0.9, ["over the bound 1.00, goal 0.97: reached", "blackjax 1.50, goal 1.5: reached"]),
        (100, 0.45, ["loses to blackjax: 0.50", "over the bound 0.50, goal 0.97: NOT REACHED", "0.50, goal 1.5: NOT"]),
    ],
)
def test_verdicts_on_the_gaussian(rate, share, texts):
    said = verdicts("gaussian", {"pcbatch": figures(rate, share=share), "blackjax": figures(200)})
    assert len(said) == len(texts)
    assert all(text in each for text, each in zip(texts, said, strict=True))


def test_verdicts_on_the_regression():
    said = verdicts("logistic-large", {"pcbatch": figures(80, first=9.0), "loop-graph": figures(100)})
    assert "over the better bare loop 0.80, goal 0.9: NOT REACHED" in said[0]
    assert "first call of pcbatch: 9.0 s, goal below 8.0: NOT REACHED" in said[1]


class Flaky:
    """A process that answers, but for one command."""

    started = 0

    def __init__(self, contestant):
        Flaky.started += 1
        self.fails = contestant.name == "tfp"

    def ask(self, limit, do, **command):
        if do == "run" and self.fails:
            raise ContestantError("took more than 3 s to run")
        if do == "run":
            np.save(command["draws"], np.random.default_rng(command["seed"]).normal(size=(8, 40, 2)))
        counts = {"leapfrogs": 640, "rows": 1280, "at_end": 0.8, "lockstep": 0.5}
        return {"seconds": 1.0, "wall": 0.5, "cpu": 1.0, "draws": command.get("draws"), **counts}

    def close(self):
        pass


def test_a_contestant_that_fails_says_so_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(crew, "Process", Flaky)
    with Crew(["pcbatch", "tfp"]) as both:
        cell = both.measured(TARGETS["funnel"], 8, 40, repeats=2, limit=3, budget=9)
    assert Flaky.started == 3  # the one that failed is there anew for the next cell
    assert cell["pcbatch"].wall == [0.5, 0.5]
    assert cell["tfp"].failure == "took more than 3 s to run"
    assert "took more than 3 s to run" in line("tfp", cell)
    assert "0.500" in line("pcbatch", cell)
    assert cell["pcbatch"].gradients_of_a_draw == 2
    assert cell["pcbatch"].rate("x") == pytest.approx(640, rel=0.4)  # draws are independent, half a second has 320


def test_rows_that_nobody_has_counted_are_missing():
    """Native loops run chains one after another: a callback for each of their gradients takes minutes."""
    cell = {"blackjax-native": figures(100), "pcbatch": figures(200)}
    cell["blackjax-native"].count |= {"rows": None}
    assert cell["blackjax-native"].utilization is None
    assert line("blackjax-native", cell).split()[-7:-4] == ["-", "0.300", "0.900"]
    assert verdicts("gaussian", cell)[0].endswith("reached")
    assert page({"gaussian": [cell]}, "Measured here.")


def test_losses_and_gains_are_told_in_every_measure():
    ours, theirs = figures(100), figures(50)
    ours.sizes, theirs.sizes = [(40.0, 10.0)] * 3, [(10.0, 20.0)] * 3
    cell = {"pcbatch": ours, "blackjax": theirs}
    assert over_best_peer(cell, "pcbatch", "x") == (4.0, "blackjax")
    assert any(
        "loses to blackjax: 0.50 of its least effective size of x^2" in text for text in verdicts("funnel", cell)
    )
    text = "\n".join(page({"funnel": [cell]}, "Measured here."))
    assert "| funnel | 64 | 2.00 (blackjax) | 1.00 (blackjax) | 4.00 (blackjax) | 0.50 (blackjax) |" in text
    assert "loses to blackjax: 0.50" in text


@pytest.mark.parametrize(
    ("chains", "cores", "shape"), [(8, 2, (2, 4)), (5, 2, (2, 3)), (1, 4, (1, 1)), (5, 4, (3, 2)), (9, 4, (3, 3))]
)
def test_chains_part_evenly_and_come_back(chains, cores, shape):
    starts = np.arange(3 * chains).reshape(chains, 3)
    parts = parted(starts, cores)
    assert parts.shape == (*shape, 3)
    np.testing.assert_array_equal(joined(parts, chains), starts)


def test_flags_come_beside_those_that_are_set(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--one")
    assert with_flags("--other") == {"XLA_FLAGS": "--one --other"}
    assert with_flags("") == {}


def learned(size, gradients, means=(0.0, 0.0)):
    """Figures of one run of an adaptation: effective sizes of x and twice that of x^2, means with errors of 1."""
    return adaptation.Figures([(size, 2 * size)], [gradients], [500], [list(means), [1.0, 1.0]])


def test_adaptation_is_judged_by_effective_sizes_of_a_gradient():
    found = {
        "mesquite": {"pcbatch": learned(100, 1000), "nutpie": learned(200, 1000, means=(3.0, 0.0))},
        "arK": {"pcbatch": learned(400, 1000), "nutpie": learned(100, 1000)},
        "garch": {"pcbatch": adaptation.Figures(failure="ended"), "nutpie": learned(100, 1000)},
    }
    assert adaptation.ratios(found, "pcbatch") == {"mesquite": (0.5, 0.5), "arK": (4.0, 4.0)}
    x, x2, means = adaptation.verdicts(found)
    assert "x: 1.41 times nutpie's in the geometric mean, least 0.50 (mesquite)" in x
    assert "not reached" in x
    assert "x^2: 1.41" in x2
    assert f"than {3 / 2**0.5:.1f} errors (mesquite)" in means
    text = "\n".join(adaptation.page(found, adaptation.Question(8, 1000, 100, 1), "Measured here."))
    assert "| mesquite | 8 | pcbatch | 1.2 | 100.0 | 200.0 | 0.50 | 0.50 | 62 |" in text
    assert "| garch |  | pcbatch | ended |" in text


def test_criteria_are_judged_by_effective_sizes_of_a_gradient():
    def one(size):
        return criterion.Figures((size, 2 * size), 1000, 100)

    found = {
        "gaussian": {1.0: one(100), 0.75: one(200), 0.5: one(50)},
        "arK": {1.0: one(10), 0.75: one(20), 0.5: one(20)},
    }
    lines = criterion.rows(found)
    assert lines[1] == ["gaussian", "0.75", "10.0", "200", "400", "2.00", "2.00"]
    assert lines[-2:] == [
        ["geometric mean", "0.75", *[""] * 3, *["2.00"] * 2],
        ["geometric mean", "0.5", *[""] * 3, *["1.00"] * 2],
    ]


def test_quantiles_of_known_densities():
    found = np.sort(np.random.default_rng(0).gamma(2.0, size=400_000))
    for level, quantile in zip(many_chains.LEVELS, many_chains.KNOWN["gammas"].quantiles, strict=True):
        below = np.searchsorted(found, quantile) / len(found)
        assert abs(below - level) < 4 * np.sqrt(level * (1 - level) / len(found))
    np.testing.assert_allclose(many_chains.KNOWN["normals"].quantiles, [-1.6449, 1.6449, -3.0902, 3.0902], atol=1e-4)


def test_many_chains_are_compared_at_equal_time():
    many = many_chains.Figures(4096, 100, 50, [4.0], [[0.1, 0.1, 0.1, 0.2, 0.2]], [1.01])
    few = many_chains.Figures(8, 1000, 2000, [1.0], [[0.2, 0.3, 0.4, 0.4, 0.4]], [1.0])
    text = "\n".join(many_chains.page({"normals": (many, few)}, 16, 1, "Measured here."))
    assert "| normals | 4,096 | 100 | 50 | 4.00 | 0.1000 | 0.1000 | 0.2000 | 1.010 |" in text
    assert "mean 1.00, quantiles 0.57, tails 1.00" in text
