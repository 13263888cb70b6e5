"""The batching paper's figures: draws that differ are seen, who fails is named, pages say what the figures say."""

import re

import numpy as np
import pytest

from benchmarks.conversation import ContestantError
from benchmarks.environments import PeerUnavailableError
from benchmarks.figures import crew, pages, paper, throughput, utilization
from benchmarks.figures.agreement import Moments, apart, verdicts
from benchmarks.figures.contestants.worker import Job, Outcome, timed
from benchmarks.figures.crew import CONTESTANTS, Contestant, Crew
from benchmarks.figures.crew import Figures as Timed
from benchmarks.figures.paper import Sizes
from benchmarks.figures.sampler import Chains, Count
from benchmarks.figures.throughput_page import claims, level, seen
from benchmarks.figures.throughput_page import page as throughput_page
from benchmarks.figures.utilization_page import Figures
from benchmarks.figures.utilization_page import page as utilization_page
from benchmarks.nuts.targets import TARGETS, Target

SIZE = 40
SIZES = Sizes(TARGETS["logistic-small"], 5)


def moments(seed, *, mean=0.0, deviation=1.0, draws=400, stays=False):
    """Of chains that draw independent normal numbers, or stay where they are."""
    random = np.random.default_rng(seed)
    starts = random.normal(size=(draws, SIZE))
    found = starts if stays else mean + deviation * random.normal(size=(draws, SIZE))
    return Moments.of(found[:, np.newaxis], starts)


@pytest.mark.parametrize(
    ("other", "agrees"),
    [
        ({}, True),
        ({"draws": 64}, True),
        ({"mean": 0.2}, False),
        ({"deviation": 1.15}, False),
        ({"deviation": 0.87}, False),
        ({"stays": True}, False),
    ],
)
def test_draws_of_another_density_are_seen(other, agrees):
    found = verdicts({"a": moments(1), "b": moments(2, **other)}, {"a": "one", "b": "two"})
    assert found["b"].agrees is agrees, str(found["b"])


def test_contestants_are_compared_with_other_families_only():
    """Those of one family may make the very same draws, and few draws prove nothing."""
    found = {"a": moments(1), "b": moments(1), "c": moments(2), "d": moments(3, draws=5, mean=9.0)}
    said = verdicts(found, {"a": "ours", "b": "ours", "c": "theirs", "d": "others"})
    assert said.keys() == {"a", "b", "c"}
    assert said["a"] == said["b"]
    assert apart(found["a"], found["b"]) == 0.0 < apart(found["a"], found["c"])


def test_machines_that_draw_something_else_are_a_fault():
    _, faults = throughput.agreements({"pc": moments(1), "local": moments(4), "tfp": moments(2)})
    assert len(faults) == 1
    assert "pc and local" in faults[0]


def test_moments_are_added_up():
    together, apart_ = moments(1), moments(2)
    draws = np.concatenate([np.random.default_rng(seed).normal(size=(2, 400, SIZE))[1] for seed in (1, 2)])
    both = together + apart_
    np.testing.assert_allclose(both.mean, draws.mean(axis=0))
    np.testing.assert_allclose(both.variance, draws.var(axis=0, ddof=1))


def test_a_contestant_may_give_its_own_seconds():
    job = Job(Sizes(TARGETS["funnel"], 1), 2)
    outcome = Outcome(7, None, np.zeros((2, 1, 10)), seconds=123.0)
    assert timed(job, lambda seed: outcome, 1)["seconds"] == 123.0


class Pretender:
    """A process that makes so many gradients a second for each chain, or fails."""

    started = 0

    def __init__(self, fails="", rate=100):
        Pretender.started += 1
        self.fails, self.rate, self.chains = fails, rate, 0

    def ask(self, limit, do, **command):
        if do == self.fails:
            raise ContestantError(f"took more than 3 s to {do}")
        self.chains = command.get("chains", self.chains)
        assert do != "prepare" or command["leapfrogs"] == 4
        reply = {"seconds": 1.0, "gradients": self.rate * self.chains, "rows": 200 * self.chains}
        return {**reply, "moments": vars(moments(command.get("seed", 0)))}

    def close(self):
        pass


@pytest.fixture
def cells(monkeypatch):
    """Of three contestants, one of which fails, one cannot be installed, and one has no batches."""
    Pretender.started = 0

    def process(contestant, device):
        if contestant.script == "stan_sampler":
            raise PeerUnavailableError("pip install .. failed: no wheel")
        return Pretender("run" if contestant.variant == "machine" else "", 150 if contestant.at_once else 100)

    monkeypatch.setattr(Contestant, "process", process)
    with Crew(["pc", "switch", "tfp-machine", "eager", "stan"]) as all_of_them:
        given = {"repeats": 2, "limit": 3, "budget": 9}
        return {chains: all_of_them.measured(SIZES, chains, **given) for chains in (1, 8)}


def test_who_fails_is_named_and_the_others_go_on(cells):
    assert cells[8]["pc"].rate == 800
    assert cells[8]["pc"].useful == 0.5
    assert cells[8]["tfp-machine"].failure == "took more than 3 s to run"
    assert cells[8]["stan"].failure == "pip install .. failed: no wheel"
    assert Pretender.started == 6  # the one that failed is started anew after each number of chains


def test_chains_one_after_another_are_measured_once(cells):
    assert cells[8]["eager"].measured == 1
    assert cells[8]["eager"].seconds is cells[1]["eager"].seconds
    assert cells[8]["eager"].rate == 150


def test_the_page_says_what_is_seen_and_what_is_missing(cells):
    text = "\n\n".join(throughput_page(SIZES, cells, {}, [], "Measured here."))
    assert "| pcbatch (pc) | 100 | 800 |" in text
    assert "| unbatched, eager | 150 | (150) |" in text
    assert "Stan, 8 chains: pip install .. failed: no wheel" in text
    said = "\n".join(seen(cells))
    assert "| pcbatch (pc) | 8.0 |\n| pcbatch, switch | 8.0 |" in said
    assert "| pcbatch, switch | 1.0 | 1.0 |" in said
    assert "|  | more than unbatched, eager |" in said
    assert "| pcbatch (pc) | from 8 chains on |" in said
    assert "| unbatched, eager | 1.50 |  |" in said


def test_a_sampler_that_counts_no_rows_has_no_share_of_them(cells):
    for cell in cells.values():
        cell["eager"].rows[:] = [None] * len(cell["eager"].rows)
    assert "| unbatched, eager |  |  |" in "\n\n".join(throughput_page(SIZES, cells, {}, [], "Measured here."))


RATES = {1: (50.0, 400.0), 8: (200.0, 400.0), 64: (1600.0, 400.0)}


@pytest.mark.parametrize(
    ("factor", "said"),
    [(1, "at 16 chains"), (100, "at 1 chain already"), (0.1, "not at 64 chains yet"), (0, "")],
)
def test_where_somebody_is_level_with_stan(factor, said):
    """Between 8 chains, half of Stan's, and 64, four times as many: on a line in logarithms, a third of the way."""
    cells = {
        chains: {"local": made_at(chains, factor * own), "stan": made_at(chains, its)}
        for chains, (own, its) in RATES.items()
    }
    assert level(cells, "local", "stan") == said
    assert claims(cells)[paper.EAGER_LEVEL] == [f"pcbatch, local {said}." if said else "-"]


def made_at(chains, rate):
    """So many gradients in a second; none where that failed."""
    return Timed(chains, chains, 1.0, [1.0], [1.0], [rate], [None], failure=None if rate else "no wheel")


def test_the_hybrid_is_compared_at_the_most_chains():
    rates = {"pc": 100.0, "switch": 200.0, "hybrid": 150.0, "local": 0.0}
    cells = {chains: {name: made_at(chains, chains * rate) for name, rate in rates.items()} for chains in (1, 64)}
    (said,) = claims(cells)[paper.HYBRID]
    assert said == "At 64 chains it makes 1.50 times as many as pcbatch (pc) and 0.75 times as many as pcbatch, switch."
    (said,) = claims(cells)[paper.LINEAR]
    assert "64.0 times as many for 64 times as many chains (to 64)" in said


def test_the_page_of_a_gpu_is_one_of_its_own(cells):
    text = "\n\n".join(throughput_page(SIZES, cells, {}, [], "Measured here.", "throughput-gpu", "an H200"))
    assert text.startswith("# Throughput by number of chains, on a GPU")
    assert "benchmarks.figures.throughput --device gpu`" in text
    assert "(throughput-gpu.png)" in text
    assert "on an H200: " in text


def test_a_card_is_wanted_where_one_is_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(throughput, "card", lambda: None)
    monkeypatch.setattr("sys.argv", ["throughput", "--device", "gpu"])
    with pytest.raises(SystemExit):
        throughput.main()
    assert "there is no card" in capsys.readouterr().err


def test_disagreement_is_on_the_page(cells):
    text = "\n\n".join(throughput_page(SIZES, cells, {}, ["pc and local differ"], "Measured here."))
    assert "**Draws disagree:** pc and local differ" in text
    assert "Draws agree." not in text


def test_every_contestant_has_a_curve():
    assert throughput.STYLES.keys() == CONTESTANTS.keys()
    looks = {(style.color, style.marker) for style in throughput.STYLES.values()}
    assert len(looks) == len({marker for _, marker in looks}) == len(CONTESTANTS)


def test_pictures_are_drawn(cells, tmp_path):
    curves = throughput.curves(cells)
    assert {curve.label: list(curve.solid) for curve in curves}["unbatched, eager"] == [True, False]
    throughput.pictures.save(tmp_path / "new" / "x.png", curves, title="t", ylabel="y", logarithmic=True)
    assert (tmp_path / "new" / "x.png").read_bytes().startswith(b"\x89PNG")


# -- utilisation -------------------------------------------------------------------------------------------------------


def figures(rows, *, needed=100):
    """Of two chains of two trajectories, one of which is thrice as long as the others."""
    found = Figures()
    found.add(Count(needed, rows, np.array([[10, 30], [10, 10]])))
    return found


def test_bounds_are_counted_from_trajectories():
    found = figures(200)
    found.add(Count(100, 200, np.array([[20, 20], [10, 5]])))
    assert found.utilization == 0.5
    assert found.trajectories == 8
    assert found.longest == 2 * (10 + 30) + 2 * (20 + 20)
    assert found.busiest == 2 * 40 + 2 * 40


def test_machines_that_make_other_trajectories_are_an_error():
    utilization.compare({"earliest": figures(200), "local": figures(300, needed=101)})
    with pytest.raises(AssertionError, match="other trajectories"):
        utilization.compare({"earliest": figures(200), "local": figures(300, needed=110)})


def test_the_page_of_utilisation():
    lockstep = Figures(longest=None, busiest=None, failure="no wheel")
    cell = {"earliest": figures(125), "adaptive": figures(160), "local": figures(250), "tfp": lockstep}
    text = "\n\n".join(utilization_page(Sizes(TARGETS["gaussian-short"], 10), {2: cell}, "Counted here."))
    flat = re.sub(r"\s+", " ", text)
    assert "| pc, the paper's machine | 0.80 |" in text
    assert "| lockstep (TFP) | |" in flat
    assert "| pc, the paper's machine | 2.00 |" in text
    assert "| pc as pcbatch runs it | 1.56 |" in text
    assert "At 2 chains utilisation is lower as pcbatch runs it" in flat
    assert "- no wheel" in text
    assert "here, at 2 chains" in text
    assert f"| lost by lanes that wait after each trajectory | {paper.LOST} | 2.5 (local) |" in text
    assert f"{paper.WON} | 2.0 (pc, the paper's machine), 1.6 (pc as pcbatch runs it) |" in text


@pytest.mark.slow
def test_the_sampler_counts_what_it_needs():
    """In the plain graph, which compiles nothing: 2 chains, 2 trajectories, and a leaf of three where each starts."""
    target = Target("tiny", "AR(1) Gaussian", 3, 0.3, 2)
    found = Chains(Sizes(target, 2, leapfrogs=3), 2).counted(1, masked=True, jit=False, schedule="earliest")
    assert found.gradients.shape == (2, 2)
    assert found.needed == found.gradients.sum() + 2 * 3
    assert (found.gradients % 3 == 0).all()
    assert found.rows % (2 * 3) == 0
    assert found.rows >= found.needed


def test_pages_are_written(tmp_path):
    path = pages.write("x", ["# Title", pages.table(["a", "b"], {"row": ["1", "2"]})], tmp_path / "new")
    assert path.read_text() == "# Title\n\n|  | a | b |\n|---|---|---|\n| row | 1 | 2 |\n"
    assert crew.CORES >= 1
    assert Timed(1, 1).rate is None
