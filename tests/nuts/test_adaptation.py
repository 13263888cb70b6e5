"""Plans, dual averaging and the search of a first step size, each against a plain way of computing it."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.nuts.adaptation import adaptation
from pcbatch.nuts.adaptation.adaptation import (
    CLOSE,
    DOWN,
    LAST,
    READY,
    SAMPLE,
    SEARCH,
    START,
    START_AND_SEARCH,
    STEP,
    UP,
    WINDOW,
)


def number(value):
    return tf.constant(value, tf.float64)


def test_a_plan_has_the_actions_that_it_was_made_of():
    actions = [STEP] * 5 + [WINDOW] * 3 + [CLOSE, CLOSE] + [STEP] + [LAST]
    plan = tf.nest.map_structure(tf.constant, adaptation.plan_of(actions))
    found = [int(adaptation.action_at(plan, tf.constant(trajectory))) for trajectory in range(20)]
    assert found == actions + [SAMPLE] * 8


def test_a_plan_without_warm_up():
    plan = tf.nest.map_structure(tf.constant, adaptation.plan_of([]))
    assert [int(adaptation.action_at(plan, tf.constant(number))) for number in (0, 7)] == [SAMPLE, SAMPLE]
    assert plan.ends.shape == plan.actions.shape == (adaptation.PHASES,)


def test_a_plan_of_too_many_phases():
    assert adaptation.plan_of([STEP, WINDOW] * 31 + [STEP]).actions[-1] == SAMPLE
    with pytest.raises(ValueError, match="at most 64 phases, not 65"):
        adaptation.plan_of([STEP, WINDOW] * 32)


def stan_step_sizes(first, acceptances, target):
    """`stepsize_adaptation.hpp`, in Python: the step size after each update, and the averaged one; shorter strides."""
    mu, s_bar, x_bar, found = np.log(2 * first), 0.0, 0.0, []
    for counter, acceptance in enumerate(acceptances, start=1):
        eta = 1 / (counter + 10)
        s_bar = (1 - eta) * s_bar + eta * (target - min(acceptance, 1))
        x = mu - s_bar * np.sqrt(counter) / 0.2
        x_eta = counter**-0.75
        x_bar = (1 - x_eta) * x_bar + x_eta * x
        found.append(np.exp(x))
    return found, np.exp(x_bar)


def test_dual_averaging_is_that_of_stan():
    acceptances = np.random.default_rng(3).uniform(size=60)
    averaging, found = adaptation.restarted(number(0.3)), []
    for acceptance in acceptances:
        averaging = adaptation.learned_step(averaging, number(acceptance), number(0.8))
        found.append(float(tf.exp(averaging.log_step)))
    expected, averaged = stan_step_sizes(0.3, acceptances, 0.8)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    np.testing.assert_allclose(tf.exp(averaging.log_step_mean), averaged, rtol=1e-11)


def test_dual_averaging_finds_the_step_that_is_accepted_as_wanted():
    averaging = adaptation.restarted(number(0.1))
    for _ in range(300):  # a density where a step of length e is accepted with probability exp(-e)
        averaging = adaptation.learned_step(averaging, tf.exp(-tf.exp(averaging.log_step)), number(0.7))
    np.testing.assert_allclose(tf.exp(averaging.log_step_mean), -np.log(0.7), rtol=0.02)


@pytest.mark.parametrize("gamma", [0.2, 0.05])
def test_the_mean_step_is_not_too_short_where_acceptance_falls_off(gamma, monkeypatch):
    """Longer steps than 1 are never accepted, as beyond the limit of stability; shorter ones with 1 - step^4 / 2."""
    assert adaptation.GAMMA == 0.2
    monkeypatch.setattr(adaptation, "GAMMA", gamma)
    averaging, random = adaptation.restarted(tf.fill([256], number(0.5))), np.random.default_rng(1)
    for _ in range(50):
        step = np.exp(averaging.log_step.numpy())
        mean = np.where(step < 1, 1 - 0.5 * step**4, 0.0)
        averaging = adaptation.learned_step(averaging, number(random.uniform(0.5, 1.5, 256) * mean), number(0.8))
    step = np.exp(averaging.log_step_mean.numpy())
    acceptance = (1 - 0.5 * step**4).mean()
    assert (0.78 < acceptance < 0.88) == (gamma == 0.2), acceptance


def search(acceptance_of, step_size):
    """All trials of a search: `(phase, step_size)` after each."""
    phase, step_size, trials = tf.constant(SEARCH), number(step_size), []
    while int(phase) != READY:
        phase, step_size = adaptation.after_trial(phase, step_size, number(acceptance_of(float(step_size))))
        trials.append((int(phase), float(step_size)))
    return trials


def test_the_search_goes_up_to_where_acceptance_falls():
    assert search(lambda step: 0.9 if step < 3 else 0.1, 0.5) == [
        (UP, 0.5),
        (UP, 1.0),
        (UP, 2.0),
        (UP, 4.0),
        (READY, 4.0),
    ]


def test_the_search_goes_down_to_where_acceptance_rises():
    assert search(lambda step: 0.9 if step < 0.3 else 0.1, 1.0) == [
        (DOWN, 1.0),
        (DOWN, 0.5),
        (DOWN, 0.25),
        (READY, 0.25),
    ]


@pytest.mark.parametrize("acceptance", [0.0, 1.0, np.nan])
def test_the_search_ends_where_there_is_nothing_to_find(acceptance):
    trials = search(lambda step: acceptance, 1.0)
    assert len(trials) < 50
    smallest, largest = adaptation.SMALLEST_STEP, adaptation.LARGEST_STEP
    assert 0.5 * smallest <= trials[-1][1] <= 2 * largest


def test_what_follows_the_first_gradient():
    phases = [
        int(adaptation.after_trial(tf.constant(phase), number(0.1), number(1.0))[0])
        for phase in (START, START_AND_SEARCH)
    ]
    assert phases == [READY, SEARCH]
