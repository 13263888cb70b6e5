"""Saved runs as files: every bit of them is covered, and only what is whole is read."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError
from pcbatch.runtime import checkpoint, savefile
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.checkpoint import Checkpoint
from pcbatch.runtime.machine import Machine
from tests.runtime import tables

BACKEND = TensorFlowBackend()
ARRAYS = {
    "state/x": np.arange(6, dtype=np.float32).reshape(2, 3),
    "state/größe 0": np.array([True, False]),
    "counter/trips": np.array(7, np.int64),
    "state/none": np.zeros((0, 4), np.int32),
}
HEADER = {"format": 1, "text": "ä\n", "nested": {"a": [1, None]}}


@pytest.fixture
def path(tmp_path):
    savefile.write(tmp_path / "run.npz", HEADER, ARRAYS)
    return tmp_path / "run.npz"


def test_what_is_written_is_read(path):
    header, arrays = savefile.read(path)
    assert header == HEADER
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()


def test_a_dtype_of_which_numpy_has_only_the_bytes(tmp_path):
    halves = tf.constant([1.5, -2.0], tf.bfloat16).numpy()
    savefile.write(tmp_path / "run.npz", {}, {"x": halves})
    assert savefile.read(tmp_path / "run.npz")[1]["x"].tobytes() == halves.tobytes()


def test_every_flipped_bit_is_noticed(path):
    """In arrays, in the archive's own records, in the checksum: one bit of each byte in turn."""
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(UsageError, match=r"PCB590: .*run.npz is (damaged|no saved run)"):
            savefile.read(path)


def test_every_truncation_is_noticed(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 5):
        path.write_bytes(whole[:length])
        with pytest.raises(UsageError, match=r"PCB590: .*run.npz is (damaged|no saved run)"):
            savefile.read(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(UsageError, match="PCB590"):
        savefile.read(path)


def test_other_files_are_no_saved_runs(tmp_path):
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(UsageError, match=r"PCB590: .*other.npz is no saved run of pcbatch, or its end is missing"):
        savefile.read(tmp_path / "other.npz")


# -- arrays that do not fit the program --------------------------------------------------------------------------------


def saved_gcd(path):
    machine = Machine(tables.gcd(), BACKEND, jit=False)
    snapshot = machine.begin([tf.constant([21, 8, 9]), tf.constant([34, 2, 6])], 3)
    arrived, _ = machine.leg(snapshot, [], trips=2)
    origin = {"program": "", "options": {}, "types": {}, "shared": [], "records": []}
    Checkpoint(arrived.snapshot, {}, {}, origin, "1", True).save(path)
    return machine


def altered(path, change):
    """The file with its arrays as `change` leaves them, and a checksum that fits."""
    header, arrays = savefile.read(path)
    change(arrays)
    savefile.write(path, header, arrays)
    return checkpoint.read(str(path), "1")


def test_a_run_that_fits_goes_on(tmp_path):
    machine = saved_gcd(tmp_path / "run.npz")
    snapshot = checkpoint.read(str(tmp_path / "run.npz"), "1").snapshot(machine.legs)
    np.testing.assert_array_equal(machine.leg(snapshot, [])[1].values[0], [1, 2, 3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("state/top a 0"), "it does not hold the variables of this program"),
        (lambda arrays: arrays.update({"state/more": np.ones(3)}), "it does not hold the variables of this program"),
        (lambda arrays: arrays.pop("counter/trips"), "it does not hold the variables of this program"),
        (
            lambda arrays: arrays.update({"state/top a 0": np.ones(3, np.float32)}),
            r"its array 'state/top a 0' is float32\[3\], not int32\[3\]",
        ),
        (
            lambda arrays: arrays.update({"state/top a 0": np.ones(4, np.int32)}),
            r"its array 'state/top a 0' is int32\[4\], not int32\[3\]",
        ),
        (
            lambda arrays: arrays.update({"counter/active": np.ones(1, np.int64)}),
            r"its array 'counter/active' is int64\[1\], not int64\[\d\]",
        ),
        (lambda arrays: arrays.update({"state/pc": np.array(0, np.int32)}), r"its array 'state/pc' is int32\[\], not"),
    ],
    ids=["less", "more", "counters", "dtype", "lanes", "blocks", "scalar"],
)
def test_arrays_that_do_not_fit_the_program_are_refused(change, message, tmp_path):
    machine = saved_gcd(tmp_path / "run.npz")
    saved = altered(tmp_path / "run.npz", change)
    with pytest.raises(UsageError, match=f"PCB592: the run in .*run.npz cannot go on here: {message}"):
        saved.snapshot(machine.legs)
