"""Arrays of JAX and PyTorch go in, and where all arguments are such, out; a tracer of JAX is refused.

Stand-ins for both libraries serve where these are not installed; the rest says so and is skipped.
"""

from __future__ import annotations

import sys
from types import ModuleType
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneError, UsageError
from pcbatch.runtime.backends.interop import NO_ARRAY, home_of


@pcbatch.autobatch
def doubled(x, n):
    assert n >= 0
    while n > 0:
        x = x * 2
        n -= 1
    return {"x": x, "large": x > 3}


@pcbatch.autobatch
def as_it_is(x):
    return x


def library(name):
    """A module with arrays of its own, which lie in memory of NumPy's."""
    module = ModuleType(name)

    class Array:
        def __init__(self, array):
            self.array = np.asarray(array)
            self.shape, self.dtype = self.array.shape, self.array.dtype

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.array, dtype)

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def clone(self):
            return Array(self.array.copy())

    Array.__module__ = f"{name}.arrays"
    module.Array = module.from_numpy = Array
    module.from_dlpack = lambda array: Array(np.from_dlpack(array))
    module.numpy = mock.Mock(from_dlpack=module.from_dlpack, asarray=Array)
    return module


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_results_are_of_the_library_that_all_arguments_are_of(name, monkeypatch):
    module, other = library(name), library({"jax": "torch", "torch": "jax"}[name])
    monkeypatch.setitem(sys.modules, name, module)
    x, n = np.ones(3, np.float32), np.array([1, 2, 0], np.int32)
    for _ in range(3):  # cold and warm
        found = doubled(module.Array(x), module.Array(n))
        assert {type(each) for each in found.values()} == {module.Array}
        np.testing.assert_array_equal(found["x"], [2, 4, 1])
        np.testing.assert_array_equal(found["large"], [False, True, False])
    assert type(doubled(module.Array(x), n=2)["x"]) is module.Array
    assert type(doubled.run(module.Array(x), [1, 2, 0]).value["x"]) is module.Array
    with pytest.raises(LaneError) as failed:
        doubled(module.Array(x), [1, -1, 0])
    assert type(failed.value.run.value["x"]) is module.Array
    for others in (n, tf.constant(n), other.Array(n)):
        assert isinstance(doubled(module.Array(x), others)["x"], tf.Tensor)
    assert isinstance(doubled.options(output="numpy")(module.Array(x), 1)["x"], np.ndarray)
    assert isinstance(tf.function(lambda: doubled(module.Array(x), 1))()["x"], tf.Tensor)


def test_what_a_tape_watches_stays_what_it_watches(monkeypatch):
    module, factor = library("torch"), tf.Variable(3.0)
    monkeypatch.setitem(sys.modules, "torch", module)

    @pcbatch.autobatch
    def scaled(x):
        return x * factor

    with tf.GradientTape() as tape:
        found = scaled(module.Array(np.ones(2, np.float32)))
    assert float(tape.gradient(found, factor)) == 2


def test_results_that_may_be_written_to_are_memory_of_their_own(monkeypatch):
    module = library("torch")
    monkeypatch.setitem(sys.modules, "torch", module)
    given = module.Array(np.ones(3, np.float32))
    as_it_is(given).array[0] = 7
    np.testing.assert_array_equal(given, [1, 1, 1])


def test_the_home_of_arguments():
    jax, torch = library("jax"), library("torch")
    one, other = jax.Array([1]), torch.Array([1])
    for args, home in (
        ([], NO_ARRAY),
        ([1, 2.0, [3], None, "text"], NO_ARRAY),
        ([one, 1], "jax"),
        ([1, {"a": (one, [one])}, [1, 2]], "jax"),
        ([other, other], "torch"),
        ([one, other], None),
        ([one, np.ones(1)], None),
        ([[one, np.ones(1)]], None),
        ([np.ones(1), one], None),
        ([one, object()], None),
    ):
        assert home_of(args) == home


def test_a_tracer_of_jax_is_refused_with_the_ways():
    tracer = type("JitTracer", (type("Tracer", (), {"__module__": "jax._src.core"}),), {"shape": (3,)})
    with pytest.raises(UsageError, match=r"PCB511: argument 'x': a tracer of JAX, .* jax.pure_callback; or export it"):
        as_it_is(tracer())


# -- the libraries themselves ------------------------------------------------------------------------------------------


def test_arrays_of_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed: the extra `jax`")
    found = doubled(jax.numpy.ones(3), jax.numpy.array([1, 2, 0]))
    assert all(isinstance(each, jax.Array) for each in found.values())
    assert (found["x"].tolist(), found["large"].dtype) == ([2, 4, 1], bool)
    with pytest.raises(UsageError, match=r"PCB511: .* a tracer of JAX"):
        jax.jit(doubled)(jax.numpy.ones(3), jax.numpy.array([1, 2, 0]))


def test_arrays_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        found = doubled(torch.ones(3, dtype=dtype), torch.tensor([1, 2, 0]))
        assert (found["x"].dtype, found["x"].tolist(), found["large"].dtype) == (dtype, [2, 4, 1], torch.bool)
