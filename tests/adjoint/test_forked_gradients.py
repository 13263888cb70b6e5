"""Gradients through runs whose calls are forked: those of a tape over one example after another."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.adjoint import tape as tapes
from tests.adjoint.forked_programs import CASES
from tests.adjoint.truth import assert_alike, batched, one_by_one

slow = pytest.mark.slow


@pytest.mark.parametrize("name", CASES)
def test_forked(name):
    function, arguments, variables = CASES[name]
    found = batched(function.options(jit=False), arguments, variables)
    assert_alike(found, one_by_one(function, arguments, variables))
