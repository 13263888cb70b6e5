"""Native code as a part of a caller's graph: XLA calls a handler, in the process that it was traced in."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus
from pcbatch.runtime.backends.tensorflow import handlers
from pcbatch.runtime.llvm import handler, memory
from pcbatch.runtime.llvm import threads as native_threads
from pcbatch.runtime.machine.machine import Machine
from tests.harness import BATCH, NAMES, NATIVE, assert_same, expected, load
from tests.test_corpus import WITHOUT_NATIVE
from tests.threads import in_threads

SOME = [name for name in NAMES if name not in WITHOUT_NATIVE][2::11]
"""Corpus programs, of which the others are slow."""


@pcbatch.autobatch(form="native")
def fibonacci(n):
    assert n != 13, f"unlucky with {n}"
    return 1 if n <= 1 else fibonacci(n - 2) + fibonacci(n - 1)


def fibonacci_of(n):
    return 1 if n <= 1 else fibonacci_of(n - 2) + fibonacci_of(n - 1)


@pytest.fixture
def no_machine(monkeypatch):
    """The machine may be traced, but does not run."""

    def traced(self, arguments, shared, lanes):
        raise AssertionError("the machine is not asked")

    monkeypatch.setattr(Machine, "run", traced)
    monkeypatch.setattr(handlers, "here", lambda function, otherwise: function())


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize(
    "name", [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in NAMES if name not in WITHOUT_NATIVE]
)
def test_the_corpus(name, jit, no_machine):
    """Programs give in a graph what they give outside: values, statuses."""
    program = load(name)
    function, arguments = program.function.options(**NATIVE.options), program.arguments(BATCH)

    @tf.function(autograph=False, jit_compile=jit)
    def inside():
        run = function.run(*arguments)
        return run.value, run.status
