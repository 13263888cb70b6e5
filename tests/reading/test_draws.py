"""Draws of Python's and NumPy's are refused with what replaces them, which draws from the same distribution."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError

rng = np.random.default_rng(0)
INTS = {"a": 2, "b": 5, "n": 8, "k": 2}
FLOATS = {"mean": 10.0, "deviation": 0.5, "rate": 4.0, "scale": 2.0, "alpha": 2.0, "beta": 5.0, "p": 0.25}
VALUES = {**INTS, **FLOATS}
DRAWS = {
    "random.random()": (0.5, 0.0, 1.0),
    "random.uniform(2, 5)": (3.5, 2.0, 5.0),
    "random.randint(2, 5)": (3.5, 2, 5),
    "random.randrange(2, 5)": (3.0, 2, 4),
    "random.gauss(10.0, 0.5)": (10.0, 5.0, 15.0),
    "random.expovariate(4.0)": (0.25, 0.0, 10.0),
    "random.gammavariate(2.0, 2.0)": (4.0, 0.0, 99.0),
    "random.betavariate(2, 5)": (2 / 7, 0.0, 1.0),
    "random.choice(xs)": (2.0, 1.0, 3.0),
    "np.random.randint(2, 5)": (3.0, 2, 4),
    "np.random.normal(10.0, 0.5)": (10.0, 5.0, 15.0),
    "np.random.poisson(4.0)": (4.0, 0, 40),
    "np.random.binomial(8, 0.25)": (2.0, 0, 8),
    "rng.integers(2, 5)": (3.0, 2, 4),
    "rng.permutation(xs)": (2.0, 1.0, 3.0),
}
XS = np.array([1.0, 2.0, 3.0])


def made(expression, tmp_path, name):
    file = tmp_path / f"{name}.py"
    file.write_text(f"def drawn(key, xs, {', '.join(VALUES)}):\n    return {expression}\n")
    scope = {"random": random, "np": np, "rng": rng, "pcbatch": pcbatch}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    return pcbatch.autobatch(scope["drawn"], static_argnames=("n", "k"))


@pytest.mark.parametrize("expression", DRAWS)
def test_what_replaces_a_draw(expression, tmp_path):
    with pytest.raises(CompileError, match="PCB118") as error:
        made(expression, tmp_path, "refused")(pcbatch.random.keys(0, 2), np.stack([XS, XS]), **VALUES)
    (line,) = re.findall(r"`x = (.*)`", error.value.diagnostics[0].help)
    batch = pcbatch.random.keys(0, 2000)
    found = np.asarray(made(line, tmp_path, "replaced")(batch, np.tile(XS, (2000, 1)), **VALUES))
    mean, least, most = DRAWS[expression]
    assert least <= found.min()
    assert found.max() <= most
    assert abs(found.mean() - mean) < 0.1 * max(abs(mean), 1.0)
