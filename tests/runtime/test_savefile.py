"""Saved runs as files: every bit of them is covered, and only what is whole is read."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend, ops
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.resume import checkpoint, savefile
from pcbatch.runtime.resume.checkpoint import Checkpoint
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
    machine = Machine(tables.gcd(ops), BACKEND, jit=False)
    snapshot = machine.begin([tf.constant([21, 8, 9]), tf.constant([34, 2, 6])], 3)
    arrived, _ = machine.leg(snapshot, [], trips=2)
    origin = {"program": "", "options": {}, "types": {}, "shared": [], "records": [], "defaults": {}}
    Checkpoint(arrived.snapshot, {}, {}, origin, "1", True).save(path)
    return machine


def altered(path, change):
    """The file with its arrays as `change` leaves them, and a checksum that fits."""
    header, arrays = savefile.read(path)
    change(arrays)
    savefile.write(path, header, arrays)
    return checkpoint.read(str(path), "1")


def forged(path, name, head, size):
    """A file with a member that has the `head` of an array, and so many bytes."""
    with savefile.replacing(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for each, content in {"header": np.frombuffer(b"{}", np.uint8), name: np.zeros(0, np.uint8)}.items():
                start = io.BytesIO()
                np.lib.format.write_array(start, content if each != name else np.zeros(head, np.uint8))
                raw = start.getvalue()
                with archive.open(f"{each}.npy", "w") as member:
                    member.write(raw)
                    for _ in range(0 if each != name else size // 2**20):
                        member.write(bytes(2**20))
            archive.comment = savefile.MAGIC + b"0" * savefile.DIGEST
        digest = savefile._digest(file, file.seek(0, os.SEEK_END) - savefile.DIGEST)
        file.seek(-savefile.DIGEST, os.SEEK_END)
        file.write(digest)


def test_what_unpacks_to_more_than_its_array_needs_is_not_unpacked(tmp_path):
    path = tmp_path / "run.npz"
    forged(path, "x", 10, 2**28)
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"PCB590: .*'x' has not the bytes of uint8\[10\]"):
            savefile.read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


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


# -- a file in the place of another ------------------------------------------------------------------------------------


def parts(folder):
    return sorted(found.name for found in folder.iterdir() if found.name.endswith(".part"))


def saved(path, value=1):
    savefile.write(path, {"value": value}, ARRAYS)


def value_of(path):
    return savefile.read(path)[0]["value"]


@pytest.mark.parametrize("path", ["", "a\0b", None, 3, b"run.npz"], ids=repr)
def test_what_no_file_can_be_called(path):
    for attempt in (lambda: saved(path), lambda: savefile.read(path)):
        with pytest.raises(UsageError, match="PCB595: a file cannot be called"):
            attempt()


WRITER = """
import os, signal, sys
from pcbatch.runtime.resume import atomic_write
with atomic_write.replacing(sys.argv[1]) as file:
    file.write(b"half of it")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
"""


def writer(path):
    """Another process in the middle of writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    return process


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path):
    path = tmp_path / "run.npz"
    (tmp_path / ".run.npz.mine.part").touch()  # none of ours
    with writer(path) as killed, writer(path) as living:
        left = set(parts(tmp_path))
        assert len(left) == 3
        killed.kill()
        killed.wait()
        saved(path)
        assert len(parts(tmp_path)) == 2
        assert value_of(path) == 1
        living.communicate("\n")
    assert living.returncode == 0
    assert path.read_bytes() == b"half of it", "the last one to end has written it"
    assert parts(tmp_path) == [".run.npz.mine.part"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "run.npz"
    saved(path)
    with pytest.raises(ValueError, match="Object arrays"):
        savefile.write(path, {"value": 2}, {"x": np.array([object()])})
    assert value_of(path) == 1
    assert parts(tmp_path) == []


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o2664, 0o755])
def test_the_mode_of_the_old_file_is_kept(tmp_path, mode):
    path = tmp_path / "run.npz"
    saved(path)
    path.chmod(mode)
    saved(path, 2)
    assert (stat.S_IMODE(path.stat().st_mode), value_of(path)) == (mode, 2)


def test_a_new_file_has_the_mode_of_new_files(tmp_path):
    before = os.umask(0o027)
    try:
        saved(tmp_path / "run.npz")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == 0o640


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "run.npz"
    saved(path)
    path.chmod(0o600)
    with savefile.replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(b"secret")


@pytest.mark.parametrize("exists", [True, False])
def test_links_stay_links(tmp_path, exists):
    (tmp_path / "there").mkdir()
    target, link, again = tmp_path / "there" / "run.npz", tmp_path / "link.npz", tmp_path / "again.npz"
    link.symlink_to(Path("there") / "run.npz")
    again.symlink_to(link)
    if exists:
        saved(target, 1)
        target.chmod(0o640)
    saved(again, 2)
    assert again.is_symlink()
    assert link.is_symlink()
    assert not target.is_symlink()
    assert value_of(target) == 2
    assert not exists or stat.S_IMODE(target.stat().st_mode) == 0o640
    assert parts(tmp_path) == parts(tmp_path / "there") == []


def test_another_hard_link_keeps_the_old_content(tmp_path):
    saved(tmp_path / "run.npz", 1)
    (tmp_path / "other.npz").hardlink_to(tmp_path / "run.npz")
    saved(tmp_path / "run.npz", 2)
    assert (value_of(tmp_path / "run.npz"), value_of(tmp_path / "other.npz")) == (2, 1)


def test_names_as_long_as_they_can_be(tmp_path):
    saved(tmp_path / ("ö" * 125 + ".npz"), 3)
    assert value_of(tmp_path / ("ö" * 125 + ".npz")) == 3
    assert parts(tmp_path) == []


def test_what_cannot_be_replaced(tmp_path):
    """Said with the name that was asked for, before anything is written."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("missing/run.npz")
    os.mkfifo(tmp_path / "pipe")
    for name, error in {
        "": IsADirectoryError,
        "missing/run.npz": FileNotFoundError,
        "nowhere": FileNotFoundError,
        "loop": OSError,
        "pipe": OSError,
        "new/": IsADirectoryError,
        "n" * 300: OSError,
    }.items():
        path = f"{tmp_path}/{name}"
        with pytest.raises(error) as caught:
            saved(path)
        assert caught.value.filename == path
    with pytest.raises(OSError, match="not a regular file") as caught:
        saved("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert parts(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_must_not_be_written(tmp_path):
    path = tmp_path / "run.npz"
    saved(path)
    path.chmod(0o440)
    with pytest.raises(PermissionError) as caught:
        saved(path, 2)
    assert caught.value.filename == str(path)
    tmp_path.chmod(0o550)
    with pytest.raises(PermissionError) as caught:
        saved(tmp_path / "new.npz")
    assert caught.value.filename == str(tmp_path / "new.npz")
    tmp_path.chmod(0o750)
    assert value_of(path) == 1
