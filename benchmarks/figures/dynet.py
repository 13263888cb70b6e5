"""DyNet's figures: automatic batches beside batches by hand, both, and none, in networks over sentences and trees.

    python -m benchmarks.figures.dynet [--tasks "TreeLSTM" ..] [--small] [--repeats 5] [--folder docs/figures]

Neubig, Goldberg, Dyer, "On-the-fly Operation Batching in Dynamic Computation Graphs", NIPS 2017: figure 2, the time by
phase of a BiLSTM tagger's step; table 1, four tasks (with characters in two forms: for all words, which has a padded
twin, and for rare words alone); figure 3, a TreeLSTM by the number of trees, batched by depth as in Fold, by agenda as
in DyNet, and by program counters. All is on one thread, and results and gradients are compared. Tasks on sentences of
Wikigold and of UD English need PCBATCH_DATA. Writes dynet.md, dynet_phases.png and dynet.png.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.figures import curves, pages, pictures
from benchmarks.figures.curves import ALONE, OURS, Cells, Task
from benchmarks.harness import Contestant, load
from benchmarks.training.contestants import by_hand_steps
from benchmarks.training.losses import targets
from benchmarks.trees.contestants import one_thread
from benchmarks.trees.contestants.pcbatch_batched import HEADS, NETWORKS
from benchmarks.trees.contestants.worker import Job
from benchmarks.trees.networks import TRAINED, data

NAME = "dynet"
PAPER = (
    "Neubig, Goldberg, Dyer, [On-the-fly Operation Batching in Dynamic Computation Graphs]"
    "(https://arxiv.org/abs/1705.07860), NIPS 2017"
)
HAND, BOTH, DEPTH, AGENDA = "by hand", "by hand + automatic", "by depth", "by agenda"
PHASES = ("building", "scheduling", "forward", "backward", "update")
SEED = 1


@dataclass(frozen=True)
class Model:
    """A batched function on a batch, and how it is trained: the loss of what it gives, the variables.

    `hand` has the same by hand: what it gives, and the gradients of all variables. `both` is the function with what is
    easily batched by hand so batched.
    """

    function: Any
    given: Sequence[Any]
    lanes: int
    loss: Callable[[Any], tf.Tensor]
    variables: Sequence[tf.Variable]
    hand: tuple[Callable[[], Any], Callable[[], Sequence[Any]]] | None = None
    both: Any = None
    padded: Callable[[], Any] | None = None
    """The first work of `hand`: arrays of the sentences."""

    def inference(self) -> Mapping[str, Contestant | str]:
        """The contestants without gradients."""
        calls: dict[str, Contestant] = {OURS: partial(self._results, self.function)}
        if self.hand:
            calls[HAND] = lambda: np.asarray(self.hand[0]())
        if self.both:
            calls[BOTH] = partial(self._results, self.both)
        for name, strategy in ((DEPTH, "depth"), (AGENDA, "agenda")):
            calls[name] = partial(self._results, self.function.options(strategy=strategy))
        calls[ALONE] = lambda: np.stack(curves.one_by_one(self.function, self.given, self.lanes))
        return {**_missing(self, "the example has no batches by hand"), **calls}

    def training(self) -> Mapping[str, Contestant | str]:
        """The contestants with gradients."""
        calls: dict[str, Contestant] = {OURS: partial(self._gradients, self.batched)}
        if self.hand:
            calls[HAND] = lambda: _comparable(self.hand[1]())
        if self.both:
            calls[BOTH] = partial(self._gradients, lambda: self.both(*self.given))
        calls[ALONE] = partial(self._gradients, self.alone)
        return {**_missing(self, "the example has no batches by hand"), **calls}

    def batched(self) -> Any:
        """The results of the batch."""
        return self.function(*self.given)

    def alone(self) -> Any:
        """The results of one example after another."""
        return tf.stack(curves.one_by_one(self.function, self.given, self.lanes))

    def _results(self, function: Any) -> np.ndarray:
        return np.asarray(function(*self.given))

    def _gradients(self, call: Callable[[], Any]) -> list[Any]:
        with tf.GradientTape() as tape:
            loss = self.loss(call())
        return _comparable(tape.gradient(loss, self.variables))


def _missing(model: Model, why: str) -> dict[str, str]:
    """Reasons, for those who have no form by hand."""
    return {name: why for name, there in ((HAND, model.hand), (BOTH, model.both)) if not there}


def _comparable(gradients: Sequence[Any]) -> list[Any]:
    """The largest element of each gradient, and the gradient in terms of that: to be compared with one tolerance."""
    found: list[Any] = []
    for each in gradients:
        array = np.asarray(tf.convert_to_tensor(each))
        largest = np.abs(array).max()
        found += [largest, array / (largest + 1e-30)]
    return found


@cache
def compiled(name: str, width: int) -> tuple[Any, dict[str, tf.Variable], Any, Any, Any]:
    """A network of `benchmarks.training`: what it is, its weights, batched, with heads by hand, and all by hand."""
    described = replace(TRAINED[name], width=width)
    arrays = described.weights()
    variables = {key: tf.Variable(each) for key, each in arrays.items()}
    both = HEADS[described.cell](variables) if described.cell in HEADS else None
    by_hand = by_hand_steps.prepare(Job(described, arrays, described.batch(1, SEED)))
    return described, variables, NETWORKS[described.cell](variables), both, by_hand


def network(name: str, width: int, lanes: int) -> Model:
    """A network of `benchmarks.training`, which has gradients by hand."""
    described, variables, function, both, by_hand = compiled(name, width)
    batch = described.batch(lanes, SEED)
    aim = targets(described, batch)

    def gradients() -> list[Any]:
        found = by_hand.gradients(by_hand.step(batch, aim))
        return [found[key] for key in variables]

    def padded() -> Any:
        return by_hand_steps.padded(batch)

    return Model(
        function,
        [*batch.values()],
        lanes,
        lambda results: tf.nn.l2_loss(results - aim) / lanes,
        [*variables.values()],
        (lambda: by_hand.inference(batch, aim), gradients),
        both,
        padded if described.cell == "tagger" else None,
    )


def with_letters(width: int, lanes: int) -> Model:
    """`examples/training/tagger.py`, whose padded twin is by hand."""
    module = curves.example("training/tagger")
    some, _, words, letters = module.read(data(str(module.FILE)), lanes, 1)
    model = module.Tagger(words, letters, width)
    inside = np.arange(module.TOKENS) < some.length[:, np.newaxis]
    padded = module.twin(model)

    def loss(scores: tf.Tensor) -> tf.Tensor:
        by_token = tf.nn.sparse_softmax_cross_entropy_with_logits(some.tags, scores)
        return tf.reduce_sum(tf.where(inside, by_token, 0.0)) / inside.sum()

    def results() -> tf.Tensor:
        return tf.where(inside[:, :, np.newaxis], padded(some), 0.0)

    def gradients() -> Sequence[Any]:
        with tf.GradientTape() as tape:
            value = loss(padded(some))
        return tape.gradient(value, model.weights)

    given = (some.words, some.letters, some.sizes, some.length)
    return Model(model.of_sentence, given, lanes, loss, model.weights, (results, gradients))


def small_example(name: str, width: int, lanes: int) -> Model:
    """One of the small models of `examples/training`, which give losses."""
    module = curves.example(f"training/{name}")
    loss, variables = module.model(width)
    return Model(loss, module.examples(np.random.default_rng(0), lanes), lanes, tf.reduce_mean, variables)


@dataclass(frozen=True)
class Entry:
    """A task of table 1: what it is, its model by width and number of examples, and the data that it needs."""

    said: str
    model: Callable[[int, int], Model]
    width: int
    data: str = ""


ENTRIES = {
    "BiLSTM tagger": Entry(
        "a tagger on sentences of 1 to 64 words, `benchmarks.trees`", partial(network, "tagger"), 256
    ),
    "BiLSTM with characters": Entry(
        "`examples/training/tagger.py`, which reads the letters of all words",
        with_letters,
        128,
        "wikigold/wikigold_word_tag.txt",
    ),
    "with characters of rare words": Entry(
        "`examples/training/rare_words.py`, the paper's form",
        partial(small_example, "rare_words"),
        128,
        "wikigold/wikigold_word_tag.txt",
    ),
    "TreeLSTM": Entry(
        "a binary one on trees of 2 to 15 leaves, `benchmarks.trees`", partial(network, "small trees"), 128
    ),
    "transition parser": Entry(
        "`examples/training/transition_parser.py`, which follows its own choices",
        partial(small_example, "transition_parser"),
        128,
        "ud_ewt/train_subset.conllu",
    ),
}


def phases(model: Model, repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds of each phase of a step, by contestant: medians."""
    optimizer = keras.optimizers.Adam(0.0)  # the weights stay, so that all steps are the same

    def taped(call: Callable[[], Any]) -> dict[str, float]:
        with tf.GradientTape() as tape:
            (loss, forward) = _timed(lambda: _done(model.loss(call())))
        gradients, backward = _timed(lambda: [_done(each) for each in tape.gradient(loss, model.variables)])
        _, update = _timed(lambda: optimizer.apply_gradients(zip(gradients, model.variables, strict=True)))
        return {"forward": forward, "backward": backward, "update": update}

    def by_hand() -> dict[str, float]:
        assert model.hand is not None
        assert model.padded is not None
        _, scheduling = _timed(model.padded)
        _, inference = _timed(model.hand[0])
        gradients, step = _timed(lambda: [*map(tf.convert_to_tensor, model.hand[1]())])
        _, update = _timed(lambda: optimizer.apply_gradients(zip(gradients, model.variables, strict=True)))
        return {
            "scheduling": scheduling,
            "forward": max(0.0, inference - scheduling),
            "backward": max(0.0, step - inference),
            "update": update,
        }

    def on_the_fly(strategy: str) -> dict[str, float]:
        found = model.function.options(strategy=strategy).run(*model.given).phases
        return {"building": found["building"], "scheduling": found["scheduling"], "forward": found["executing"]}

    ways: dict[str, Callable[[], dict[str, float]]] = {
        ALONE: partial(taped, model.alone),
        HAND: by_hand,
        DEPTH: partial(on_the_fly, "depth"),
        AGENDA: partial(on_the_fly, "agenda"),
        OURS: partial(taped, model.batched),
        BOTH: partial(taped, lambda: model.both(*model.given)),
    }
    found: dict[str, dict[str, float]] = {}
    for name, way in ways.items():
        if name != ALONE:
            way()  # compiles
        every = [way() for _ in range(repeats if name != ALONE else 1)]
        found[name] = {
            phase: 1e3 * statistics.median(each[phase] for each in every) for phase in PHASES if phase in every[0]
        }
        print(f"{name}: {', '.join(f'{phase} {each:.1f} ms' for phase, each in found[name].items())}", flush=True)
    return found


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    found = call()
    return found, time.perf_counter() - started


def _done(tensor: Any) -> Any:
    """The tensor, once it is computed."""
    tensor = tf.convert_to_tensor(tensor)
    tensor.numpy()
    return tensor


def page(
    found: Mapping[str, Mapping[str, float]],
    tables: Mapping[str, Mapping[str, Cells]],
    trees: Mapping[str, Cells],
    panels: Sequence[Task],
    lanes: int,
    measured: str,
) -> list[str]:
    """The parts of the page: figure 2, table 1 (inference, training), figure 3."""
    rows = {
        name: [f"{each[phase]:.1f}" if phase in each else "" for phase in PHASES] + [f"{sum(each.values()):.1f}"]
        for name, each in found.items()
    }
    parts = [
        "# Batches of sentences and trees, by hand and automatic",
        pages.paragraph(
            f"`python -m benchmarks.figures.{NAME}` writes this page: figure 2, table 1 and figure 3 of {PAPER}. "
            "All is measured anew on one thread. *Sequential* is `f.single`, one example after another. *By hand* is "
            "TensorFlow with padded sentences, or trees level by level. *By depth* and *by agenda* are batching on the "
            'fly as in Fold and in DyNet, `strategy="depth"` and `"agenda"`. In brackets is pcbatch\'s speed over it: '
            "above 1 pcbatch is faster. All results and gradients are compared."
        ),
        measured,
    ]
    if found:
        parts += [
            "## Time by phase",
            pages.paragraph(
                f"Milliseconds of a step of the BiLSTM tagger on {lanes} sentences (figure 2). By program counters "
                "nothing is built or scheduled before the run. What is batched on the fly has a forward pass only: "
                "under a tape it is pcbatch's own program that runs."
            ),
            f"![Milliseconds by phase]({NAME}_phases.png)",
            pages.table([*PHASES, "all"], rows),
        ]
    if any(tables.values()):
        parts += [
            "## Tasks",
            pages.paragraph(f"Examples per second in batches of {lanes} (table 1)."),
            pages.points([f"{name}: {entry.said}" for name, entry in ENTRIES.items()]),
        ]
    for kind, table in tables.items():
        said = {line for cells in table.values() for part in curves.reasons(cells) for line in part.splitlines()}
        parts += (
            [f"### {kind.capitalize()}", curves.table(table), *(["\n".join(sorted(said))] if said else [])]
            if table
            else []
        )
    if trees:
        parts += [
            f"![Trees per second by number of trees in a batch]({NAME}.png)",
            *(part for task in panels if task.name in trees for part in curves.section(task, trees[task.name])),
        ]
    return parts


def main() -> None:
    """Measure, draw, write."""
    parser = curves.arguments(__doc__)
    parts = ["phases", *ENTRIES, "trees"]
    parser.add_argument("--tasks", nargs="+", choices=parts, default=parts, metavar="task", help=", ".join(parts))
    options = parser.parse_args()
    one_thread.keep()
    before, lanes = load(), 2 if options.small else 64

    def width(name: str) -> int:
        return 16 if options.small else ENTRIES[name].width

    found = {}
    if "phases" in options.tasks:
        model = network("tagger", width("BiLSTM tagger"), lanes)
        found = phases(model, options.repeats)
        pictures.save_bars(
            options.folder / f"{NAME}_phases.png",
            found,
            PHASES,
            title=f"BiLSTM tagger of {width('BiLSTM tagger')}, {lanes} sentences",
            xlabel="milliseconds of a step",
        )
    tables: dict[str, dict[str, Cells]] = {"inference": {}, "training": {}}
    for name in (each for each in ENTRIES if each in options.tasks):
        if ENTRIES[name].data and not data(ENTRIES[name].data).is_file():
            print(f"{name}: left out, as PCBATCH_DATA has no {ENTRIES[name].data}")
            continue
        model = ENTRIES[name].model(width(name), lanes)
        for kind, made in (("inference", model.inference), ("training", model.training)):
            if options.small and kind == "training" and "characters" in name:
                continue  # which takes a minute to compile
            task = Task(f"{name}, {kind}", "", [lanes], lambda _, made=made: made(), "examples")
            tables[kind][name] = curves.measured(task, options)
    panels = trees(options)
    grown = {task.name: curves.measured(task, options) for task in panels} if "trees" in options.tasks else {}
    if grown:
        curves.save_panels(options.folder / f"{NAME}.png", [curves.panel(task, grown[task.name]) for task in panels])
    figures = {"phases": found, **{kind: curves.plain(table) for kind, table in tables.items()}, **curves.plain(grown)}
    curves.write(NAME, options, page(found, tables, grown, panels, lanes, curves.standing(options, before)), figures)


def trees(options: argparse.Namespace) -> list[Task]:
    """Figure 3: a TreeLSTM by the number of trees."""
    sizes, width = ((1, 8), 16) if options.small else ((1, 4, 16, 64, 256), 128)
    said = f"A binary TreeLSTM of {width} on trees of 2 to 15 leaves, by the number of trees (figure 3)."
    make = partial(network, "small trees", width)

    def there(made: Mapping[str, Contestant | str]) -> Mapping[str, Contestant | str]:
        return {name: each for name, each in made.items() if not isinstance(each, str)}

    fewer = sizes if options.small else sizes[:-1]
    return [
        Task("a TreeLSTM's results", said, sizes, lambda lanes: there(make(lanes).inference()), "trees"),
        Task("a TreeLSTM's gradients", said, fewer, lambda lanes: there(make(lanes).training()), "trees"),
    ]


if __name__ == "__main__":
    main()
