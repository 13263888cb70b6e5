"""`nuts.export`: whole chains in a file, from a key to draws."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts
from pcbatch.runtime.export import file
from tests.exporting import run_text


def log_density(parameters, data):
    x, scale = parameters["x"], parameters["scale"]
    return -0.5 * tf.reduce_sum(((x - data) / tf.constant([1.0, 2.0, 3.0])) ** 2) - scale + tf.math.log(scale)


MEAN = np.array([1.0, -1.0, 5.0], np.float32)
INITIAL = {"x": np.zeros(3, np.float32), "scale": 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["multinomial", "slice"])
def test_draws_have_the_distribution(kernel, tmp_path):
    nuts.export(
        tmp_path / "chains.pcb",
        log_density,
        INITIAL,
        data=MEAN,
        bijectors={"scale": nuts.positive},
        warmup=300,
        draws=250,
        thin=2,
        kernel=kernel,
        platforms="cpu",
    )
    contents = file.read(tmp_path / "chains.pcb")
    assert contents.lanes[0] == 2, "any number of chains"
    keys = np.random.default_rng(0).integers(2**32, size=(16, 2), dtype=np.uint32)
    found = run_text(contents, [keys, MEAN], 16, 16, contents.depths[-1])
    structure = contents.program.structure
    names = [*structure.items[0].keys, *structure.items[1].keys]
    values = dict(zip(names, found, strict=False))
    assert not found[len(names)].any(), "statuses"
    assert (values["x"].shape, values["lp"].shape) == ((16, 250, 3), (16, 250))
    np.testing.assert_allclose(values["x"].mean((0, 1)), MEAN, atol=0.25)
    np.testing.assert_allclose(values["x"].std((0, 1)), [1, 2, 3], rtol=0.1)
    np.testing.assert_allclose(values["scale"].mean(), 2, rtol=0.1)  # a gamma distribution of shape 2
    assert 0.6 < values["acceptance_rate"].mean() < 0.95
    assert values["diverging"].mean() < 0.01
    assert (values["n_steps"] >= 2 ** (values["tree_depth"] - 1)).all()


def test_what_makes_no_sense_is_refused(tmp_path):
    for options, code in (
        ({"adapt": "pooled"}, "PCB551: exported chains know nothing of each other"),
        ({"metric": "dense"}, "PCB551: exported chains learn a diagonal metric"),
        ({"draws": 0}, "PCB551: draws must be an int of at least 1"),
        ({"warmup": 0}, "PCB551: without a warm-up that adapts it, step_size must be given"),
        ({"bijectors": {"y": nuts.positive}}, "PCB558"),
        ({"platforms": "gpu"}, "PCB582"),
    ):
        with pytest.raises(UsageError, match=code):
            nuts.export(tmp_path / "chains.pcb", log_density, INITIAL, data=MEAN, **options)
    assert not [*tmp_path.iterdir()]
