"""The papers' figures: commands end and their contestants agree, pages say what was measured, lines are counted."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness
from benchmarks.figures import curves, dynet, fold, pfor, pictures, stacks
from benchmarks.figures.curves import ALONE, OURS, Task
from benchmarks.harness import Timing, measure

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
OPTIONS = argparse.Namespace(repeats=1, limit=1.0, small=True)


def task(**contestants):
    return Task("a task", "What it is.", (1, 4), lambda size: contestants)


def slow(seconds, value=1.0):
    """A contestant that says that it took so long: time is counted, not spent."""

    def call():
        slow.now += seconds
        return value

    return call


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    slow.now = 0.0
    monkeypatch.setattr(harness.time, "perf_counter", lambda: slow.now)


def test_a_contestant_that_takes_too_long_makes_no_larger_one():
    cells = curves.measured(task(**{OURS: slow(0.1), "by hand": slow(0.3)}), OPTIONS)
    assert isinstance(cells[4][OURS], Timing)
    assert cells[4]["by hand"] == "a call takes 0.3 s with 1 examples, so it makes no larger one"
    page = "\n".join(curves.section(task(), cells))
    assert "| pcbatch | 10 | 40 | 0.1 |" in page
    assert "| by hand | 3.3 (3.00) | -- | 0.3 |" in page
    assert "by hand: a call takes 0.3 s" in page


def test_a_contestant_that_fails_has_a_reason_and_one_that_disagrees_is_an_error():
    def fails():
        raise ValueError("no loops {node ..}\nmore")

    cells = curves.measured(task(**{OURS: slow(0.1), "by depth": fails, "by hand": "there is none"}), OPTIONS)
    assert cells[4]["by depth"] == "ValueError: no loops"
    assert cells[4]["by hand"] == "there is none"
    assert curves.reasons(cells) == ["- by depth: ValueError: no loops.\n- by hand: there is none."]
    with pytest.raises(AssertionError, match="pcbatch and by hand disagree"):
        curves.measured(task(**{OURS: slow(0.1), "by hand": slow(0.1, 1.1)}), OPTIONS)


def test_a_sequential_loop_runs_once():
    count = []
    found = measure({OURS: slow(0.1), ALONE: lambda: count.append(1) or slow(9.0)()}, repeats=3, once=(ALONE,))
    assert len(count) == 1
    assert found[ALONE].seconds == (9.0,)
    assert len(found[OURS].seconds) == 3


def test_a_budget_ends_timed_calls():
    found = measure({OURS: slow(0.1), "by hand": slow(5.0)}, repeats=6, budget=9.0)
    assert len(found["by hand"].seconds) == 2
    assert len(found[OURS].seconds) == 6


def test_pictures_are_drawn(tmp_path):
    cells = curves.measured(task(**{OURS: slow(0.1), "by hand": slow(0.01)}), OPTIONS)
    pictures.save_panels(tmp_path / "panels.png", [curves.panel(task(), cells)] * 3)
    pictures.save_bars(
        tmp_path / "bars.png",
        {"one": {"forward": 1.0, "update": 2.0}, "two": {}},
        ["forward", "update"],
        title="",
        xlabel="",
    )
    assert all(path.stat().st_size > 1000 for path in tmp_path.iterdir())


def test_a_small_run_is_said_to_be_one(tmp_path):
    said = " ".join(curves.standing(OPTIONS, 1.0).split())
    assert "small run" in said
    assert "load average of the machine was 1.0 before" in said
    assert harness.device() in said
    full = curves.standing(argparse.Namespace(small=False), 1.0)
    assert "small run" not in full


@pytest.mark.parametrize(("kind", "different"), [(fold.SAME, False), (fold.DIFFERENT, True)])
def test_trees_have_their_leaves(kind, different):
    batch = fold.batch(kind, 9, 6)
    for left, right in zip(batch["left"], batch["right"], strict=True):
        children = [*left[left >= 0], *right[right >= 0]]
        assert sorted(children) == list(range(1, 17)), "all nodes but the root, once"
        assert np.sum(left < 0) == 9
    assert (len({each.tobytes() for each in batch["left"]}) > 1) is different


CODE = '''"""A docstring,
of two lines."""

import os  # code

# a comment


def model(width):
    """More."""
    # a comment
    text = """a value
    of two lines"""

    return (
        text
    )
'''


def test_lines_of_code_are_counted(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(CODE)
    assert fold.lines(path, "model") == 6
    assert fold.lines(path) == 7
    assert all(int(row[0]) < int(row[1]) for row in fold.counted().values())


def test_pages_in_the_documentation_have_the_text_of_their_commands():
    shown = {name: (FIGURES / f"{name}.md").read_text(encoding="utf-8") for name in ("dynet", "pfor", "fold", "stacks")}
    for name, parts in (
        ("dynet", dynet.page({}, {"inference": {}, "training": {}}, {}, [], 64, "")),
        ("pfor", pfor.page({}, [], "")),
        ("fold", fold.page({}, [], fold.counted(), "")),
        ("stacks", stacks.page("[3, 7, 4, 5]", 14)),
    ):
        for part in parts:
            assert part in shown[name], f"python -m benchmarks.figures.{name} writes it anew"
        assert f"]({name}.md)" in (FIGURES / "papers.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_model_of_a_peer_is_that_of_the_example():
    """A tree, a sequence and a graph, by `tf.while_loop`: small ones of the tasks that the command times."""
    import tensorflow as tf

    module = curves.example("training/tree_sentiment")
    model, (some, _) = module.TreeLSTM(3), module.make_trees(2, seed=3)
    found = [pfor.peers.tree(model)(*(each[tree] for each in pfor.nodes_of(some))) for tree in range(2)]
    np.testing.assert_allclose(found, model.batched(some), rtol=1e-4, atol=1e-6)
    graphs = curves.example("training/graph_network")
    loss, variables = graphs.model(3)
    edges, nodes, labels = given = graphs.examples(np.random.default_rng(0), 2)
    (single,) = curves.one_by_one(loss, given, 1)
    one = pfor.peers.graph(variables, graphs.NODES)(edges.values[0], edges.length[0], nodes[0], labels[0])
    np.testing.assert_allclose(one, single, rtol=1e-4)
    rnn, row = curves.example("rnn"), tf.random.stateless_normal([20, 3], [1, 2])
    np.testing.assert_allclose(pfor.peers.recurrent(rnn)(row, 4), rnn.last_state.single(row, 4), rtol=1e-4, atol=1e-6)


COMMANDS = {
    "stacks": [],
    "utilization": [],
    "throughput": [],
    "fold": ["--tables", "1", "3"],
    "pfor": ["--tasks", "layer", "LSTM", "TreeLSTM"],
    "dynet": ["--tasks", "phases", "TreeLSTM"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_small_run_ends_and_its_contestants_agree(name, tmp_path):
    repeats = (
        []
        if name in ("stacks", "utilization", "throughput")
        else ["--repeats", "1", "--json", str(tmp_path / "figures.json")]
    )
    command = [sys.executable, "-m", f"benchmarks.figures.{name}", "--small", *repeats, "--folder", str(tmp_path)]
    done = subprocess.run(
        [*command, *COMMANDS[name]], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": "."}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    for picture in re.findall(r"\]\((\w+\.png)\)", page):
        assert (tmp_path / picture).stat().st_size > 1000
    rows = {"fold": "pcbatch", "pfor": "pcbatch", "dynet": "TreeLSTM"}  # of a table, and the first figure is pcbatch's
    assert name not in rows or re.search(rf"^\| {rows[name]} \| \d", page, re.MULTILINE)
