"""What a run executed: by function, by line and by step, against counts made by hand and golden tables."""

from __future__ import annotations

import importlib
import linecache
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from examples.fibonacci import fibonacci
from pcbatch import UsageError
from pcbatch.commands.cli import main
from pcbatch.function.executing import arrays_of
from pcbatch.function.explaining import REFERENCE
from pcbatch.runtime.report import trace
from tests.goldens import check_golden

ROOT = Path(__file__).parent.parent.parent
GOLDENS = Path(__file__).parent / "profiles"

MODEL = '''"""A dear helper in a file of its own."""

import tensorflow as tf

import pcbatch

WEIGHTS = tf.eye(64)


@pcbatch.autobatch(jit=False)
def turned(x):
\tif tf.reduce_sum(x) > 0.0:  # größer: 大きい
\t\tx = tf.linalg.matvec(WEIGHTS, x)
\treturn x
'''
USER = '''import pcbatch
from profiled_model import turned


@pcbatch.autobatch(jit=False)
def walk(x, turns):
    """Turns."""
    total = 0
    for turn in range(turns):
        x = turned(
            x,
        )
        total += turn
    while False:
        total = 0
    return total, x
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the two modules lie."""
    folder = tmp_path_factory.mktemp("profiled")
    (folder / "profiled_model.py").write_text(MODEL, encoding="utf-8")
    (folder / "profiled_user.py").write_text(USER, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def walked(folder):
    """Three lanes that turn 0, 1 and 4 times; the last one's vector is not positive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        walk = importlib.import_module("profiled_user").walk
        x = tf.constant(np.array([1.0, 1.0, -1.0])[:, None] * np.ones(64), tf.float32)
        yield walk.options(schedule="earliest").run(x, np.array([0, 1, 4], np.int32))
    del sys.modules["profiled_user"], sys.modules["profiled_model"]


def lines(run):
    """The profile's lines by file name and text."""
    return {(Path(line.file).name, line.text.strip()): line.counts for line in run.profile().lines}


def test_lines_of_several_files_against_hand_counts(walked):
    """Every call is of lane 1 and 2 together, or of lane 2 alone."""
    found = lines(walked)
    body = found["profiled_user.py", "total += turn"]
    assert (body.runs, body.active, body.rows, body.lanes) == (4, 1 + 4, 4 * 3, 5 / 4)
    test = found["profiled_model.py", "if tf.reduce_sum(x) > 0.0:  # größer: 大きい"]
    assert (test.runs, test.active, test.rows, test.utilization) == (4, 5, 12, 5 / 12)
    product = found["profiled_model.py", "x = tf.linalg.matvec(WEIGHTS, x)"]
    assert (product.runs, product.active, product.rows) == (1, 1, 3)


def test_the_cost_is_that_of_the_rows_of_each_line(walked):
    """A product of 64 x 64 numbers for each of three rows; all shares are of the whole."""
    profile, found = walked.profile(), lines(walked)
    assert found["profiled_model.py", "x = tf.linalg.matvec(WEIGHTS, x)"].cost == pytest.approx(3 * 64 * 64)
    assert found["profiled_model.py", "if tf.reduce_sum(x) > 0.0:  # größer: 大きい"].cost == pytest.approx(12 * 65)
    assert sum(line.counts.cost for line in profile.lines) == pytest.approx(profile.total.cost)
    assert profile.total.runs == walked.block_runs
    assert profile.total.utilization == walked.utilization.overall
    assert [function.name for function in profile.functions] == ["walk", "turned"]


def test_utilization_by_function_and_by_line_of_the_entry_file(walked):
    used = walked.utilization
    assert used.by_function.keys() == {"walk", "turned"}
    profile = walked.profile()
    assert used.by_function == {f.name: f.counts.utilization for f in profile.functions}
    own = [line for line in profile.lines if Path(line.file).name == "profiled_user.py"]
    assert {line.number: line.counts.utilization for line in own}.items() <= used.by_line.items()
    assert max(used.by_line) <= USER.count("\n")


def test_one_piece_of_two_lines_shares_its_cost_between_them():
    @pcbatch.autobatch(jit=False)
    def two(x):
        y = tf.linalg.matmul(x, x)
        return tf.reduce_sum(y)

    run = two.run(tf.ones([2, 8, 8]))
    assert [line.counts.cost for line in run.profile().lines] == [2 * 8**3, 2 * 64]


def test_stores_are_at_their_line():
    @pcbatch.autobatch(jit=False)
    def stored(xs, i):
        xs[i] = 1.0
        return xs

    counts = {line.text.strip(): line.counts.runs for line in stored.run(tf.zeros([2, 3]), [0, 2]).profile().lines}
    assert counts["xs[i] = 1.0"] == 1


def test_the_reference_backend_computes_no_row_in_vain():
    run = fibonacci.options(backend="reference").run(np.array([3, 7], np.int32))
    assert run.profile().total.utilization == 1.0


def test_lines_without_text_still_have_figures(walked, monkeypatch):
    """The files are gone and forgotten."""
    monkeypatch.setattr(linecache, "getlines", lambda *_: [])
    last = next(line for line in reversed(str(walked.profile()).splitlines()) if line.endswith("  14"))
    assert last.split() == ["4", "1.2", "12", "42%", "0.1%", "14"]


# -- the schedule ------------------------------------------------------------------------------------------------------


def test_the_trace_is_the_schedule():
    """Under "earliest" fibonacci([1, 2]) is: test, return for lane 0, then lane 1 alone, which asks as it calls."""
    run = fibonacci.options(schedule="earliest", jit=False, trace=100).run(np.array([1, 2], np.int32))
    found = [(step.trip, step.block, step.ran, step.waiting) for step in run.trace.block_runs]
    assert found == [
        (1, "b0", 2, 0),
        (2, "b1", 1, 1),
        (3, "b2", 1, 0),
        (4, "b1", 1, 0),
        (5, "b3", 1, 0),
        (6, "b1", 1, 0),
        (7, "b4", 1, 0),
    ]
    assert (run.trace.trips, run.trace.left_out) == (7, 0)


@pytest.mark.parametrize(
    ("schedule", "jit"),
    [
        ("auto", True),
        ("earliest", False),
        pytest.param("busiest", False, marks=pytest.mark.slow),
        ("sweep", False),
    ],
)
def test_a_trace_adds_up_to_the_counters_and_changes_nothing(schedule, jit):
    """Lanes go deeper than the first stacks, so the record goes through several legs."""
    n = np.arange(10, dtype=np.int32) * 4 % 50
    plain = depth.options(schedule=schedule, jit=jit).run(n)
    run = depth.options(schedule=schedule, jit=jit, trace=5000).run(n)
    assert run.executions == plain.executions
    np.testing.assert_array_equal(run.value, plain.value)
    for label, active in run.utilization.active.items():
        steps = [step for step in run.trace.block_runs if step.block == label]
        assert sum(step.times for step in steps) == run.executions[label]
        assert sum(step.lanes for step in steps) == active
    assert all(step.ran + step.waiting <= len(n) for step in run.trace.block_runs)


@pcbatch.autobatch(form="lockstep")
def depth(n):
    """Deeper than stacks are at first."""
    if n <= 0:
        return 0
    return depth(n - 1) + 1


def test_what_does_not_fit_is_counted_and_said():
    n = np.array([3, 7, 4, 5], np.int32)
    whole = fibonacci.options(trace=1000).run(n).trace
    run = fibonacci.options(trace=3).run(n)
    assert run.trace.block_runs == tuple(step for step in whole.block_runs if step.trip <= 3)
    assert run.trace.left_out == run.trips - 3
    assert f"\nand {run.trips - 3} more trips, which were not recorded\n" in str(run.trace)
    assert repr(run.trace) == f"<pcbatch.Trace: {len(run.trace.block_runs)} block runs in 3 of {run.trips} trips>"


def test_without_the_option_nothing_is_recorded():
    """The loop carries what it carried before there was such an option."""
    given = np.array([3], np.int32)
    names = {"executions", "active", "rows", "trips", "memory"}
    assert fibonacci.options(form="lockstep").pipeline(given).machine.legs.loop.counter_specs.keys() == names
    traced = fibonacci.options(trace=7).pipeline(given).machine.legs.loop.counter_specs
    assert traced.keys() - names == {"trace"}
    with pytest.raises(UsageError, match=r"PCB561: .* fibonacci.options\(trace=1000\)"):
        _ = fibonacci.run(given).trace


def test_inside_a_tf_function_nothing_is_known_yet():
    @tf.function
    def outer(n):
        run = fibonacci.run(n)
        for what in (run.profile, lambda: run.trace):
            with pytest.raises(UsageError, match="PCB533"):
                what()
        return run.value

    outer(tf.constant([3]))


@pytest.mark.parametrize("trips", [-1, True, 1.5, 2**31])
def test_the_option_is_a_number_of_trips(trips):
    with pytest.raises(UsageError, match="PCB504: trace must be"):
        fibonacci.options(trace=trips)


def test_the_reference_backend_has_no_schedule():
    with pytest.raises(UsageError, match="PCB560"):
        fibonacci.options(trace=5, backend="reference")


# -- what is printed ---------------------------------------------------------------------------------------------------

SECONDS = re.compile(r"\b\d[\d.e-]* s\b")
"""How long something took, which is never the same."""
PRINTED = {
    "fibonacci": ["--trace=3", "examples/fibonacci.py:fibonacci", "[3, 7, 4, 5]"],
    "gcd": ["examples/gcd.py:gcd", "[12, 18, 7]", "[8, 12, 21]"],
    "simpson": ["examples/adaptive_simpson.py:integrate", "[1.0, 0.1, 0.01]", "[1e-3, 1e-3, 1e-3]"],
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_profiles(name, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["profile", *PRINTED[name]]) == 0
    check_golden(GOLDENS / f"{name}.txt", SECONDS.sub(".. s", capsys.readouterr().out))


def test_printed_profile_of_two_files_with_tabs(walked, folder, monkeypatch):
    """Tabs are spaces in a table; a call over several lines counts at its first."""
    monkeypatch.chdir(folder)
    check_golden(GOLDENS / "two_files.txt", SECONDS.sub(".. s", f"{walked.profile()}\n"))
    assert repr(walked.profile()).startswith("<pcbatch.Profile of walk: 3 lanes, ")


def test_failed_lanes_are_said_after_the_profile(tmp_path, capsys):
    path = tmp_path / "positive.py"
    path.write_text("import pcbatch\n\n@pcbatch.autobatch(jit=False)\ndef f(x):\n    assert x > 0\n    return x\n")
    assert main(["profile", "--trace", f"{path}:f", "[1, -1]"]) == 1
    out = capsys.readouterr().out
    assert "lane 1 (ASSERTION)" in out
    assert "trip  block" in out


# -- what is drawn -----------------------------------------------------------------------------------------------------


class Cells(HTMLParser):
    """The rows of cells of the tables in a text, tags checked to be closed."""

    def __init__(self, text: str):
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_profile_in_a_notebook_is_the_same_table(walked):
    profile = walked.profile()
    rows = Cells(profile._repr_html_()).rows
    shown = [[cell.strip() for cell in row] for row in rows]
    for row in shown:
        assert any(all(cell in line for cell in row) for line in str(profile).splitlines()), row
    assert ["runs", "lanes", "rows", "of use", "cost", ""] in shown
    assert "if tf.reduce_sum(x) > 0.0:  # größer: 大きい" in "\n".join(
        row[-1] for row in shown
    )  # `>` escaped and read back
    assert len({len(row) for row in rows}) == 1


def test_seconds_are_those_of_a_call_in_which_nothing_was_compiled():
    fib = pcbatch.autobatch(fibonacci.__wrapped__, jit=False)  # a name of the same code is that function
    first, second = fib.run([3, 4]), fib.run([5, 6])
    assert first.seconds is None
    assert second.seconds is not None
    assert str(second.profile()).splitlines()[0].endswith(f", {second.seconds:.3g} s")
    assert fib.run(tf.constant([5], tf.int64)).seconds is None


def test_the_picture_has_the_blocks_and_the_lanes(tmp_path):
    """What is drawn is what was recorded, read back from the figure; then as a file."""
    run = fibonacci.options(trace=1000).run([3, 7, 4, 9])
    figure = run.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    top, heat, bars = (axes for axes in figure.axes if axes.get_label() != "<colorbar>")
    (image,) = heat.images
    labels = [text.get_text().split()[-1] for text in heat.get_yticklabels()]
    ran = {(r.block, r.trip): r.ran for r in run.trace.block_runs}
    drawn = np.asarray(image.get_array()) * 4
    wanted = [[ran.get((label, trip + 1), 0) for trip in range(run.trips)] for label in labels]
    np.testing.assert_allclose(drawn, wanted, atol=1e-6)
    assert set(labels) == {block for block, count in run.executions.items() if count}
    assert "fibonacci: 4 lanes" in top.get_title()
    live = [max(r.ran + r.waiting for r in run.trace.block_runs if r.trip == t + 1) for t in range(run.trips)]
    np.testing.assert_allclose(top.patches[0].get_data().values, live)
    assert [patch.get_width() for patch in bars.patches[: len(labels)]] == [run.utilization.executed[x] for x in labels]


def test_pictures_of_many_trips_and_of_none():
    many = fibonacci.options(trace=4000).run([14, 2])
    assert many.trips > 500
    axes = many.plot().axes[1]
    assert axes.images[0].get_array().shape[1] == 500
    fibonacci.options(trace=3).run(np.zeros([0], np.int32)).plot()


def way_of(given, lane):
    """The program counters and the values of `n` of a lane, block by block, as the reference walks it alone."""
    arguments, pipeline, _ = fibonacci.options(**REFERENCE).session.pipeline((given,), {})
    walk = pipeline.machine.walk(*arrays_of(pipeline.machine, pipeline.parameters(), arguments, {}), lane)
    found = [walk.visit()]
    while walk.go_on():
        found.append(walk.visit())
    return [([*visit.program_counters], [str(n) for n in visit.stacks["n"]]) for visit in found]


@pytest.mark.parametrize("options", [{"trace": 99, "schedule": "switch", "jit": False}, {"strategy": "local"}])
def test_pictures_of_stacks_show_what_each_lane_holds(options, tmp_path):
    """Each lane is somewhere on its way, and never goes back."""
    given = np.array([3, 5, 0, 4], np.int32)
    run = fibonacci.options(**options).run(given)
    ways, at = [way_of(given, lane) for lane in range(4)], [0] * 4
    for step in [*range(0, run.trips, 7), run.trips]:
        rows = trace.columns_of(run._concrete.standing(step))
        for lane, way in enumerate(ways):
            counters = rows[trace.COUNTER][lane]
            if counters != ["end"]:
                at[lane] += way[at[lane] :].index((counters, rows["n"][lane]))
        frames = rows.get(trace.FRAMES, [])
        assert all(len(column) == len(frames[0]) for column in frames)
    assert rows[trace.COUNTER] == [["end"]] * 4
    assert any(at)
    (axes,) = run.plot_stacks(run.trips // 2, tmp_path / "stacks.png").axes
    rows = trace.columns_of(run._concrete.standing(run.trips // 2))
    shown = sorted(text.get_text() for text in axes.texts)
    assert shown == sorted(text for columns in rows.values() for column in columns for text in column)
    assert (tmp_path / "stacks.png").stat().st_size > 1000


@pcbatch.autobatch(jit=False, trace=50)
def halved(x, n):
    assert n < 3, f"{n} is too many"
    return x / 2 if n == 0 else halved(x / 2, n - 1) + x


def test_pictures_of_stacks_of_arrays_failed_lanes_and_deep_calls():
    run = halved.run(np.ones([18, 2], np.float32), np.array([3, 1, *[0] * 16], np.int32))
    rows = trace.columns_of(run._concrete.standing(run.trips))
    assert rows[trace.COUNTER] == [["failed"], *[["end"]] * 15], "the first 16 lanes"
    beginning = trace.columns_of(run._concrete.standing(0))
    assert [*map(len, beginning[trace.COUNTER])] == [2] * 16
    assert "n" in rows, "a message shows it, and so does the picture"
    entries = [trace.columns_of(run._concrete.standing(step))["x"][1] for step in range(run.trips)]
    assert ["[1. 1.]", "[0.5 0.5]"] in entries


@pcbatch.autobatch(jit=False, trace=50, schedule="earliest")
def counted(n):
    return 0 if n == 0 else n + counted(n - 1)


def test_pictures_of_stacks_that_grow_in_the_run():
    """Of a deep recursion the newest calls are drawn."""
    run = counted.run(np.array([100, 1], np.int32))
    rows = trace.columns_of(run._concrete.standing(90))
    assert rows[trace.COUNTER][1] == ["end"] or rows["n"][1]
    assert rows["n"][0][0] == trace.MORE
    newest = [*map(int, rows["n"][0][1:])]
    assert newest == list(range(newest[0], newest[0] - len(newest), -1))
    assert int(run.value[0]) == 5050


def test_stacks_that_nobody_recorded():
    given = np.array([2], np.int32)
    with pytest.raises(UsageError, match=r"PCB561: the stacks .*trace=1000.*strategy=\"local\""):
        fibonacci.run(given).plot_stacks(0)
    with pytest.raises(UsageError, match="PCB561"):
        fibonacci.options(strategy="agenda").run(given).plot_stacks(0)
    run = fibonacci.options(strategy="local").run(given)
    for step in (-1, run.trips + 1, 1.0, True, "1"):
        with pytest.raises(UsageError, match=f"PCB579: .* has steps 0 to {run.trips}, and not"):
            run.plot_stacks(step)
    run.plot_stacks(np.int64(run.trips))
