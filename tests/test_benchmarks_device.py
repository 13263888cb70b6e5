"""`python -m benchmarks.device`: what it asks a card, and what it does where there is none."""

import json

import pytest

from benchmarks.conversation import ContestantError
from benchmarks.device import __main__ as script
from benchmarks.device import page, worker
from benchmarks.device.plan import PROGRAMS, WAYS, planned
from tests.harness import NAMES


class Card:
    """A process on a machine with a card, or without."""

    name: str | None = "H200"
    asked: list[dict]

    def __init__(self, module, python="", variables=None):
        self.module = module

    def ask(self, limit, **command):
        self.asked.append(command)
        match command["do"]:
            case "start":
                return {"card": self.name}
            case "right":
                return {"wrong": "AssertionError: lane 3" if command["name"] == "sieve" else None}
            case "prepare":
                return {"seconds": 9.0}
            case "run":
                return {"wall": 0.012}
        if command["program"] == "tree":
            raise ContestantError("ended: out of memory")
        return {"first": 1.5, "seconds": 0.0123}

    def close(self):
        pass


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setattr(script, "Process", Card)
    monkeypatch.setattr(Card, "asked", [], raising=False)
    monkeypatch.setattr(Card, "name", "H200")
    return Card.asked


def test_twenty_programs_of_the_corpus():
    assert len(PROGRAMS) == 20
    assert set(PROGRAMS) <= set(NAMES)
    for way in (*WAYS, "NumPyro"):
        assert [*planned(way)]


def test_a_card_is_asked_for_results_then_for_times(asked, capsys):
    found = script.Session(300, "python").run()
    assert found["card"] == "H200"
    assert [command["do"] for command in asked[:22]] == ["start", *["right"] * 20, "start"]
    assert found["right"]["sieve"] == "AssertionError: lane 3"
    assert {row["way"] for row in found["rows"]} == {*WAYS, "NumPyro"}
    assert found["missing"]["sixteen trips"] == "ended: out of memory"
    text = page.table({**found, "origin": "Measured so."})
    assert "19 of 20 programs of the test suite were right on H200" in text
    assert "| fibonacci, 10,000 | 12.3 (1.5 s) |" in text
    assert "| sampler, 64 |" in text


def test_a_mistake_is_an_exit_code_and_time_that_is_over_is_told(asked, tmp_path, capsys):
    assert script.main(["--json", str(tmp_path / "found.json"), "--seconds", "0", "--numpyro", "python"]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["missing"]["fibonacci"] == "no time was left"
    assert not found["rows"] or {row["way"] for row in found["rows"]} == {"NumPyro"}
    assert script.main(["--programs", "sieve", "--numpyro", "python"]) == 1


def test_without_a_card_nothing_is_timed(asked, monkeypatch, capsys):
    monkeypatch.setattr(Card, "name", None)
    assert script.main(["--programs", "collatz"]) == 0
    assert "no card was found" in capsys.readouterr().out
    assert not [command for command in asked if command["do"] == "time"]


def test_the_page_shows_the_figures_that_were_written():
    text = page.PAGE.read_text("utf-8")
    assert page.drawn(text, page.read()) == text


@pytest.mark.slow
def test_programs_run_in_the_form_for_a_gpu(capsys):
    assert script.main(["--programs", "collatz", "mixed_failures"]) == 0
    said = capsys.readouterr().out
    assert "collatz: right" in said
    assert ("no card was found" in said) == (worker.card() is None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["collatz", "sort", "training step"])
def test_a_program_is_timed(name):
    found = worker.timed("sixteen trips", name, 4)
    assert found["first"] > 0
    assert found["seconds"] > 0
