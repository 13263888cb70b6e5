"""The benchmark of cheap code: who cannot take part has a reason, those who do agree, the tables are right."""

import importlib
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import conversation
from benchmarks.against import crew, pages, scaling
from benchmarks.against.contestants import in_c, plain_python
from benchmarks.against.contestants.worker import Job, growth
from benchmarks.against.contestants.worker import timed as timed_call
from benchmarks.against.crew import CONTESTANTS, LOOPS, Contestant, Crew, Figures
from benchmarks.against.inputs import CHEAP, RECURSIONS
from benchmarks.against.pages import EIGHT, RECURSIVE, Found
from benchmarks.against.report import failures, firsts, line, losses, markdown, means, overview, ratios, summary
from benchmarks.against.scaling import Point
from benchmarks.conversation import ContestantError, Process
from benchmarks.environments import PeerUnavailableError
from benchmarks.harness import write_json

LIMITS = {"repeats": 2, "limit": 10.0, "budget": 1.0}


class Pretender:
    """A process that takes so many seconds a lane, or fails."""

    def __init__(self, path, value=1.0, pace=0.01, dies=""):
        self._path, self._value, self._pace, self._dies, self._lanes = path, value, pace, dies, 0

    def ask(self, limit, do, **command):
        if do == self._dies:
            raise ContestantError("ended: exit code -6")
        if do == "prepare":
            self._lanes = command["lanes"]
            np.save(self._path, np.full(self._lanes, self._value))
            return {"seconds": 1.0, "result": str(self._path)}
        if self._pace * self._lanes > limit:
            raise ContestantError(f"took more than {limit:.0f} s to {do}")
        return {"seconds": self._pace * self._lanes, "cpu": 2 * self._pace * self._lanes}

    def close(self):
        pass


@pytest.fixture
def pretenders(monkeypatch, tmp_path):
    """Makes what contestants are of the arguments given for their scripts; None is one that cannot be installed."""

    def make(**given):
        def process(contestant):
            behaviour = given.get(contestant.script, {})
            if behaviour is None:
                raise PeerUnavailableError("pip install .. failed: no network")
            return Pretender(tmp_path / f"{contestant.script}.npy", **behaviour)

        monkeypatch.setattr(Contestant, "process", process)

    return make


def test_a_contestant_that_disagrees_is_an_error(pretenders):
    pretenders(numba_loops={"value": 1.1})
    with (
        Crew(["pcbatch", "numba"]) as both,
        pytest.raises(AssertionError, match="pcbatch and numba disagree on collatz"),
    ):
        both.measured("collatz", 4, **LIMITS)


def test_one_that_takes_long_is_given_up_and_not_asked_again(pretenders):
    pretenders(numba_loops={"pace": 3.0}, plain_python={"pace": 0.5})
    with Crew(["pcbatch", "numba", "python"]) as three:
        few, many = three.measured("collatz", 4, **LIMITS), three.measured("collatz", 64, **LIMITS)
    assert few["numba"].failure == many["numba"].failure == "took more than 10 s to run"
    assert few["python"].seconds == [2.0]  # its budget is used up
    assert many["python"].failure == "would take 32 s"
    assert many["pcbatch"].best() == 0.64


def test_the_memory_of_one_that_dies_is_not_known(pretenders):
    pretenders(pcbatch_batched={"dies": "memory"})
    with Crew(["pcbatch"]) as alone:
        assert alone.measured("collatz", 4, **LIMITS)["pcbatch"].best() == 0.04
        assert alone.memory("pcbatch") is None
        assert alone.measured("collatz", 8, **LIMITS)["pcbatch"].best() == 0.08


def test_those_that_cannot_take_part_have_a_reason_and_the_others_go_on(pretenders):
    pretenders(in_jax=None, numba_loops={"dies": "start"}, plain_python={"dies": "prepare"})
    with Crew(["vmap", "numba", "python", "pcbatch", "tfp"]) as all_of_them:
        cell = all_of_them.measured("collatz", 4, **LIMITS)
    assert list(cell) == ["pcbatch", "vmap", "numba", "python"]  # in their order; this is not one of tfp's tasks
    assert cell["vmap"].failure == "pip install .. failed: no network"
    assert cell["numba"].failure == cell["python"].failure == "ended: exit code -6"
    assert cell["pcbatch"].seconds == [0.04, 0.04]
    assert cell["pcbatch"].cpu == [0.08, 0.08]
    assert "vmap -- (pip install .. failed: no network)" in line("collatz", cell)
    assert "pcbatch 40/80 [1]" in line("collatz", cell)
    assert "4 lanes, collatz, numba: ended: exit code -6" in failures({4: {"collatz": cell}})


def test_a_process_answers_and_says_how_it_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(conversation, "ROOT", tmp_path)
    root = Path(__file__).parents[1]
    (tmp_path / "replies.py").write_text(
        "import os, sys\n"
        f"sys.path.append({str(root)!r})\n"
        "from benchmarks.conversation import serve\n"
        "def answer(command):\n"
        "    print('a library talks')\n"
        "    if command['do'] == 'die': sys.exit('no more')\n"
        "    return {'twice': 2 * command['number']}\n"
        "serve(answer)\n"
    )
    process = Process("replies", sys.executable)
    try:
        assert process.ask(20, do="double", number=4) == {"twice": 8}
        with pytest.raises(ContestantError, match="KeyError: 'number'"):
            process.ask(20, do="double")
        with pytest.raises(ContestantError, match="ended: no more"):
            process.ask(20, do="die")
    finally:
        process.close()


def test_a_process_can_be_held_to_one_core(tmp_path, monkeypatch):
    monkeypatch.setattr(conversation, "ROOT", tmp_path)
    (tmp_path / "counting.py").write_text(
        "import os, sys\n"
        f"sys.path.append({str(Path(__file__).parents[1])!r})\n"
        "from benchmarks.conversation import serve\n"
        "serve(lambda command: {'cores': len(os.sched_getaffinity(0))})\n"
    )
    if not hasattr(os, "sched_setaffinity"):
        with pytest.raises(PeerUnavailableError, match="holds no process"):
            Process("counting", cores=1)
        return
    before = os.sched_getaffinity(0)
    process = Process("counting", cores=1)
    try:
        assert process.ask(20, do="count") == {"cores": 1}
    finally:
        process.close()
    assert os.sched_getaffinity(0) == before


def test_short_calls_are_timed_together_and_by_both_clocks():
    calls = []
    found = timed_call(lambda: calls.append(1))
    assert len(calls) > 100
    assert 0 < found["seconds"] < 1e-4
    waiting = timed_call(lambda: time.sleep(0.02))
    assert waiting["seconds"] >= 0.02
    assert waiting["cpu"] < 0.01


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the size of a process")
def test_the_memory_of_a_call_is_measured():
    for count in (400_000, 4_000_000, 400_000):  # the last one in memory that others have left
        assert growth(lambda: np.ones(count)) == pytest.approx(8 * count, abs=1e6)  # noqa: B023 -- called at once


def timed(*seconds):
    """Figures of timed calls, which took three cores."""
    return Figures(1.5, list(seconds), [3 * each for each in seconds])


TABLE = {
    "collatz": {"pcbatch": timed(0.002, 0.006), "masked": timed(0.002), "numba": Figures(failure="would take 99 s")},
    "edit_distance": {"pcbatch": timed(0.004), "numba": Figures(1.5, [0.001, 0.001, 0.008], [0.006])},
    "rk45": {"pcbatch": timed(0.001), "masked": timed(0.008), "numba": timed(0.001)},
}


def test_the_tables_say_who_wins():
    assert ratios(TABLE, "masked") == {"collatz": 2, "rk45": 0.125}
    assert ratios(TABLE, "masked", best=True) == {"collatz": 1, "rk45": 0.125}
    assert summary(TABLE) == [
        "pcbatch's time over that of masked: 0.5 in the geometric mean of 2, at worst 2 (collatz); CPU time 0.5; "
        "of the best calls 0.35, CPU time 0.35",
        "pcbatch's time over that of numba: 2 in the geometric mean of 2, at worst 4 (edit distance); CPU time 1.4; "
        "of the best calls 2, CPU time 1.4",
    ]
    assert markdown(TABLE) == [
        "| task | pcbatch, ms | masked | numba |",
        "| --- | --- | --- | --- |",
        "| collatz | 4 | **2** | -- |",
        "| edit distance | 4 |  | **4** |",
        "| rk45 | 1 | 0.12 | 1 |",
        "| *geometric mean* |  | 0.5 | **2** |",
    ]
    assert markdown(TABLE, "cpu")[2] == "| collatz | 12 | **2** | -- |"
    assert overview({1: TABLE, 64: {}}) == [
        "| pcbatch's time over that of | 1 lane | 64 lanes |",
        "| --- | --- | --- |",
        "| masked | 0.5; collatz 2 |  |",
        "| numba | **2**; edit distance 4 |  |",
    ]
    assert means({1: TABLE}, ["numba"], "cpu")[2:] == ["| numba | **1.4** |"]
    assert losses({1: TABLE, 64: {}}) == ["1 lane: numba 2", "64 lanes: nobody"]
    assert firsts({16384: TABLE}) == [
        "| lanes | pcbatch | masked | numba |",
        "| --- | --- | --- | --- |",
        "| 16,384 | 1.5 | 1.5 | 1.5 |",
    ]


POINTS = {
    "queens": {
        1000: Point(10**6, 24_000, timed(0.002), timed(0.002)),
        10**5: Point(10**7, 2_400_000, timed(0.03), timed(0.016)),
    },
    "rk45": {1000: Point(10**6 + 7, None, timed(0.001), timed(0.001), steps_alone=7, seconds_alone=0.001)},
}


def test_the_tables_of_scaling():
    assert scaling.flatness(POINTS)[2:] == ["| queens | 6 | 9 | 1.50 |", "| rk45 | 2 |  | 1.00 |"], (
        "a call's own time is left out"
    )
    assert scaling.memory(POINTS)[2:] == ["| queens |  | 24 |", "| rk45 |  |  |"]
    assert scaling.gains(POINTS)[2:] == ["| queens | 1.00 | 1.88 |", "| rk45 |  |  |"]  # too little for two cores


def test_a_file_of_figures_is_drawn_into_a_page(tmp_path):
    found = Found("Measured here.", {EIGHT: {1: TABLE}, RECURSIVE: {1: {}}}, POINTS)
    write_json(tmp_path / "x.json", found)
    read = pages.read(tmp_path / "x.json")
    assert read == found
    text = "# Title\n\n<!-- drawn: loops -->\nold\n<!-- end -->\n\n<!-- drawn: origin -->\n<!-- end -->\n"
    once = pages.drawn(text, read)
    assert "old" not in once
    assert "| numba | **2** |" in once
    assert "\nMeasured here.\n<!-- end -->" in once
    assert pages.drawn(once, read) == once


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_pages_show_the_figures_of_the_file(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- drawn: ") == len(pages.MARKED.findall(text)) > 0
    assert pages.drawn(text, pages.read()) == text, f"python -m benchmarks.against.pages draws {page.name}"


def assert_like_plain_python(name, tasks, lanes):
    """A contestant, in this process, gives what plain Python gives."""
    contestant = CONTESTANTS[name]
    module = importlib.import_module(f"{crew.__package__}.contestants.{contestant.script}")
    for task in tasks:
        result = module.prepare(Job(task, lanes, contestant.variant))()
        expected = plain_python.prepare(Job(task, lanes))()
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7, err_msg=task)


@pytest.mark.parametrize("name", ["numpy", "masked", "vectorized_map"])
def test_texts_of_their_own_mean_the_same(name):
    assert_like_plain_python(name, LOOPS, 9)


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_texts_in_c_mean_the_same():
    assert_like_plain_python("C", CHEAP, 9)


@pytest.mark.parametrize(("compiler", "why"), [("no-such-compiler", "is not installed"), (sys.executable, "failed: ")])
def test_c_without_a_compiler_has_a_reason(compiler, why, monkeypatch):
    monkeypatch.setenv("CC", compiler)
    in_c.library.cache_clear()
    with pytest.raises(PeerUnavailableError, match=why):
        in_c.prepare(Job("collatz", 3))


@pytest.mark.parametrize("name", ["vmap", "vmap, one loop", "lax.map"])
def test_texts_in_jax_mean_the_same(name):
    pytest.importorskip("jax")
    assert_like_plain_python(name, CHEAP, 9)


def test_every_contestant_has_its_tasks_and_its_script():
    assert all(set(each.tasks) <= {*CHEAP, *RECURSIONS} for each in CONTESTANTS.values())
    folder = Path(crew.__file__).parent / "contestants"
    assert all((folder / f"{each.script}.py").exists() for each in CONTESTANTS.values())
