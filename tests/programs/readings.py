"""The ways to run a program that the judge knows: options of pcbatch, `f.single`, any function by its dotted name."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus
from pcbatch.function import examples as calls
from tests.programs.judging import FAILURES, Lane, Run, examples, numbers

OPTIONS: dict[str, dict[str, Any]] = {
    "reference": {"backend": "reference"},
    "default": {},
    "lockstep": {"form": "lockstep"},
    "native": {"form": "native"},
}
"""Sets of options by name. "reference" is the cheapest way through the front end: nothing is compiled."""


def run_with(options: dict[str, Any], function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    """A run of a batch under options, as a user makes it."""
    run = pcbatch.autobatch(function).options(**options).run(*arguments)
    parts = numbers(run.value)
    return [
        None if status != LaneStatus.OK else [part[lane] for part in parts] for lane, status in enumerate(run.status)
    ]


def run_singly(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    """One call of `f.single` for each lane."""
    single = pcbatch.autobatch(function).single
    lanes: list[Lane] = []
    for example in examples(arguments):
        try:
            lanes.append(numbers(single(*example)))
        except pcbatch.PcbatchError:
            raise
        except (*FAILURES, tf.errors.InvalidArgumentError):
            lanes.append(None)
    return lanes


def run_bare(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    """Calls of `f.single` on NumPy's own numbers, where it runs so, which must have what it has on proxies."""
    with mock.patch.object(calls, "PATIENCE", math.inf):
        wanted = run_singly(function, arguments)
    with mock.patch.object(calls, "PATIENCE", -1.0):
        found = run_singly(function, arguments)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_equal(one, other)
        assert one is None or other is None or [each.dtype for each in one] == [each.dtype for each in other]
    return found


def reading(name: str) -> Run:
    """A way to run by its name: `single`, one of `OPTIONS`, or `package.module:function`."""
    if name in ("single", "bare"):
        return run_singly if name == "single" else run_bare
    if name in OPTIONS:
        return partial(run_with, OPTIONS[name])
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)
