"""Calls until they are warm, and whether they are: without that, tests of warm calls would test nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch

X = tf.constant([1.0, 2.0, 3.0])


def value(result: Any) -> Any:
    """As lists of Python's numbers."""
    return np.asarray(result).tolist()


def warm(function: pcbatch.Batched, *args: Any) -> bool:
    """Whether a call would be warm."""
    return function.session.run_warm(args) is not None


def settled(function: pcbatch.Batched, *args: Any) -> Any:
    """The values of three calls, which agree; from the third on they are warm."""
    found = [value(function(*args)) for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert warm(function, *args)
    return found[0]
