"""Saved runs with a right checksum that say what no run says: refused by a code, or the run that they were."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

import pcbatch
from pcbatch import UsageError
from pcbatch.runtime.resume import savefile
from tests import forging


@pcbatch.autobatch(jit=False, progress=True)
def power(x, n):
    found = 1.0
    while n > 0:
        found = found * x
        n = n - 1
    return found


X, N = np.float32([1.0, 2.0, 3.0]), [3, 1, 2]
DOCUMENTED = {"PCB567", "PCB590", "PCB591", "PCB592", "PCB593", "PCB594"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("forged") / "run.npz"
    power.run(X, N).save(path)
    return path


SOME = pytest.mark.parametrize("count", [250, pytest.param(None, marks=pytest.mark.slow)])


@SOME
def test_every_header_is_refused_or_goes_on(count, path, tmp_path):
    header, arrays = savefile.read(path)
    resumed, codes = power.options(resume=tmp_path / "forged.npz", progress=False), []

    def goes_on():
        np.testing.assert_array_equal(resumed(), [1.0, 2.0, 9.0])

    for forged in forging.some(forging.forged_headers(header), count):
        forging.written(tmp_path / "forged.npz", forged, arrays)
        codes.append(forging.code_of(goes_on))
        assert codes[-1] is None or codes[-1] in DOCUMENTED or codes[-1][3] in "34", forged
    assert len(codes) >= (count or 1000)
    assert codes.count(None) < len(codes) / 10
    assert {"PCB590", "PCB591", "PCB592", "PCB593"} <= set(codes)


@SOME
def test_every_archive_is_refused_or_read(count, path, tmp_path):
    forged = tmp_path / "forged.npz"
    codes = []
    for content in forging.forged_bytes(path.read_bytes(), count or 5000, seed=2):
        forged.write_bytes(content)
        codes.append(forging.code_of(lambda: savefile.read(forged)))
    assert set(codes) <= {None, "PCB590"}
    assert codes.count("PCB590") > 0.7 * len(codes)


def archive(path, members, header=b"{}"):
    """A file of these members, bytes by name, with a right checksum."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {"header.npy": npy("|u1", (len(header),), header), **members}.items():
            file.writestr(name, content)
        file.comment = savefile.MAGIC + b"0" * savefile.DIGEST
    path.write_bytes(forging.sealed(made.getvalue()[: -savefile.DIGEST]))


def npy(descr, shape, content=b""):
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


ARRAYS = {
    "huge": npy("<f8", (2**60,)),
    "huge in all": npy("<f8", (2**31, 2**31, 2**31), b"x"),
    "negative": npy("<f8", (-1, -1), bytes(8)),
    "empty and huge": npy("<f8", (0, 2**62)),
    "many axes": npy("<f8", (1,) * 70, bytes(8)),
    "short": npy("<f8", (2,), bytes(8)),
    "long": npy("<f8", (1,), bytes(9)),
    "objects": npy("|O", (1,), bytes(8)),
    "a pickle": npy("|O8", (1,), b"cos\nsystem\n(S'true'\ntR."),
    "no dtype": npy("<q9", (1,), bytes(9)),
    "a long text": npy("<U999999999", (1,)),
    "fields": npy([("a", "<f8")], (1,), bytes(8)),
    "bools": npy("<f8", (True,), bytes(8)),
    "nested": npy("<f8", (1,), bytes(8)).replace(b"(1,)", b"(" * 60000),
    "no header": b"\x93NUMPY\x01\x00",
    "another version": b"\x93NUMPY\x09\x00" + bytes(100),
    "nothing": b"",
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_none(name, tmp_path):
    archive(tmp_path / "forged.npz", {"x.npy": ARRAYS[name]})
    with pytest.raises(
        UsageError, match=r"PCB590: .*forged.npz has the checksum of a saved run, and what it says makes"
    ):
        savefile.read(tmp_path / "forged.npz")


@pytest.mark.parametrize(
    "header",
    [b"", b"\xff\xfe", b"7", b"[]", b"null", b"{", b"[" * 100_000, b'{"a":' * 100_000, b'{"a": ' + b"9" * 5000 + b"}"],
    ids=range(9),
)
def test_headers_that_are_none(header, tmp_path):
    archive(tmp_path / "forged.npz", {}, header)
    with pytest.raises(UsageError, match="PCB590"):
        savefile.read(tmp_path / "forged.npz")


def test_a_size_that_is_not_there(tmp_path):
    """A member that claims 2^60 bytes."""
    archive(tmp_path / "forged.npz", {"x.npy": npy("<f8", (2**57,))})
    content = (tmp_path / "forged.npz").read_bytes()[: -savefile.DIGEST]
    size = len(npy("<f8", (2**57,))).to_bytes(4, "little")
    assert content.count(size) >= 2
    (tmp_path / "forged.npz").write_bytes(forging.sealed(content.replace(size, (2**31).to_bytes(4, "little"))))
    with pytest.raises(UsageError, match="PCB590"):
        savefile.read(tmp_path / "forged.npz")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("state/pc", 77), ("state/pc", -1), ("state/fault", 99), ("state/fault", 1), ("state/steps", -5),
        ("counter/trips", -1), ("counter/trips", 2**63 - 1), ("counter/executions", -1),
        ("state/example", -1), ("state/example", 3), ("state/example", 1), ("state/example", 2**31 - 1),
        ("example/status", 8), ("example/status", -1), ("example/status", 1), ("example/site", -2),
        ("example/site", 1), ("example/place", 0), ("example/place", 99), ("example/steps", -1),
    ],
)  # fmt: skip
def test_numbers_that_lead_nowhere(path, tmp_path, name, change):
    header, arrays = savefile.read(path)
    savefile.write(tmp_path / "forged.npz", header, {**arrays, name: np.full_like(arrays[name], change)})
    with pytest.raises(UsageError, match="PCB592"):
        power.options(resume=tmp_path / "forged.npz")()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("state/example", lambda array: array[:2]),
        ("state/example", lambda array: array[None]),
        ("state/example", lambda array: array.astype(np.int64)),
        ("example/status", lambda array: array[:2]),
        ("example/status", lambda array: array[:0]),
        ("example/status", lambda array: array[0]),
        ("example/input x 0", lambda array: array[:2]),
        ("example/result found 0", lambda array: array[:, None]),
        ("example/result found 0", lambda array: array.astype(np.int32)),
        ("example/steps", None),
        ("state/example", None),
        ("state/pc", None),
    ],
)
def test_pools_that_do_not_fit(path, tmp_path, name, change):
    header, arrays = savefile.read(path)
    array = arrays.pop(name)
    if change is not None:
        arrays[name] = change(array)
    savefile.write(tmp_path / "forged.npz", header, arrays)
    with pytest.raises(UsageError, match="PCB592"):
        power.options(resume=tmp_path / "forged.npz")()


def test_lanes_may_hold_the_examples_in_any_order(path, tmp_path):
    """No run of today does that, but a state that says so is a state."""
    header, arrays = savefile.read(path)
    order = np.array([2, 0, 1], np.int32)
    lanes = {name: array[order] for name, array in arrays.items() if name.startswith("state/")}
    savefile.write(tmp_path / "forged.npz", header, {**arrays, **lanes})
    resumed = power.options(resume=tmp_path / "forged.npz")
    np.testing.assert_array_equal(resumed(), [1.0, 2.0, 9.0])
    resumed.run().save(tmp_path / "again.npz")
    np.testing.assert_array_equal(power.options(resume=tmp_path / "again.npz")(), [1.0, 2.0, 9.0])


def test_files_of_before_the_pool_are_refused_by_their_format(path, tmp_path):
    header, arrays = savefile.read(path)
    old = {name: array for name, array in arrays.items() if not name.startswith("example/") and name != "state/example"}
    savefile.write(tmp_path / "old.npz", {**header, "format": 1}, old)
    with pytest.raises(UsageError, match=r"PCB591: .*it was saved by file format 1, this is 3"):
        power.options(resume=tmp_path / "old.npz")()


def test_files_of_before_there_were_strategies_go_on(path, tmp_path):
    header, arrays = savefile.read(path)
    without = {name: value for name, value in header["options"].items() if name != "strategy"}
    savefile.write(tmp_path / "old.npz", {**header, "options": without}, arrays)
    resumed = power.options(resume=tmp_path / "old.npz")
    np.testing.assert_array_equal(resumed(), power(X, N))
    for strategy in ("local", "hybrid", 3):
        forged = {**header, "options": {**without, "strategy": strategy}}
        savefile.write(tmp_path / "forged.npz", forged, arrays)
        with pytest.raises(UsageError, match=f"PCB593: .*strategy={strategy!r}, not 'pc'"):
            power.options(resume=tmp_path / "forged.npz")()


def test_a_file_that_numpy_reads_as_well(path):
    with np.load(path) as found:
        assert json.loads(found["header"].tobytes())["pcbatch"] == pcbatch.__version__
        np.testing.assert_array_equal(found["example/input x 0"], X)
        np.testing.assert_array_equal(found["example/status"], [0, 0, 0])
