"""A tagger of named entities that reads words letter by letter, beside a padded twin of the same weights in Keras.

    PCBATCH_DATA=.. python examples/training/tagger.py [--sentences 1300] [--epochs 12] [--batch 32] [--out out/tagger]

Reads Wikigold (Balasuriya et al., "Named entity recognition in Wikipedia", 2009), one sentence a line as `word|tag`.
An LSTM reads the letters of each word, a BiLSTM the words of the sentence, and a product scores the tags. Written for
one sentence that is a loop in a loop, each of a length of its own, and nothing is padded. The twin is made of the same
Keras layers, sentences padded to the longest of their batch, words to its longest word, and masked. Both begin with the
same weights and see the same batches, so their losses are the same at first, and later as near as rounding leaves them.

Prints accuracy by token and F1 by entity on sentences that were not trained on, and saves a picture of both losses and
the model, which is loaded again.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from tqdm import tqdm

import pcbatch

FILE = Path("wikigold") / "wikigold_word_tag.txt"
TAGS = ("O", "I-LOC", "I-MISC", "I-ORG", "I-PER")
TOKENS, LETTERS = 144, 26
"""Those of the longest sentence and of the longest word that are read."""
UNKNOWN = 1
"""The number of words and letters that the training sentences have not, or once only; 0 is what pads."""


class Sentences(NamedTuple):
    """Sentences as arrays, int32.

    Attributes:
        words: `[sentences, TOKENS]`, numbers of words, 0 behind the end.
        letters: `[sentences, TOKENS, LETTERS]`, numbers of letters, 0 behind the end.
        sizes: `[sentences, TOKENS]`, how many letters each word has.
        length: `[sentences]`, how many words.
        tags: `[sentences, TOKENS]`, numbers of tags.
    """

    words: np.ndarray
    letters: np.ndarray
    sizes: np.ndarray
    length: np.ndarray
    tags: np.ndarray

    def batches(self, size: int, random: np.random.Generator) -> Iterator[Sentences]:
        """All sentences in a new order, `size` at a time; words are unknown at times, as some of the others will be."""
        order = random.permutation(len(self.length))
        for start in range(0, len(order) - size + 1, size):
            some = Sentences(*(each[order[start : start + size]] for each in self))
            hidden = (random.random(some.words.shape) < 0.1) & (some.words > 0)
            yield some._replace(words=np.where(hidden, UNKNOWN, some.words).astype(np.int32))


def read(path: Path, train: int, held_out: int) -> tuple[Sentences, Sentences, int, int]:
    """Sentences to train on and others, in a fixed random order, and how many words and letters are told apart."""
    lines = path.read_text(encoding="utf-8").splitlines()
    order = np.random.default_rng(0).permutation(len(lines))[: train + held_out]
    parsed = [[tuple(token.rsplit("|", 1)) for token in lines[each].split()] for each in order]
    known = [token for sentence in parsed[:train] for token, _ in sentence]
    numbers = [
        {each: UNKNOWN + 1 + place for place, (each, count) in enumerate(Counter(all_of).most_common()) if count > 1}
        for all_of in (known, "".join(known))
    ]
    found = [_arrays(part, *numbers) for part in (parsed[:train], parsed[train:])]
    return found[0], found[1], *(len(each) + 2 for each in numbers)


def _arrays(parsed: list[Any], of_word: dict[str, int], of_letter: dict[str, int]) -> Sentences:
    count = len(parsed)
    words, sizes, tags = (np.zeros([count, TOKENS], np.int32) for _ in range(3))
    letters = np.zeros([count, TOKENS, LETTERS], np.int32)
    for row, sentence in enumerate(parsed):
        for t, (word, tag) in enumerate(sentence[:TOKENS]):
            words[row, t], tags[row, t] = of_word.get(word, UNKNOWN), TAGS.index(tag)
            sizes[row, t] = min(len(word), LETTERS)
            letters[row, t, : sizes[row, t]] = [of_letter.get(letter, UNKNOWN) for letter in word[:LETTERS]]
    length = np.array([min(len(sentence), TOKENS) for sentence in parsed], np.int32)
    return Sentences(words, letters, sizes, length, tags)


class Tagger(tf.Module):
    """The weights, which are those of Keras layers, and the model twice: for one sentence, and padded for a batch."""

    def __init__(self, words: int, letters: int, width: int, seed: int = 1):
        super().__init__()
        keras.utils.set_random_seed(seed)
        self.words, self.letters = layers.Embedding(words, width // 2), layers.Embedding(letters, width // 4)
        self.spelling = layers.LSTM(width // 4)
        self.forward = layers.LSTM(width, return_sequences=True)
        self.backward = layers.LSTM(width, return_sequences=True, go_backwards=True)
        self.output = layers.Dense(len(TAGS))
        self.padded(*(tf.zeros([1, *shape], tf.int32) for shape in ((1,), (1, 1))))  # builds them
        self.of_sentence = _of_sentence(self, width)

    @property
    def weights(self) -> list[tf.Variable]:
        """All of them."""
        parts = (self.words, self.letters, self.spelling, self.forward, self.backward, self.output)
        return [weight.value for part in parts for weight in part.trainable_weights]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, *shape], tf.int32) for shape in ((TOKENS,), (TOKENS, LETTERS), (TOKENS,), ())
        ]
    )
    def scores(self, words: tf.Tensor, letters: tf.Tensor, sizes: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Scores of all tags, `[sentences, TOKENS, TAGS]`, 0 behind the end: what is saved."""
        return self.of_sentence(words, letters, sizes, length)

    def padded(self, words: tf.Tensor, letters: tf.Tensor) -> tf.Tensor:
        """The same for `[sentences, tokens]`, `[sentences, tokens, letters]`, masked; of padding it gives anything."""
        shape = tf.shape(letters)
        flat = tf.reshape(letters, [-1, shape[2]])
        spelt = self.spelling(self.letters(flat), mask=flat > 0)
        x = tf.concat([self.words(words), tf.reshape(spelt, [shape[0], shape[1], spelt.shape[1]])], 2)
        before = self.forward(x, mask=words > 0)
        after = tf.reverse(self.backward(x, mask=words > 0), [1])
        return self.output(tf.concat([before, after], 2))


def _of_sentence(model: Tagger, width: int) -> Any:
    """The model for one sentence, batched; the layers are Keras's, which want a leading axis."""
    spelling, forward, backward = (part.cell for part in (model.spelling, model.forward, model.backward))
    words_of, letters_of, output = model.words, model.letters, model.output

    def step(cell, x, state):
        return cell(x[tf.newaxis], state)[1]

    @pcbatch.autobatch
    def of_sentence(words, letters, sizes, length):
        read, before = tf.zeros([TOKENS, width // 2 + width // 4]), tf.zeros([TOKENS, width])
        h, c = tf.zeros([1, width]), tf.zeros([1, width])
        for t in range(length):
            spelt, memory = tf.zeros([1, width // 4]), tf.zeros([1, width // 4])
            for k in range(sizes[t]):
                spelt, memory = step(spelling, letters_of(letters[t, k]), [spelt, memory])
            read[t] = tf.concat([words_of(words[t]), spelt[0]], 0)
            h, c = step(forward, read[t], [h, c])
            before[t] = h[0]
        scores = tf.zeros([TOKENS, len(TAGS)])
        h, c = tf.zeros([1, width]), tf.zeros([1, width])
        for t in range(length - 1, -1, -1):
            h, c = step(backward, read[t], [h, c])
            scores[t] = output(tf.concat([before[t][tf.newaxis], h], 1))[0]
        return scores

    return of_sentence


Scores = Callable[[Sentences], tf.Tensor]


def ours(model: Tagger) -> Scores:
    """Scores by the model for one sentence."""
    return lambda some: model.of_sentence(some.words, some.letters, some.sizes, some.length)


def twin(model: Tagger) -> Scores:
    """Scores by the padded model, compiled by TensorFlow, padded no further than a batch needs."""
    compiled = tf.function(
        model.padded, input_signature=[tf.TensorSpec([None] * rank, tf.int32) for rank in (2, 3)], autograph=False
    )

    def scores(some: Sentences) -> tf.Tensor:
        tokens, letters = some.length.max(), some.sizes.max()
        found = compiled(some.words[:, :tokens], some.letters[:, :tokens, :letters])
        return tf.pad(found, [[0, 0], [0, TOKENS - tokens], [0, 0]])

    return scores


def train(name: str, model: Tagger, scores: Scores, sentences: Sentences, epochs: int, batch: int) -> list[float]:
    """Minimise the cross-entropy by token; returns that of each step."""
    optimizer = keras.optimizers.Adam(0.005)
    random = np.random.default_rng(1)
    losses: list[float] = []
    with tqdm(total=epochs * (len(sentences.length) // batch), desc=name, unit="step") as bar:
        for _ in range(epochs):
            for some in sentences.batches(batch, random):
                inside = np.arange(TOKENS) < some.length[:, np.newaxis]
                with tf.GradientTape() as tape:
                    by_token = tf.nn.sparse_softmax_cross_entropy_with_logits(some.tags, scores(some))
                    loss = tf.reduce_sum(tf.where(inside, by_token, 0.0)) / inside.sum()
                gradients = tape.gradient(loss, model.weights)
                # The twin's gradient of a table has a row for each look-up; Keras's Adam squares these, not their sum.
                gradients = [tf.convert_to_tensor(each) for each in gradients]
                optimizer.apply_gradients(zip(gradients, model.weights, strict=True))
                losses.append(float(loss))
                bar.update()
                bar.set_postfix(loss=f"{np.mean(losses[-20:]):.3f}")
    return losses


def judged(scores: np.ndarray, sentences: Sentences) -> tuple[float, float]:
    """Accuracy by token, and F1 by entity: one is found if its first word, its last word and its kind are."""
    inside = np.arange(TOKENS) < sentences.length[:, np.newaxis]
    found = np.argmax(scores, 2)
    one, other = entities(np.where(inside, found, 0)), entities(sentences.tags)
    return float(np.mean((found == sentences.tags)[inside])), 2 * len(one & other) / max(len(one) + len(other), 1)


def entities(tags: np.ndarray) -> set[tuple[int, int, int, int]]:
    """Neighbours of one kind: their sentence, first word, the word behind their last, and kind."""
    found = set()
    for row, sentence in enumerate(np.pad(tags, [(0, 0), (0, 1)])):
        edges = [0, *(np.flatnonzero(np.diff(sentence)) + 1)]
        found |= {(row, start, end, int(sentence[start])) for start, end in pairwise(edges) if sentence[start]}
    return found


def draw(losses: dict[str, list[float]], path: Path) -> None:
    """A picture of the losses, each the mean of the last 20 steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    styles = ({"color": "tab:blue"}, {"color": "tab:orange", "linestyle": "--"})
    for (name, each), style in zip(losses.items(), styles, strict=True):
        axes.plot([np.mean(each[max(0, end - 20) : end]) for end in range(1, len(each) + 1)], label=name, **style)
    axes.set(xlabel="step", ylabel="cross-entropy by token", title="A tagger and its padded twin", ylim=(0, None))
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main(arguments: list[str] | None = None) -> None:
    """Train both, compare, draw, save, load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("PCBATCH_DATA", ".")) / FILE)
    parser.add_argument("--sentences", type=int, default=1300, help="how many to train on")
    parser.add_argument("--held-out", type=int, default=396)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=100, help="of an LSTM over words")
    parser.add_argument("--out", type=Path, default=Path("out/tagger"))
    options = parser.parse_args(arguments)
    if not options.data.is_file():
        parser.error(f"there is no {options.data}; --data or PCBATCH_DATA says where Wikigold is")
    if options.batch > options.sentences:
        parser.error(f"a batch of {options.batch} is more than there are sentences")

    sentences, held_out, words, letters = read(options.data, options.sentences, options.held_out)
    losses, taggers = {}, {}
    for name, how in (("pcbatch", ours), ("padded Keras twin", twin)):
        model = taggers[name] = Tagger(words, letters, options.width)
        scores = how(model)
        started, cpu = time.perf_counter(), time.process_time()
        losses[name] = train(name, model, scores, sentences, options.epochs, options.batch)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        accuracy, f1 = judged(scores(held_out).numpy(), held_out)
        print(f"{name:>18}: {seconds:.0f} s ({cpu:.0f} of CPU), loss {np.mean(losses[name][-20:]):.4f}; ", end="")
        print(f"{len(held_out.length)} other sentences: accuracy {accuracy:.3f}, F1 {f1:.3f}")

    model = taggers["pcbatch"]
    expected = model.scores(*held_out[:4]).numpy()
    tf.saved_model.save(model, str(options.out / "model"))
    again = tf.saved_model.load(str(options.out / "model"))
    print(f"saved, loaded again, equal: {np.array_equal(again.scores(*held_out[:4]).numpy(), expected)}")
    draw(losses, options.out / "loss.png")
    print(f"model: {options.out / 'model'}\npicture: {options.out / 'loss.png'}")


if __name__ == "__main__":
    main()
