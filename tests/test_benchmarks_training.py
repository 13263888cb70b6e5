"""The benchmark of training: gradients are compared, who cannot take part has a reason, all contestants agree."""

import sys

import numpy as np
import pytest

from benchmarks.conversation import ContestantError
from benchmarks.environments import PeerUnavailableError
from benchmarks.training.crew import CONTESTANTS, Crew, agree
from benchmarks.training.losses import targets
from benchmarks.training.report import STYLES, line, page
from benchmarks.trees.crew import Contestant
from benchmarks.trees.networks import LONGEST, STEPS, TAGS, TRAINED
from benchmarks.trees.report import failures, picture


class Pretender:
    """A process that gives the same gradients everywhere, or fails."""

    def __init__(self, path, value=1.0, dies="", names=("words",)):
        self._path, self._value, self._dies, self._names = path, value, dies, names

    def ask(self, limit, do, **command):
        if do == self._dies:
            raise ContestantError("ended: exit code -6")
        if do == "prepare":
            np.savez(self._path, **dict.fromkeys(self._names, np.full(command["examples"], self._value)))
            return {"first": {"inference": 1.0, "step": 2.0}, "gradients": str(self._path)}
        if do == "memory":
            return {"bytes": [2**20 * each for each in command["lengths"]]}
        return {"seconds": {"inference": 0.001, "step": 0.003, "taped": 0.0012}}

    def close(self):
        pass


@pytest.fixture
def pretenders(monkeypatch, tmp_path):
    """Makes what contestants are of the arguments given for their modules; None is one that cannot be installed."""

    def make(**given):
        def process(contestant):
            behaviour = given.get(contestant.module.rpartition(".")[2], {})
            if behaviour is None:
                raise PeerUnavailableError("python3.8 is not installed")
            return Pretender(tmp_path / f"{contestant.module}.npz", **behaviour)

        monkeypatch.setattr(Contestant, "process", process)

    return make


def test_targets_are_nothing_where_there_is_no_token():
    network = TRAINED["tagger"]
    batch = network.batch(5, 3)
    found = targets(network, batch)
    assert found.shape == (5, LONGEST, TAGS)
    for each, length in zip(found, batch["length"], strict=True):
        assert (each[:length] != 0).all()
        assert (each[length:] == 0).all()
    assert targets(TRAINED["LSTM"], TRAINED["LSTM"].batch(5, 3)).shape == (5, 256)
    assert TRAINED["LSTM"].batch(5, 3)["word"].shape == (5, STEPS)


@pytest.mark.parametrize("other", [{"value": 1.01}, {"names": ("words", "leaf")}], ids=["another", "one more"])
def test_a_contestant_with_another_gradient_is_an_error(other, pretenders):
    pretenders(by_hand_steps=other)
    with Crew(["pcbatch", "by hand"]) as crew, pytest.raises(AssertionError, match="pcbatch and by hand disagree"):
        crew.measured("small trees", 4, repeats=1)


def test_gradients_that_are_nothing_are_an_error():
    with pytest.raises(AssertionError, match="no gradient of words"):
        agree({"words": np.zeros(3)}, {"words": np.zeros(3)}, "one and other")


def test_pages_say_who_was_how_fast(pretenders, tmp_path):
    pretenders(by_hand_steps={"dies": "run"}, dynet_steps=None)
    with Crew(CONTESTANTS) as crew:
        found = {name: {4: crew.measured(name, 4, repeats=2)} for name in ("LSTM", "small trees")}
        memory = crew.memory("LSTM", 4, [50, 100])
    assert "JAX" in found["LSTM"][4]
    assert "JAX" not in found["small trees"][4]
    cell = found["LSTM"][4]
    assert cell["pcbatch"].rate == pytest.approx(cell["pcbatch"].units / 0.003)
    assert failures(found) == ["- DyNet, agenda: python3.8 is not installed", "- by hand: ended: exit code -6"]
    assert "(step / inference 3.00, taped / plain 1.20)" in line("LSTM", 4, cell)
    said = page(found, {"pcbatch": memory["pcbatch"]}, [50, 100], 4, "Measured.")
    assert "| LSTM | pcbatch | 3.00 | 1.20 | 1.0 | 2.0 |" in said
    assert "| pcbatch | 50 | 100 |" in said
    assert any(each.startswith("| JAX |") and "(1.00)" in each for each in said)
    picture(tmp_path / "training.png", found, STYLES)
    assert (tmp_path / "training.png").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read of Linux")
def test_pcbatch_and_by_hand_give_the_same_gradients():
    with Crew(["pcbatch", "by hand"]) as crew:
        for network in TRAINED:
            cell = crew.measured(network, 3, repeats=1)
            assert all(figures.rate for figures in cell.values()), failures({network: {3: cell}})
        short, long = crew.memory("LSTM", 16, [50, 1600])["pcbatch"]
    assert long > 2 * short
