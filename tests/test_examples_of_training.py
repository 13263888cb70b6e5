"""The examples that train: their data is what they say, their models learn, and are the same when they are loaded."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.figures.curves import each_of

FOLDER = Path(__file__).parent.parent / "examples" / "training"


def load(name):
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # as for a script that runs there
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # where dataclasses look
    specification.loader.exec_module(module)
    return module


trees, tagger = load("tree_sentiment"), load("tagger")
WIKIGOLD = Path(os.environ.get("PCBATCH_DATA", "")) / tagger.FILE


SMALL = {
    "attention": "wikigold/wikigold_word_tag.txt",
    "calculator": "",
    "child_sum": "ud_ewt/train_subset.conllu",
    "graph_network": "",
    "neural_ode": "",
    "newton": "",
    "node_labels": "ud_ewt/train_subset.conllu",
    "private_gradients": "",
    "rare_words": "wikigold/wikigold_word_tag.txt",
    "transition_parser": "ud_ewt/train_subset.conllu",
    "weave": "",
}
"""The small models, with the file of PCBATCH_DATA that they read."""


def test_every_example_is_run_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == {"tree_sentiment", "tagger", "running", *SMALL}


@pytest.mark.parametrize("name", SMALL)
def test_one_example_of_a_small_model_has_a_gradient(name):
    module = small(name)
    loss, variables = module.model(2)
    given = module.examples(np.random.default_rng(0), 1)
    with tf.GradientTape() as tape:
        value = loss.single(*(each_of(argument, 0) for argument in given))
    assert np.isfinite(value)
    assert any(each is not None for each in tape.gradient(value, variables))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_has_the_gradients_of_an_eager_tape(name):
    """Losses are those of `single`, gradients those of a tape that watches it; two steps train."""
    module = small(name)
    loss, variables = module.model(4)
    given = module.examples(np.random.default_rng(0), 2)
    with tf.GradientTape() as tape:
        losses = loss(*given)
    found = tape.gradient(losses, variables)
    with tf.GradientTape() as tape:
        singly = [loss.single(*(each_of(argument, lane) for argument in given)) for lane in range(2)]
    wanted = tape.gradient(singly, variables)
    np.testing.assert_allclose(losses, singly, rtol=1e-4, atol=1e-5)
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(dense(mine), dense(other), rtol=2e-3, atol=1e-4)
    before = [np.array(each) for each in variables]
    steps = getattr(module, "train", module.running.train)(loss, variables, module.examples, 2, 2)
    assert np.all(np.isfinite(steps))
    assert any(np.any(np.array(each) != old) for each, old in zip(variables, before, strict=True))


def small(name):
    """The module of a small model; skips where its data is not there."""
    if SMALL[name] and not (Path(os.environ.get("PCBATCH_DATA", "")) / SMALL[name]).is_file():
        pytest.skip(f"needs {SMALL[name]} in PCBATCH_DATA")
    return load(name)


def dense(gradient):
    return np.zeros(()) if gradient is None else tf.convert_to_tensor(gradient).numpy()


def test_a_curve_is_a_picture(tmp_path):
    load("newton").running.save_curve([3.0, 2.0, 1.5, 1.0, 0.9], tmp_path / "out" / "loss.png", "newton")
    assert (tmp_path / "out" / "loss.png").stat().st_size > 1000


def test_trees_mean_what_their_labels_say():
    some, label = trees.make_trees(200, seed=3)

    def meaning(tree):
        if tree.is_leaf:
            return trees.OPINIONS[trees.WORDS[tree.value]]
        match trees.WORDS[tree.left.value] if tree.left.is_leaf else None:
            case "not":
                return -meaning(tree.right)
            case "very":
                return 2 * meaning(tree.right)
        second = meaning(tree.right.right)
        return second if trees.WORDS[tree.right.left.value] == "but" else meaning(tree.left) + second

    assert [int(meaning(some.of_lane(lane)) > 0) for lane in range(200)] == label.tolist()
    assert 0.3 < label.mean() < 0.7


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
    model, (some, label) = trees.TreeLSTM(8), trees.make_trees(32, seed=3)
    losses = trees.train(model, some, label, epochs=8, batch=32, rate=0.02)
    assert losses[-1] < losses[0] - 0.01
    assert model.batched.stats().compilations <= 2


@pytest.mark.slow
def test_a_saved_tree_lstm_is_the_same_when_it_is_loaded(tmp_path, capsys):
    arguments = ["--trees", "96", "--held-out", "32", "--epochs", "4", "--batch", "32", "--width", "8"]
    trees.main([*arguments, "--out", str(tmp_path)])
    assert "loaded again, equal: True" in capsys.readouterr().out
    assert (tmp_path / "loss.png").stat().st_size > 1000

    again, (some, _) = tf.saved_model.load(str(tmp_path / "model")), trees.make_trees(32, seed=4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(again.scores(*vars(some).values()) ** 2)
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
