"""`pcbatch.gpu`: two flags of XLA's, asked for before TensorFlow begins, never set unasked."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError, device_loops
from pcbatch.runtime.backends.tensorflow import private

BOTH = "--xla_gpu_enable_command_buffer=+CONDITIONAL,+WHILE --xla_gpu_graph_min_graph_size=1"


@pytest.fixture
def fresh(monkeypatch):
    """TensorFlow has not begun, as far as it says, and nobody has set flags."""
    monkeypatch.setattr(private, "has_begun", lambda: False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def test_both_flags_are_asked_for_once(fresh, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    pcbatch.gpu(device_loops=True)
    assert os.environ["XLA_FLAGS"] == f"--xla_cpu_enable_fast_math=false {BOTH}"
    pcbatch.gpu(device_loops=True)
    assert os.environ["XLA_FLAGS"].count("command_buffer") == 1


def test_nothing_is_set_unasked(fresh):
    pcbatch.gpu()
    assert "XLA_FLAGS" not in os.environ


def test_it_comes_too_late_once_tensorflow_has_begun(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    tf.constant(1)
    with pytest.raises(UsageError, match=r"TensorFlow has begun; call .* before its first operation") as raised:
        pcbatch.gpu(device_loops=True)
    assert raised.value.code == "PCB585"
    assert "XLA_FLAGS" not in os.environ


def test_flags_that_are_there_are_enough(monkeypatch):
    """The advice of the help text works, also after TensorFlow has begun."""
    monkeypatch.setenv("XLA_FLAGS", BOTH)
    tf.constant(1)
    pcbatch.gpu(device_loops=True)
    assert os.environ["XLA_FLAGS"] == BOTH


def test_other_values_of_the_same_flags_are_refused(fresh, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_graph_min_graph_size=5")
    with pytest.raises(UsageError, match=r"PCB585: XLA_FLAGS says --xla_gpu_graph_min_graph_size=5"):
        pcbatch.gpu(device_loops=True)


@pytest.mark.parametrize(("known", "is_refused"), [("2.20.0", True), ("2.21.0", False), ("2.100.1", False)])
def test_an_older_tensorflow_is_refused(fresh, monkeypatch, known, is_refused):
    monkeypatch.setattr(device_loops, "tensorflow_version", lambda: known)
    if is_refused:
        with pytest.raises(UsageError, match=f"2.21 or newer, this is {known}"):
            pcbatch.gpu(device_loops=True)
    else:
        pcbatch.gpu(device_loops=True)


def test_the_environment_variable_warns_where_it_cannot_be(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("PCBATCH_DEVICE_LOOPS", "1")
    tf.constant(1)
    with pytest.warns(RuntimeWarning, match="PCBATCH_DEVICE_LOOPS is of no use: PCB585"):
        device_loops.use_environment()


@pytest.mark.slow
def test_the_environment_variable_sets_the_flags_which_tensorflow_accepts(tmp_path):
    text = "import os, pcbatch, tensorflow as tf; f = tf.function(lambda x: x + 1, jit_compile=True); "
    text += "print(f(tf.constant(1)).numpy(), os.environ['XLA_FLAGS'])"
    environment = {**os.environ, "PCBATCH_DEVICE_LOOPS": "1"}
    environment.pop("XLA_FLAGS", None)
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"2 {BOTH}"
