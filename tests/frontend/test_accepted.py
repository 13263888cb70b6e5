"""Programs that look as if they were refused, and do what Python does."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.frontend.refused import loaded, plainly

ACCEPTED = sorted((Path(__file__).parent / "accepted").glob("*.py"))


def batched(function: Any = None, **options: Any) -> Any:
    return pcbatch.autobatch(jit=False, **options) if function is None else REAL(function, jit=False, **options)


REAL = pcbatch.autobatch


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_programs_do_what_python_does(path: Path) -> None:
    python, ours = loaded(path, plainly), loaded(path, batched)
    for name, examples in ours["EXAMPLES"].items():
        columns = [
            tf.nest.map_structure(lambda *leaves: np.stack(leaves), *column) for column in zip(*examples, strict=True)
        ]
        found = ours[name](*columns)
        for lane, example in enumerate(python["EXAMPLES"][name]):
            expected = tf.nest.flatten(python[name](*copy.deepcopy(example)))
            own = [np.asarray(leaf)[lane] for leaf in tf.nest.flatten(found)]
            assert len(own) == len(expected)
            for one, other in zip(own, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=f"{name}, lane {lane}")
