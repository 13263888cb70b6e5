"""Displays of prompts and notebooks: of texts, statuses, faults, runs, samples and explanations; refusals' places."""

from __future__ import annotations

import copy
import html
import json
import linecache
import pickle
import re
import sys
import traceback
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.nuts.results.samples import Samples
from pcbatch.runtime.report.formatting import Text


@pcbatch.autobatch(backend="reference")
def ratio(a, b):
    assert a > 0, f"{a} <= 0"
    return a // b, {"x": a}


@pytest.fixture
def run():
    return ratio.run(np.arange(30), np.arange(30) % 4)


def cells(table):
    """The rows of a table, by cell."""
    rows = re.findall("<tr>(.*?)</tr>", table, re.DOTALL)
    return [[html.unescape(cell) for cell in re.findall("<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)] for row in rows]


def test_a_text_displays_as_text():
    text = ratio.ir()
    assert repr(text) == str(text).rstrip("\n")
    assert repr(text).startswith("program cfg\n\nfunction ratio(a, b)")
    assert repr(ratio.ir("machine", [1], [2])).startswith("program machine ratio(a, b)")
    assert repr(ratio.ir("stack")).startswith("program stack")
    source = ratio.source([1], [2])
    assert repr(source) == str(source).rstrip("\n")
    assert repr(ratio.source()) == repr(source), "of the signature that was compiled last"


def test_a_text_is_a_string():
    text = ratio.ir()
    assert isinstance(text, str)
    assert text == str(text)
    assert {str(text): 1}[text] == 1
    assert type(str(text)) is str
    assert type(text.upper()) is type(text + "") is type(f"{text}") is str
    assert json.loads(json.dumps(text)) == text
    assert type(pickle.loads(pickle.dumps(text))) is str, "a process without pcbatch can read it"
    assert copy.copy(text) is copy.deepcopy(text) is text
    compile(ratio.source([1], [2]), "generated", "exec")
    assert repr(Text("")) == ""


def test_a_lane_s_status_has_a_name(run):
    status = run.status[0]
    assert status is pcbatch.LaneStatus.ASSERTION
    assert (str(status), f"{status}", f"{status:>10}", f"{status:d}") == ("ASSERTION", "ASSERTION", " ASSERTION", "1")
    assert (int(status), status + 1, status == 1) == (1, 2, True)
    assert json.dumps({"status": status}) == '{"status": 1}'
    assert {each.name for each in run.status} == {"OK", "ASSERTION", "ARITHMETIC"}
    assert str(run.status[:2]) == "[ASSERTION OK]"
    assert run.status[-30] is status
    assert np.asarray(run.status)[0].dtype == np.int32
    assert run.status.tolist()[:2] == [1, 0]
    assert run.status[run.status == 1].shape == (1,)
    assert run.status.reshape(5, 6)[0, 0] is status


def test_faults_display_with_their_lines(run):
    assert isinstance(run.errors, tuple)
    shown = repr(run.errors).split("\n\n")
    assert len(shown) == 2, "lanes that fail alike are shown once"
    assert "AssertionError: 0 <= 0" in shown[0]
    assert shown[1].startswith("lanes 4, 8, 12, 16, 20, .. (ARITHMETIC): ZeroDivisionError")
    assert "return a // b" in shown[1]
    assert str(run.errors) == repr(run.errors)
    table = cells(run.errors._repr_html_())
    assert table[0] == ["lane", "status", ""]
    assert table[1][:2] == ["0", "ASSERTION"]
    assert table[1][2].startswith("AssertionError: 0 <= 0\n")
    assert table[1][2].endswith(': assert a > 0, f"{a} <= 0"')
    assert len(table) == 1 + 8
    assert repr(run.errors[1]).startswith("<pcbatch.LaneFault: lane 4, ARITHMETIC at ")
    fine = ratio.run([1], [1])
    assert (fine.errors, repr(fine.errors)) == ((), "()")
    assert "no lane failed" in fine.errors._repr_html_()
    assert pickle.loads(pickle.dumps(run)).errors == run.errors
    assert repr(pickle.loads(pickle.dumps(run)).errors) == repr(run.errors)


def test_many_faults_are_counted():
    faults = ratio.run(-np.arange(40), np.arange(40)).errors
    assert repr(faults).count("AssertionError") == 5
    assert repr(faults).endswith("and 35 lanes more")
    table = faults._repr_html_()
    assert len(cells(table)) == 1 + 20
    assert "and 20 lanes more" in table


def test_a_run_displays_as_a_table(run):
    assert repr(run).startswith("<pcbatch.Run of ratio: 8 of 30 lanes failed")
    table = cells(run._repr_html_())
    assert len(table) == 1 + 20
    assert table[2] == ["1", "OK", "(1, {'x': 1})"]
    assert table[1][1] == "ASSERTION"
    assert table[1][2].startswith("AssertionError: 0 <= 0  ")
    assert "and 10 lanes more" in run._repr_html_()


def test_a_large_result_is_shortened():
    @pcbatch.autobatch(backend="reference")
    def wide(x):
        return x

    shown = cells(wide.run(np.ones([2, 20, 30]))._repr_html_())[1][2]
    assert shown.count("\n") == 3
    assert shown.endswith("\n..")
    assert len(shown) < 500


def test_values_are_no_html():
    @pcbatch.autobatch(backend="reference")
    def tag(x):
        assert x > 0, "<b>&</b>"
        return x

    assert "<b>" not in tag.run([0, 1])._repr_html_() + tag.run([0, 1]).errors._repr_html_()


def test_inside_of_a_graph_a_run_has_no_table():
    shown = []

    @pcbatch.autobatch
    def halved(n):
        while n > 1:
            n = n // 2
        return n

    @tf.function
    def around(n):
        shown.append(halved.run(n))
        return shown[0].value

    around(tf.constant([3, 4]))
    assert shown[0]._repr_html_() is None
    assert "inside a" in repr(shown[0])


def test_samples_display_as_a_table():
    draws = np.random.default_rng(1).normal(size=[4, 100, 3]).astype(np.float32)
    draws[3] = np.nan
    samples = mock.Mock(
        spec=Samples,
        draws=100,
        chains=4,
        healthy=np.array([True, True, True, False]),
        values=lambda: [draws, draws[..., 0]],
        items=lambda: [("x", draws), ("y", draws[..., 0])],
        warnings=("R-hat is above 1.01",),
    )
    shown = Samples._repr_html_(samples)
    table = cells(shown)
    assert table[0] == ["mean", "sd", "r_hat", ""]
    assert [row[-1] for row in table[1:]] == ["x[0]", "x[1]", "x[2]", "y"]
    assert float(table[1][0]) == pytest.approx(draws[:3, :, 0].mean(), abs=0.01), "of the chains that did not fail"
    assert 0.9 < float(table[1][2]) < 1.1
    assert "<li>R-hat is above 1.01</li>" in shown
    for lacking in ({"draws": 0}, {"healthy": np.zeros(4, bool)}):
        samples.configure_mock(**lacking)
        assert cells(Samples._repr_html_(samples)) == []


def test_a_refusal_names_its_place_as_a_syntax_error_does():
    text = "import pcbatch\n\n@pcbatch.autobatch\ndef f(x):\n    y = x\n    yield y\n"
    linecache.cache["cell.py"] = (len(text), None, text.splitlines(keepends=True), "cell.py")
    with pytest.raises(SyntaxError) as caught:
        exec(compile(text, "cell.py", "exec"), {"__name__": "cell"})
    error = caught.value
    assert (error.filename, error.lineno, error.offset) == ("cell.py", 6, 5)
    assert str(error).startswith("PCB105: ")
    assert str(error).endswith("may `yield`"), "and no place behind it"
    shown = "".join(traceback.format_exception_only(error))
    assert "<string>" not in shown
    assert 'File "cell.py", line 6' in shown
    assert shown.count("yield y") == 1, "drawn once"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.lineno) == (str(error), 6)


@pytest.mark.parametrize(
    ("package", "use"), [("matplotlib.figure", "plot"), ("arviz", "summary"), ("arviz", "to_arviz")]
)
def test_a_package_that_is_missing_is_named_with_its_extra(package, use, tmp_path):
    samples = mock.Mock(spec=Samples, draws=0, chains=1, healthy=np.array([True]))
    samples.items, samples.settings = list, mock.Mock(save_warmup=False)
    samples.extra = {}
    samples.posterior = samples.sample_stats = {"diverging": np.zeros([1, 0], bool)}
    with mock.patch.dict(sys.modules, {package: None}), pytest.raises(pcbatch.UsageError) as caught:
        getattr(Samples, use)(samples, *([tmp_path / "out"] if use == "plot" else []))
    assert caught.value.code == "PCB564"
    assert "pip install 'pcbatch[nuts]'" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_picture_of_a_run_without_matplotlib():
    run = ratio.options(backend="tensorflow", jit=False, trace=5).run([1], [1])
    with mock.patch.dict(sys.modules, {"matplotlib.figure": None}), pytest.raises(pcbatch.UsageError) as caught:
        run.plot()
    assert "pip install 'pcbatch[nuts]'" in str(caught.value)
