"""Dicts, counters and defaultdicts that begin with a known key, and get a lane's key afterwards."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

N = np.array([0, 1, 3, 5])


def stored(n):
    d = {0: 1.0}
    d[n] = 2.0
    return sum(d.values()), len(d)


def stored_in_a_loop(n):
    d = {0: 1}
    for k in range(5):
        d[(n * k) % 4] = k
    return len(d), sum(d.values())


def counted(n):
    c = Counter([3])
    for k in range(6):
        c[(n + k) % 4] += k
    return c[0], c[3], c.total()


def listed(n):
    d = defaultdict(list)
    d[0].append(1)
    d[n].append(2)
    return len(d), len(d[0])


def numbered(n):
    d = defaultdict(int)
    d[1] += 1
    for k in range(4):
        d[n % (k + 1)] += k
    return len(d), d[0], d[1]


def got_and_stored(n):
    d = {0: 1}
    for k in range(5):
        d[(n * k) % 4] = d.get((n * k) % 4, 0) + 1
    return len(d), d[0]


def pairs(n):
    seen, x, y = {(0, 0): 0}, 0, 0
    for k in range(5):
        if (n >> k) & 1:
            x += 1
        else:
            y += 1
        seen[x, y] = k
    return len(seen), seen[x, y]


def remembered(n):
    known = {0: 0, 1: 1}

    def fibonacci(k):
        if k not in known:
            known[k] = fibonacci(k - 1) + fibonacci(k - 2)
        return known[k]

    return fibonacci(n)


def on_one_path(n):
    d = {0: 1}
    if n > 2:
        d[n] = 4
    return len(d)


def returned_with_all_keys(n):
    d = {0: 0, 1: 0, 2: 0}
    for k in range(5):
        d[(n + k) % 3] = k
    return d[0], d[1], d[2]


PROGRAMS = [stored, stored_in_a_loop, counted, listed, numbered, got_and_stored, pairs, remembered, on_one_path]
PROGRAMS += [returned_with_all_keys]


@pytest.mark.parametrize("form", ["auto", pytest.param("lockstep", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python_has_it(program, form):
    found = pcbatch.autobatch(program, form=form)(N)
    for lane, n in enumerate(N):
        own = tf.nest.map_structure(lambda each, lane=lane: each[lane].numpy(), found)
        tf.nest.map_structure(np.testing.assert_allclose, own, program(int(n)))


def dict_of(n):
    d = {0: 0, 1: 0}
    for k in range(3):
        d[n * k] = k
    return d


def test_a_dict_that_is_returned_has_the_keys_that_it_begins_with():
    run = pcbatch.autobatch(dict_of).run(np.array([0, 1]))
    (error,) = run.errors
    assert error.lane == 1
    assert "begin with all" in error.message
    assert {key: int(each[0]) for key, each in run.value.items()} == dict_of(0) | {1: 0}
