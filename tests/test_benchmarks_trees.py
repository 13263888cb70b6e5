"""The benchmark of trees: batches are what they say, who cannot take part has a reason, those who do agree."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import conversation, environments
from benchmarks.conversation import ContestantError
from benchmarks.environments import Environment, PeerUnavailableError
from benchmarks.trees.crew import Contestant, Crew
from benchmarks.trees.networks import NETWORKS, WORDS, data, units
from benchmarks.trees.report import STYLES, failures, line, page, picture


class Pretender:
    """A process that gives the same value everywhere, or fails."""

    def __init__(self, path, value=1.0, dies=""):
        self._path, self._value, self._dies = path, value, dies

    def ask(self, limit, do, **command):
        if do == self._dies:
            raise ContestantError("ended: exit code -6")
        if do == "prepare":
            np.save(self._path, np.full(command["examples"], self._value))
            return {"seconds": 1.0, "result": str(self._path), "counts": {"block runs": 7}}
        return {"seconds": 0.001}

    def close(self):
        pass


@pytest.fixture
def pretenders(monkeypatch, tmp_path):
    """Makes what contestants are of the arguments given for their scripts; None is one that cannot be installed."""

    def make(**given):
        def process(contestant):
            behaviour = given.get(contestant.module.rpartition(".")[2], {})
            if behaviour is None:
                raise PeerUnavailableError("python3.8 is not installed")
            return Pretender(tmp_path / f"{contestant.module}.npy", **behaviour)

        monkeypatch.setattr(Contestant, "process", process)

    return make


def walked(batch, tree):
    """The nodes below the root of a binary tree, in order of a walk, and how many of them are leaves."""
    nodes, leaves, waiting = [], 0, [0]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if batch["left"][tree, node] >= 0:
            waiting += [batch["right"][tree, node], batch["left"][tree, node]]
        else:
            leaves += 1
    return nodes, leaves


@pytest.mark.parametrize(("name", "fewest", "most"), [("small trees", 2, 15), ("large trees", 2, 100)])
def test_trees_are_trees(name, fewest, most):
    batch = NETWORKS[name].batch(40, 3)
    found = [walked(batch, tree) for tree in range(40)]
    for tree, (nodes, leaves) in enumerate(found):
        assert fewest <= leaves <= most
        assert sorted(nodes) == list(range(2 * leaves - 1)), "each node once"
        assert (batch["word"][tree, nodes] >= 0).all()
        assert batch["word"][tree].max() < WORDS
    assert units(NETWORKS[name], batch) == sum(leaves for _, leaves in found)
    assert len({leaves for _, leaves in found}) > 5


@pytest.mark.skipif(not data("wikigold/wikigold_word_tag.txt").is_file(), reason="needs wikigold/ in PCBATCH_DATA")
def test_texts_are_sentences():
    batch = NETWORKS["small tagger"].batch(30, 3)
    lengths = (batch["word"] >= 0).sum(1)
    np.testing.assert_array_equal(batch["length"], lengths)
    for word, length in zip(batch["word"], lengths, strict=True):
        assert 0 < length <= len(word)
        assert (word[:length] >= 0).all(), "what is behind a sentence comes last"
        assert word.max() < WORDS
    assert units(NETWORKS["small tagger"], batch) == lengths.sum()


@pytest.mark.skipif(not data("ud_ewt/train_subset.conllu").is_file(), reason="needs ud_ewt/ in PCBATCH_DATA")
def test_dependencies_are_trees():
    batch = NETWORKS["dependencies"].batch(30, 3)
    for tree in range(30):
        nodes, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            nodes.append(node)
            child = batch["first"][tree, node]
            while child >= 0:
                waiting.append(child)
                child = batch["following"][tree, child]
        assert sorted(nodes) == list(range(int((batch["word"][tree] >= 0).sum()))), "each token once"


def test_a_contestant_that_disagrees_is_an_error(pretenders):
    pretenders(pcbatch_batched={"value": 1.0}, by_hand={"value": 1.1})
    with Crew(["pcbatch", "by hand"]) as crew, pytest.raises(AssertionError, match="pcbatch and by hand disagree"):
        crew.measured("small trees", 4, repeats=1)


def test_who_cannot_take_part_has_a_reason(pretenders, tmp_path):
    pretenders(by_hand={"dies": "run"}, dynet_graphs=None)
    with Crew(["pcbatch", "by hand", "DyNet, agenda"]) as crew:
        found = {"small trees": {4: crew.measured("small trees", 4, repeats=2)}}
    cell = found["small trees"][4]
    assert cell["pcbatch"].rate == pytest.approx(cell["pcbatch"].units / 0.001)
    assert failures(found) == ["- DyNet, agenda: python3.8 is not installed", "- by hand: ended: exit code -6"]
    assert "by hand --" in line("small trees", 4, cell)
    assert "| by hand | -- | 1.0 |" in page(found, "trees.png", "Measured.")
    picture(tmp_path / "trees.png", found, STYLES)
    assert (tmp_path / "trees.png").stat().st_size > 1000


def test_pages_say_pcbatchs_speed_over_the_others(pretenders):
    pretenders()
    with Crew(["pcbatch", "by hand"]) as crew:
        cell = crew.measured("small trees", 4, repeats=1)
    cell["by hand"].seconds = [0.002]
    assert any("(2.00)" in each for each in page({"small trees": {4: cell}}, "trees.png", "Measured."))


def test_an_interpreter_that_is_not_there_is_a_reason(tmp_path):
    with pytest.raises(PeerUnavailableError, match=r"python3\.1 is not installed"):
        Environment("old", ("numpy",), "python3.1").python(tmp_path)


def test_peers_lie_in_the_users_cache(monkeypatch, tmp_path):
    """A checkout stays as it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert environments.cache() == tmp_path
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for platform, folder in (("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")):
        monkeypatch.delenv("LOCALAPPDATA", raising=False)
        monkeypatch.setattr(environments.sys, "platform", platform)
        assert environments.cache() == tmp_path / "home" / folder
    assert not environments.FOLDER.is_relative_to(conversation.ROOT)
