"""The benchmarks' tool: turns, ratios, comparison of results, the record that is kept."""

import json

import numpy as np
import pytest

from benchmarks.harness import measure, origin, table, write_json, write_page


def test_contestants_take_turns_and_the_first_call_is_apart():
    calls = []
    contestants = {name: lambda name=name: calls.append(name) for name in ("a", "b", "c")}
    timings = measure(contestants, repeats=3, rtol=None)
    assert "".join(calls) == "abc" + "abc" + "bca" + "cab"
    assert timings["a"].ratio == 1.0
    assert all(len(timing.seconds) == 3 for timing in timings.values())
    assert timings["b"].ratio == timings["b"].median / timings["a"].median


def test_contestants_that_disagree_are_refused():
    contestants = {"one": lambda: {"x": (np.ones(2),)}, "other": lambda: {"x": (np.array([1.0, 1.1]),)}}
    with pytest.raises(AssertionError, match="one and other disagree"):
        measure(contestants, repeats=1)
    assert set(measure(contestants, repeats=1, rtol=0.2)) == {"one", "other"}


def test_the_record_says_what_was_run(tmp_path):
    path = tmp_path / "deep" / "figures.json"
    write_json(path, {"timing": measure({"a": lambda: 1}, repeats=2), "count": np.int64(3)})
    record = json.loads(path.read_text())
    assert record["figures"]["count"] == 3
    assert len(record["figures"]["timing"]["a"]["seconds"]) == 2
    assert record["versions"]["tensorflow"]
    assert record["command"]


def test_a_page_says_what_was_run_beside_what(tmp_path):
    path = tmp_path / "deep" / "page.md"
    write_page(path, [origin(1.25), *table(("a", "b"), [("1", "2"), ("3", "4")])])
    said, *rows = path.read_text().splitlines()
    assert said.startswith("Measured by `python ")
    assert "was 1.2 before it began" in said
    assert rows == ["| a | b |", "| --- | --- |", "| 1 | 2 |", "| 3 | 4 |"]
