"""Formulas of when a lane comes to a block, against truth tables."""

import itertools
import random

import numpy as np

from pcbatch.runtime.backends.numpy.backend import numpy_backend
from pcbatch.runtime.native.paths import ALWAYS, NEVER, Paths

COUNT = 4
TABLE = np.array(list(itertools.product([False, True], repeat=COUNT)))
BOOLS = [np.ascontiguousarray(TABLE[:, place]) for place in range(COUNT)]
"""Variables, each the vector of its values in all cases."""


def as_vector(paths, when):
    found = paths.computed(when)
    return np.ones(len(TABLE), bool) if found is None else np.broadcast_to(found, len(TABLE))


def test_random_formulas_say_what_they_are_made_of():
    for seed in range(200):
        random.seed(seed)
        paths = Paths(numpy_backend())
        known = [(ALWAYS, np.ones(len(TABLE), bool)), (NEVER, np.zeros(len(TABLE), bool))]
        for _ in range(12):
            (one, first), (other, second) = random.choices(known, k=2)
            if random.random() < 0.5:
                known.append((paths.or_(one, other), first | second))
            else:
                variable, holds = random.choice(BOOLS), random.random() < 0.5
                known.append((paths.and_(one, variable, holds), first & (variable == holds)))
        for when, wanted in known:
            np.testing.assert_array_equal(as_vector(paths, when), wanted)


def test_both_arms_of_a_branch_are_what_was_before_it():
    paths = Paths(numpy_backend())
    before = paths.and_(ALWAYS, BOOLS[0])
    true, false = (paths.and_(before, BOOLS[1], holds) for holds in (True, False))
    assert paths.or_(true, false) == before
    inner = [paths.and_(true, BOOLS[2], holds) for holds in (True, False)]
    assert paths.or_(paths.or_(inner[0], false), inner[1]) == before
    assert paths.computed(paths.or_(paths.and_(ALWAYS, BOOLS[3]), paths.and_(ALWAYS, BOOLS[3], holds=False))) is None
