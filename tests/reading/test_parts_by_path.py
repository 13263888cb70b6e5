"""Parts of arrays that have another length, or are of another array, on each path: Python is the judge."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = np.concatenate([np.random.default_rng(0).normal(size=(6, 5)), np.full((1, 5), -1.0), np.full((1, 5), 0.3)])


def halves_of(xs):
    n = int(abs(xs[0]) * 5) % 4 + 1
    p = xs[:n] if xs[1] > 0 else xs[n:]
    return p.sum(), len(p), sum(v * k for k, v in enumerate(p))


def whole_or_part(xs):
    n = int(abs(xs[0]) * 5) % 4 + 1
    p = xs
    if xs[1] > 0:
        p = xs[:n]
    s = 0.0
    for v in p:
        s = s * 0.5 + v
    return s, len(p), p.max()


def others(xs):
    n = int(abs(xs[0]) * 5) % 3 + 1
    ys = xs * 2
    if xs[1] > 0:
        p = xs[1 : n + 1]
    elif xs[2] > 0:
        p = ys[:n]
    else:
        p = ys
    return p.mean(), p[0], (p * 2).sum(), p.min()


def masks(xs):
    p = xs[xs > 0] if xs[0] > 0 else xs[xs < 1]
    return p.sum(), len(p)


def stored(xs):
    n = int(abs(xs[0]) * 5) % 3 + 1
    p = xs[:n] if xs[1] > 0 else xs[n:]
    p[0] = 5.0
    return xs.sum()


def slice_or_mask(xs):
    n = int(abs(xs[0]) * 5) % 3 + 1
    p = xs[:n] if xs[0] > 0 else xs[xs < 1]
    return p.sum(), len(p)


PROGRAMS = [halves_of, whole_or_part, others, masks, stored, slice_or_mask]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("options", [{"form": "lockstep", "jit": False}, {"form": "native"}], ids=str)
def test_answers_are_pythons(program, options):
    found = [np.asarray(each) for each in tf.nest.flatten(pcbatch.autobatch(program).options(**options)(X))]
    for lane, row in enumerate(X):
        for own, theirs in zip(found, tf.nest.flatten(program(row.copy())), strict=True):
            np.testing.assert_allclose(own[lane], theirs, rtol=1e-6)


def met(source, targets):
    seen = {source}
    return sum(1 for each in targets if each in seen)


def test_a_set_of_numbers_of_lanes():
    found = pcbatch.autobatch(met)([1, 2], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(found, [met(1, [1, 2]), met(2, [3, 4])])
