"""Saved samples: read as they were written, resumed as if uninterrupted, refused where they do not fit."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts, saving
from pcbatch.nuts.results.draws import GROUPS
from pcbatch.nuts.running import sampling_run
from tests import forging
from tests.nuts.densities import QUIET

ROOT = Path(__file__).parents[2]


class Data(NamedTuple):
    mean: object
    inner: object


@dataclass(frozen=True)
class Scales:
    values: object


def log_density(p, data):
    centred = (p["x"] - data.mean) / data.inner["scales"].values
    shares = tf.reduce_sum(tf.math.log(p["shares"]))
    return -0.5 * tf.reduce_sum(centred**2) - p["rate"] + shares


INITIAL = {"x": np.zeros(2), "rate": 1.0, "shares": np.full(3, 1 / 3)}
DATA = Data(np.array([1.0, -1.0]), {"scales": Scales(np.array([0.5, 2.0]))})
OPTIONS = {
    "chains": 3,
    "chunk": 8,
    "seed": 5,
    "bijectors": {"rate": nuts.positive, "shares": nuts.simplex},
    "data": DATA,
    **QUIET,
}


def sample(**options):
    return nuts.sample(log_density, INITIAL, **{**OPTIONS, **options})


def resume(path, **options):
    return nuts.resume(path, progress=False, **options)


def assert_same(one, other):
    for group in GROUPS:
        assert getattr(one, group).keys() == getattr(other, group).keys()
        for name, array in getattr(one, group).items():
            np.testing.assert_array_equal(array, getattr(other, group)[name])
    assert one.cost.gradients == other.cost.gradients


@pytest.fixture(scope="module")
def whole():
    return sample(warmup=60, draws=30, save_warmup=True)


@pytest.fixture
def path(whole, tmp_path):
    whole.save(tmp_path / "samples.npz")
    return tmp_path / "samples.npz"


def test_what_is_read_is_what_was_written(whole, path):
    again = resume(path)
    assert_same(again, whole)
    assert again.settings == whole.settings
    assert again.origin.density is log_density
    assert isinstance(again.origin.data, Data)
    assert isinstance(again.origin.data.inner["scales"], Scales)
    np.testing.assert_array_equal(again.origin.data.mean, DATA.mean)


@pytest.mark.parametrize("cut", [1, 8, 13])
def test_more_draws_are_those_of_a_longer_run(cut, whole, tmp_path):
    sample(warmup=60, draws=cut, save_warmup=True).save(tmp_path / "part.npz")
    longer = resume(tmp_path / "part.npz", draws=30 - cut)
    assert_same(longer, whole)
    assert longer.settings == whole.settings
    assert longer.stats.compilations == whole.stats.compilations


@pytest.mark.parametrize(
    ("adapt", "metric"),
    [("per_chain", "diag"), ("per_chain", "dense"), pytest.param("pooled", "auto", marks=pytest.mark.slow)],
)
def test_an_interrupted_warm_up_goes_on(adapt, metric, tmp_path, monkeypatch):
    options = {"warmup": 60, "draws": 5, "adapt": adapt, "metric": metric, "save_warmup": True}
    expected = sample(**options)
    advance = sampling_run.SamplingRun.advance

    def stopping(course, *args, **kwargs):
        if course.done >= 30:
            raise KeyboardInterrupt
        return advance(course, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(sampling_run.SamplingRun, "advance", stopping)
        with pytest.warns(nuts.SamplerWarning, match="interrupted: 0 of 5 draws"):
            part = sample(**options)
    assert 30 <= part.warmup_posterior["x"].shape[1] < 60
    part.save(tmp_path / "part.npz")
    assert_same(resume(tmp_path / "part.npz"), expected)


def test_nothing_is_compiled_after_ctrl_c(monkeypatch):
    """Not even to report on: it came while the program was made."""
    asked = []

    def stopping(*given):
        asked.append(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling_run.density_programs, "chain_of", stopping)
    with pytest.warns(nuts.SamplerWarning, match="interrupted: 0 of 5 draws"):
        part = sample(draws=5)
    assert (len(asked), part.stats.compilations) == (1, 0)


@pytest.mark.slow
def test_a_stretch_is_learnt_from_as_a_whole_or_was_never_made(tmp_path, monkeypatch):
    options = {"warmup": 60, "draws": 5, "adapt": "pooled", "save_warmup": True}
    expected = sample(**options)
    advance = sampling_run.SamplingRun.advance

    def stopping(course, count, **kwargs):
        if count == 0 and course.done:  # the search of a step that ends a window, after the stretch's trajectories
            raise KeyboardInterrupt
        return advance(course, count, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(sampling_run.SamplingRun, "advance", stopping)
        with pytest.warns(nuts.SamplerWarning, match="interrupted: 0 of 5 draws"):
            part = sample(**options)
    made = part.warmup_posterior["x"].shape[1]
    assert 0 < made == part.origin.done < 60
    part.save(tmp_path / "part.npz")
    assert_same(resume(tmp_path / "part.npz"), expected)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [0, 4])
def test_another_process_goes_on(draws, whole, path):
    """It is handed the density, and its digests are those of this process; for a file alone nothing is imported."""
    code = """
import sys, numpy as np, json
from pcbatch import nuts
try:
    nuts.resume(sys.argv[1], progress=False)
except nuts.api.UsageError as error:
    assert "this process has not sampled their density, 'tests.nuts.test_resuming:log_density'" in str(error)
    assert "write nuts.resume(path, log_density=..) with it" in str(error)
assert not any(name.startswith("tests") for name in sys.modules)
from tests.nuts.test_resuming import log_density
samples = nuts.resume(sys.argv[1], draws=int(sys.argv[2]), log_density=log_density, progress=False)
print(json.dumps(samples["x"].tolist()))
"""
    (path.parent / "again.py").write_text(code)
    done = subprocess.run(
        [sys.executable, str(path.parent / "again.py"), str(path), str(draws)],
        cwd=ROOT,
        env={**__import__("os").environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    np.testing.assert_array_equal(json.loads(done.stdout.splitlines()[-1]), resume(path, draws=draws)["x"])


@pytest.mark.slow
def test_a_local_density_is_given_again(tmp_path):
    def local(q):
        return -0.5 * tf.reduce_sum(q**2)

    def other(q):
        return -0.25 * tf.reduce_sum(q**2)

    options = {"warmup": 0, "step_size": 0.5, "chains": 2, "chunk": 4, **QUIET}
    nuts.sample(local, np.zeros(2), draws=4, **options).save(tmp_path / "local.npz")
    assert resume(tmp_path / "local.npz")["x"].shape == (2, 4, 2)
    with pytest.raises(UsageError, match=r"PCB592: .*is another density now"):
        resume(tmp_path / "local.npz", log_density=other)
    longer = resume(tmp_path / "local.npz", log_density=local, draws=4)
    assert longer["x"].shape == (2, 8, 2)


def changed(path, **changes):
    header, arrays = saving.read(path)
    saving.write(path, {**header, **changes}, arrays)


def test_files_that_do_not_fit(path):
    changed(path, version=0)
    with pytest.raises(UsageError, match=r"PCB591: .*file format 0, this is 3"):
        resume(path)
    changed(path, version=3, python="3.9")
    with pytest.raises(UsageError, match=r"PCB591: .*saved by Python 3.9"):
        resume(path)
    changed(path, format=1)
    with pytest.raises(UsageError, match=r"PCB590: .*holds a run of a batched function, and no samples"):
        resume(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"PCB590: .*is damaged"):
        resume(path)
    with pytest.raises(OSError, match=r"missing\.npz"):
        resume(path.parent / "missing.npz")


def test_a_code_change_is_noticed(path):
    header, _ = saving.read(path)
    changed(path, density={**header["density"], "digest": "0" * 64})
    with pytest.raises(UsageError, match=r"PCB592: .*log_density is another density now"):
        resume(path)


@pytest.mark.parametrize("draws", [-1, 2.5, True])
def test_draws_that_make_no_sense(path, draws):
    with pytest.raises(UsageError, match="PCB551: draws must be None or an int of at least 0"):
        resume(path, draws=draws)


@pytest.mark.parametrize("count", [250, pytest.param(None, marks=pytest.mark.slow)])
def test_forged_headers_are_refused_or_say_the_same(count, whole, path, monkeypatch):
    """Without what a longer run, which a header may ask for, would draw."""
    monkeypatch.setattr(sampling_run.SamplingRun, "_chunks", lambda course: iter(()))
    header, arrays = saving.read(path)
    codes = []

    def same():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nuts.SamplerWarning)
            found = resume(path)
        for name, draws in whole.items():
            np.testing.assert_array_equal(found[name], draws)

    for forged in forging.some(forging.forged_headers(header), count):
        forging.written(path, forged, arrays)
        codes.append(forging.code_of(same))
        assert codes[-1] in (None, "PCB590", "PCB591", "PCB592"), forged
    assert len(codes) >= (count or 4000)
    assert codes.count(None) < len(codes) / 8


def test_forged_arrays_are_refused(whole, path):
    header, arrays = saving.read(path)
    codes = []
    for name, array in arrays.items():
        others = [np.zeros((2, 3, 4, 5), array.dtype), array[..., None], array[:0] if array.ndim else array[None]]
        if not name.startswith("data/"):  # what dtypes data have is not said elsewhere
            others.append(array.astype(np.complex64))
        for other in [*others, None]:
            changed = {key: each for key, each in {**arrays, name: other}.items() if each is not None}
            saving.write(path, header, changed)
            codes.append((name, forging.code_of(lambda: resume(path))))
    assert {code for _, code in codes} <= {"PCB590", "PCB592"}, codes


def test_no_class_of_a_forged_file_is_called(path, tmp_path):
    """A structure is of a class that is a structure; that of a process would start one."""
    header, arrays = saving.read(path)
    command = {"kind": "subprocess:Popen", "names": ["0"], "parts": [header["data"]["parts"][0]]}
    saving.write(path, {**header, "data": command}, arrays)
    with pytest.raises(UsageError, match=r"PCB590: .*'subprocess:Popen' is no structure"):
        resume(path)


def test_nothing_is_imported_or_asked_for_a_name_in_a_file(path, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    lazy = ModuleType("lazy")
    lazy.__getattr__ = lambda name: pytest.fail("asked")
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    header, arrays = saving.read(path)
    for name in ("evil:Data", "lazy:Data", "no.such:Data", "os:path.join"):
        command = {**header["data"], "kind": name}
        saving.write(path, {**header, "data": command}, arrays)
        with pytest.raises(UsageError, match=r"PCB59[02]"):
            resume(path, log_density=log_density)
        saving.write(path, {**header, "density": {**header["density"], "name": name}}, arrays)
        with pytest.raises(UsageError, match=r"PCB592: .*this process has not sampled their density"):
            resume(path)
    assert "evil" not in sys.modules
