"""Chains in groups, one for each core: the same draws, the same failures, each under its own number."""

import os
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import nuts
from pcbatch.nuts.running import groups
from pcbatch.nuts.running.groups import groups_of, side_by_side
from pcbatch.nuts.running.sampling_run import SamplingRun
from pcbatch.runtime.backends.tensorflow import graphs
from pcbatch.runtime.costs.device import CPU
from tests.nuts.densities import QUIET


@pytest.mark.parametrize(
    ("chains", "cores", "work", "sizes"),
    [
        (64, 2, 1.0, [32, 32]),
        (64, 3, 1.0, [32, 32]),
        (64, 64, 1.0, [4] * 16),
        (12, 2, 1.0, [12]),
        (12, 3, 1.0, [4, 4, 4]),
        (5, 8, 1.0, [5]),
        (1, 8, 1.0, [1]),
        (64, 1, 1.0, [64]),
        (64, 2, CPU.expensive_gradients / 63, [64]),
    ],
)
def test_groups_are_equal_and_multiples_of_four(monkeypatch, chains, cores, work, sizes):
    monkeypatch.setattr(groups, "cores", lambda: cores)
    monkeypatch.setattr(graphs, "has_gpu", lambda: False)
    found = groups_of(chains, work)
    assert [group.stop - group.start for group in found] == sizes
    assert np.concatenate([np.arange(chains)[group] for group in found]).tolist() == list(range(chains))


def test_results_come_in_order_and_errors_come_out():
    assert side_by_side(lambda group: group.start, [slice(0, 2), slice(2, 4), slice(4, 6)]) == [0, 2, 4]

    def fails(group):
        if group.start:
            raise ValueError("in a thread")

    with pytest.raises(ValueError, match="in a thread"):
        side_by_side(fails, [slice(0, 2), slice(2, 4)])


@pcbatch.autobatch(form="lockstep")
def counted(n):
    while n > 0:
        n -= 1
    return n


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("longest", [0, 1])
def test_ctrl_c_stops_all_groups(longest):
    """Also where only the group of another thread still runs, for which this one waits."""
    turns = np.full(2, 10)
    side_by_side(lambda group: counted.run(turns[group]), [slice(0, 1), slice(1, 2)])  # compiled
    turns[longest:] = 2**31 - 1  # an hour
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        side_by_side(lambda group: counted.run(turns[group]), [slice(0, 1), slice(1, 2)])
    assert groups._threads().submit(counted, [3]).result().numpy() == [0]


def walled(q):
    """A Gaussian that is flat far out."""
    return tf.where(tf.abs(q[0]) < 30.0, -0.5 * tf.reduce_sum(q**2), 0.0 * q[0] - 450.0)


def sampled(cores, monkeypatch):
    starts = np.clip(np.random.default_rng(3).normal(size=(16, 3)), -1, 1)
    starts[[2, 13]] = 1e4  # two chains find an improper posterior, one in each half
    monkeypatch.setattr(groups, "cores", lambda: cores)
    with pytest.warns(nuts.SamplerWarning, match="failed"):
        return nuts.sample(
            walled,
            starts[0],
            initial_per_chain=starts,
            chains=16,
            warmup=30,
            draws=10,
            seed=4,
            dtype="float64",
            schedule="adaptive",  # in lockstep
            **QUIET,
        )


@pytest.mark.slow
def test_draws_do_not_depend_on_the_groups(monkeypatch):
    alone, both = sampled(1, monkeypatch), sampled(2, monkeypatch)
    assert sorted(both.failed) == sorted(alone.failed) == [2, 13]
    np.testing.assert_array_equal(alone["x"], both["x"])
    for name, values in alone.sample_stats.items():
        np.testing.assert_array_equal(values, both.sample_stats[name])
    assert both.cost.gradients == alone.cost.gradients
    assert both.cost.rows <= alone.cost.rows  # a group does not wait for the other's last chain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "kernel"),
    [
        ("adaptive", "slice"),
        ("sweep", "multinomial"),
        ("adaptive", "multinomial"),
        ("sweep", "slice"),
    ],
)
def test_chains_wait_at_gradients_that_are_expensive_and_draw_the_same(monkeypatch, kernel, schedule):
    """The program has a block at which lanes wait where gradients are expensive, or the schedule knows no prices."""

    def drawn(expensive):
        some = replace(CPU, expensive_gradients=0.0 if expensive else np.inf)
        monkeypatch.setattr(groups, "device", lambda: some)
        monkeypatch.setattr(groups, "cores", lambda: 1)
        settings = {"chains": 8, "warmup": 20, "draws": 10, "seed": 5, "kernel": kernel, "schedule": schedule}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nuts.SamplerWarning)
            samples = nuts.sample(narrow, np.zeros(3), max_tree_depth=5, **settings, **QUIET)
        return SamplingRun.after(samples).chain.source().count("sync=True"), samples

    (waits, together), (seldom, apart) = drawn(True), drawn(False)
    assert (waits, seldom) == (1, schedule == "sweep")
    np.testing.assert_array_equal(together["x"], apart["x"])
    assert together.cost.gradients == apart.cost.gradients


def narrow(q):
    """A Gaussian whose scales differ, so that trajectories have several lengths."""
    return -0.5 * tf.reduce_sum(tf.square(q * tf.constant([1.0, 4.0, 16.0], q.dtype)))
