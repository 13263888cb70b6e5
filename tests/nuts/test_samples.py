"""What sampling gives back, on draws made by hand: warnings, tables, ArviZ, pictures."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import arviz
import numpy as np
import pytest

from pcbatch import UsageError, nuts
from pcbatch.nuts.results import reports
from pcbatch.nuts.settings import Settings

SETTINGS = Settings(
    chains=4,
    warmup=10,
    draws=200,
    seed=0,
    init="exact",
    metric="diag",
    target_accept=0.8,
    max_tree_depth=6,
    leapfrogs_per_leaf=1,
    adapt="per_chain",
    kernel="multinomial",
    thin=1,
    save_warmup=False,
    dtype="float64",
    jit=True,
    schedule="auto",
    chunk=50,
)


def samples(settings=SETTINGS, failed=None, interrupted=False, **changes):
    """Independent draws that nothing speaks against, with `changes` of draws or statistics."""
    random = np.random.default_rng(3)
    shape = (4, 200)
    posterior = {"loc": random.normal(size=shape), "weights": random.normal(size=(*shape, 2, 2))}
    stats = {
        "lp": random.normal(size=shape),
        "energy": random.normal(size=shape),
        "acceptance_rate": np.full(shape, 0.8),
        "tree_depth": random.integers(1, 4, shape),
        "n_steps": random.integers(1, 8, shape),
        "diverging": np.zeros(shape, bool),
        "step_size": np.full(shape, 0.5),
    }
    groups = [{name: changes.get(name, array) for name, array in group.items()} for group in (posterior, stats)]
    cost = nuts.Cost(int(stats["n_steps"].sum()), 5000)
    stats_of_compiler = SimpleNamespace(compilations=1)
    return nuts.Samples(*groups, {}, {}, cost, stats_of_compiler, settings, failed or {}, interrupted, None)


def test_a_mapping_of_names_to_draws():
    found = samples()
    assert list(found) == ["loc", "weights"]
    assert len(found) == 2
    assert found["weights"].shape == (4, 200, 2, 2)
    assert (found.chains, found.draws) == (4, 200)


def test_the_repr_says_how_much_and_how_well():
    found = repr(samples())
    gradients = samples().cost.gradients
    assert found == (
        "<pcbatch.nuts.Samples: 4 chains of 200 draws of loc[], weights[2, 2]; 0 diverging, "
        f"{gradients} gradients, utilisation {gradients / 5000:.2f}>"
    )
    assert "interrupted, 1 failed" in repr(samples(failed={2: "no"}, interrupted=True))


def test_nothing_to_say_about_good_draws():
    assert samples().warnings == ()


def at(*places, shape=(4, 200)):
    found = np.zeros(shape, bool)
    for chain, draw in places:
        found[chain, draw] = True
    return found


def test_divergences_and_who_has_most():
    (text,) = samples(diverging=at((0, 1), (2, 3), (2, 4), (2, 199))).warnings
    assert text.startswith("4 of 800 trajectories diverged after the warm-up, 3 of them in chain 2")
    (text,) = samples(diverging=at((0, 1), (1, 3))).warnings
    assert text.startswith("2 of 800 trajectories diverged after the warm-up; ")


def test_chains_that_stand_still():
    rates = np.full((4, 200), 0.8)
    rates[2] = 0.001
    text, *_ = samples(acceptance_rate=rates).warnings
    assert text.startswith("1 of 4 chains stand still (2): ")

    stuck = {name: draws.copy() for name, draws in samples().items()}
    for draws in stuck.values():
        draws[1, 95:] = draws[1, 95]
    text, *_ = samples(**stuck).warnings
    assert text.startswith("1 of 4 chains stand still (1): ")
    stuck["weights"][1, 150, 0, 1] += 1.0
    assert not [text for text in samples(**stuck).warnings if "stand still" in text]


def test_trajectories_that_did_not_turn():
    depth = np.full((4, 200), 3)
    depth[1, :7] = 6
    (text,) = samples(tree_depth=depth).warnings
    assert text.startswith("7 of 800 trajectories reached max_tree_depth=6 before they turned; draws are right")
    apart = np.random.default_rng(1).normal(size=(4, 200)) + 5.0 * np.arange(4)[:, None]
    text, _ = samples(tree_depth=depth, loc=apart).warnings
    assert "no draw is right" in text
    text, *_ = samples(step_size=np.full((4, 200), 1e83)).warnings
    assert text.startswith("steps of 4 of 4 chains (0, 1, 2, 3) grew to 1e+83: the posterior is improper")


def test_energies_that_move_slowly():
    energy = np.random.default_rng(1).normal(size=(4, 200))
    energy[3] = np.cumsum(energy[3])
    (text,) = samples(energy=energy).warnings
    assert text.startswith("E-BFMI is below 0.3 in 1 of 4 chains (3; lowest 0.0")


def test_chains_that_have_not_mixed():
    weights = np.random.default_rng(1).normal(size=(4, 200, 2, 2))
    weights[0, :, 1, 0] += 3.0
    (text,) = samples(weights=weights).warnings
    assert text.startswith("R-hat is above 1.01 for 1 of 5 numbers (weights[1, 0]: 1.")


def test_many_short_chains_are_judged_by_their_groups():
    settings = replace(SETTINGS, superchains=2)
    loc = np.random.default_rng(1).normal(size=(4, 200))
    assert samples(settings=settings, loc=loc).warnings == ()
    loc[:2] += 1.0
    (text,) = samples(settings=settings, loc=loc).warnings
    assert text.startswith("nested R-hat is above 1.01 for 1 of 5 numbers (loc: 1.")
    assert samples(settings=settings, loc=loc).nested_r_hats["loc"] > 1.1


@pytest.mark.parametrize("groups", [1, 3, 4, 5])
def test_groups_of_chains_that_are_none(groups):
    with pytest.raises(UsageError, match=f"PCB551: superchains must be at least 2 groups .*: {groups} do not divide 4"):
        replace(SETTINGS, superchains=groups)


def test_chains_that_failed_are_named_and_left_out():
    loc = samples()["loc"].copy()
    loc[2] = np.nan
    found = samples(loc=loc, failed={2: "AssertionError: no"})
    (text,) = found.warnings
    assert text == "1 of 4 chains failed (2), the first with: AssertionError: no; their draws are NaN"
    assert np.isfinite(found.summary().to_numpy(float)).all()


def test_interruption():
    assert samples(interrupted=True, settings=SETTINGS.with_draws(300)).warnings == (
        "interrupted: 200 of 300 draws of each chain are here",
    )


def test_warnings_are_at_the_line_that_asked():
    with pytest.warns(nuts.SamplerWarning, match="diverged") as caught:
        reports.warn(samples(diverging=at((0, 0))), stacklevel=1)
    assert [warning.filename for warning in caught] == [__file__]


def test_utilizations_are_counted_from_the_trajectories():
    steps = np.ones((4, 200), int)
    steps[0] = 3
    steps[1, 0] = 7
    found = samples(n_steps=steps).utilizations()
    assert found["lockstep"] == steps.sum() / (4 * (7 + 199 * 3))
    assert found["waiting at the end"] == steps.sum() / (4 * 600)
    assert found["measured"] == samples().cost.utilization


def test_the_table_is_arvizs():
    found = samples()
    table = found.summary()
    assert list(table.columns) == ["mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat"]
    assert list(table.index) == ["loc", "weights[0, 0]", "weights[0, 1]", "weights[1, 0]", "weights[1, 1]"]
    np.testing.assert_allclose(table.loc["loc", "mean"], found["loc"].mean())
    np.testing.assert_allclose(table.loc["loc", "r_hat"], float(arviz.rhat(found["loc"])))
    np.testing.assert_allclose(table.loc["loc", "ess_bulk"], float(arviz.ess(found["loc"], method="bulk")))


def test_arviz_has_draws_and_statistics():
    found = samples()
    converted = found.to_arviz()
    np.testing.assert_array_equal(converted["posterior"]["weights"], found["weights"])
    assert set(converted["sample_stats"].data_vars) == set(found.sample_stats)


def test_pictures(tmp_path):
    paths = samples(diverging=at((1, 5))).plot(tmp_path / "new")
    assert [path.name for path in paths] == ["trace.png", "rank.png", "utilization.png"]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 10_000
