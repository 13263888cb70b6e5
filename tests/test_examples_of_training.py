"""The examples that train: their data is what they say, their models learn, and are the same when they are loaded."""

import importlib.util
import os
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

FOLDER = Path(__file__).parent.parent / "examples" / "training"


def load(name):
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


trees, tagger = load("tree_sentiment"), load("tagger")
WIKIGOLD = Path(os.environ.get("PCBATCH_DATA", "")) / tagger.FILE


def test_every_example_is_run_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == {"tree_sentiment", "tagger"}


def test_trees_mean_what_their_labels_say():
    some = trees.make_trees(200, seed=3)

    def meaning(tree, node=0):
        left, right = some.left[tree, node], some.right[tree, node]
        if left < 0:
            return trees.OPINIONS[trees.WORDS[some.word[tree, node]]]
        match trees.WORDS[some.word[tree, left]] if some.left[tree, left] < 0 else None:
            case "not":
                return -meaning(tree, right)
            case "very":
                return 2 * meaning(tree, right)
        conjunction = trees.WORDS[some.word[tree, some.left[tree, right]]]
        second = meaning(tree, some.right[tree, right])
        return second if conjunction == "but" else meaning(tree, left) + second

    assert [int(meaning(tree) > 0) for tree in range(200)] == some.label.tolist()
    assert 0.3 < some.label.mean() < 0.7


def test_entities_are_neighbours_of_one_kind():
    tags = np.array([[0, 3, 3, 1, 0], [2, 0, 2, 0, 0]])
    assert tagger.entities(tags) == {(0, 1, 3, 3), (0, 3, 4, 1), (1, 0, 1, 2), (1, 2, 3, 2)}


def test_f1_counts_whole_entities():
    length = np.array([3], np.int32)
    tags = np.zeros([1, tagger.TOKENS], np.int32)
    tags[0, :3] = 3, 3, 1
    sentences = tagger.Sentences(tags, tags, tags, length, tags)
    scores = np.zeros([1, tagger.TOKENS, len(tagger.TAGS)])
    for t, found in enumerate((3, 0, 1, 2)):  # one entity is too short, one is right, one lies behind the end
        scores[0, t, found] = 1.0
    assert tagger.judged(scores, sentences) == (pytest.approx(2 / 3), pytest.approx(0.5))


def test_a_tree_lstm_learns():
    model, some = trees.TreeLSTM(8), trees.make_trees(32, seed=3)
    losses = trees.train(model, some, epochs=8, batch=32, rate=0.02)
    assert losses[-1] < losses[0] - 0.01
    assert model.batched.stats().compilations <= 2


@pytest.mark.slow
def test_a_saved_tree_lstm_is_the_same_when_it_is_loaded(tmp_path, capsys):
    arguments = ["--trees", "96", "--held-out", "32", "--epochs", "4", "--batch", "32", "--width", "8"]
    trees.main([*arguments, "--out", str(tmp_path)])
    assert "loaded again, equal: True" in capsys.readouterr().out
    assert (tmp_path / "loss.png").stat().st_size > 1000

    again, some = tf.saved_model.load(str(tmp_path / "model")), trees.make_trees(5, seed=4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(again.scores(some.left, some.right, some.word) ** 2)
    assert float(tf.norm(tape.gradient(loss, again.node))) > 0, "it can be trained on"


@pytest.mark.slow
def test_a_tree_lstm_knows_what_a_bag_of_words_cannot(tmp_path, capsys):
    trees.main(["--epochs", "6", "--out", str(tmp_path)])
    tree, bag = map(float, re.findall(r"(?:trees|words): (\S+)$", capsys.readouterr().out, re.MULTILINE))
    assert tree > 0.9
    assert bag < 0.7


@pytest.mark.slow
@pytest.mark.skipif(not WIKIGOLD.is_file(), reason="needs wikigold/ in PCBATCH_DATA")
def test_the_tagger_is_its_twin(tmp_path, capsys):
    arguments = ["--sentences", "64", "--held-out", "32", "--epochs", "3", "--batch", "16", "--width", "16"]
    tagger.main([*arguments, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    ours, twin = re.findall(r"loss (\S+); 32 other sentences: accuracy (\S+), F1", printed)
    assert [float(each) for each in ours] == pytest.approx([float(each) for each in twin], abs=0.01)
    assert "loaded again, equal: True" in printed
    assert (tmp_path / "loss.png").stat().st_size > 1000
