"""What fails in `y = f(x)` is shown at that line, though the program returns `y` on a later one."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import CompileError

XS = np.array([8.0, 2.0], np.float32)
NS = np.array([2, 0], np.int32)


def encoded(x):
    return tf.size(tf.unique(tf.stack([x, x])).y)


@pcbatch.autobatch
def without_rule(x):
    y = encoded(x)
    return y


@pcbatch.autobatch(jit=False)
def divided(a, b):
    y = a // b
    return y


@pcbatch.autobatch(jit=False)
def divided_in_a_loop(a, b):
    while a > 1:
        y = a // b
        a = y
    z = a // b
    return z


def test_an_operation_without_a_rule() -> None:
    with pytest.raises(CompileError) as caught:
        without_rule(XS)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "PCB402"
    assert diagnostic.span.text.strip() == "y = encoded(x)"


@pytest.mark.parametrize("function", [divided, divided_in_a_loop])
def test_a_fault_of_a_lane(function) -> None:
    run = function.run(np.array([8, 3], np.int32), NS)
    assert [fault.lane for fault in run.errors] == [1]
    assert run.errors[0].span.text.strip() == "y = a // b"


def test_a_fault_after_a_loop() -> None:
    run = divided_in_a_loop.run(np.array([8, 1], np.int32), NS)
    assert run.errors[0].span.text.strip() == "z = a // b"
