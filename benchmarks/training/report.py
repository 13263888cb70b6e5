"""The tables and the picture: thousands of leaves or tokens per CPU second of training, what its parts take, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.figures.pictures import BLUE, GREEN, PURPLE, RED, SKY, Style
from benchmarks.harness import table
from benchmarks.training.crew import Cell, Figures
from benchmarks.trees.networks import TRAINED
from benchmarks.trees.report import missing, speeds

Found = dict[str, Mapping[int, Cell]]
"""Cells by network and number of examples."""
Memory = Mapping[str, Sequence[int]]
"""Bytes by policy, at each length."""

STYLES = {
    "pcbatch": Style(BLUE, "o"),
    "pcbatch, forks": Style(BLUE, "P", ":"),
    "pcbatch, replay": Style(SKY, "D", "--"),
    "by hand + automatic": Style(BLUE, "x", ":"),
    "by hand": Style(GREEN, "s"),
    "JAX": Style(PURPLE, "v"),
    "DyNet, agenda": Style(RED, "^"),
}
PICTURED = "training.png"
KIND = {
    "binary": "a binary TreeLSTM of {width}",
    "lstm": "an LSTM of {inputs} to {width}",
    "tagger": "a BiLSTM tagger of {width}",
}


def line(network: str, examples: int, cell: Cell) -> str:
    """One cell: thousands per CPU second of each contestant, and its step over its inference."""
    shown = (f"{name} {_shown(each)}" for name, each in cell.items())
    return f"{network:>12}, {examples:>3}  {'   '.join(shown)}"


def _shown(figures: Figures) -> str:
    if figures.rate is None:
        return "--"
    parts = [f"step / inference {_ratio(figures.over('step', 'inference'))}"]
    if "taped" in figures.seconds:
        parts.append(f"taped / plain {_ratio(figures.over('taped', 'inference'))}")
    return f"{figures.rate / 1e3:.1f}k ({', '.join(parts)})"


def _ratio(value: float | None) -> str:
    return "--" if value is None else f"{value:.2f}"


def page(
    found: Found, memory: Memory, lengths: Sequence[int], examples: int, measured: str, cores: int = 1
) -> list[str]:
    """The page, as lines of Markdown."""
    per = "CPU second" if cores == 1 else "second"
    where = "one thread" if cores == 1 else f"{cores} cores"
    said = [
        "# Training",
        "",
        f"![Leaves and tokens per {per} of training by number of examples]({PICTURED})",
        "",
        f"Thousands of leaves or tokens per {per} in a whole training step on {where}, by the number of "
        "examples in a batch. In brackets is pcbatch's speed over it. A step computes results, a loss, and the "
        "gradients of all weights, from arrays in the host's memory. All contestants compute the same gradients.",
        "",
        "- *DyNet* builds its graph in each step.",
        "- *By hand* is TensorFlow. It computes trees level by level, by TensorFlow's kernels, on a schedule that it "
        "makes in each step. It pads and masks sentences under XLA.",
        "- *JAX* is `lax.scan` with masks, for sentences only.",
        "",
        measured,
        "",
    ]
    for network, cells in found.items():
        described = TRAINED[network]
        kind = KIND[described.cell].format(width=described.width, inputs=described.inputs)
        said += [f"## {network[0].upper()}{network[1:]}: {kind}, {described.unit}", "", *speeds(cells), ""]
    said += [
        "## What a step takes beside inference",
        "",
        "CPU time of a step over that of inference, by the number of examples. *Taped* is the forward half of "
        "pcbatch's step. The last columns have the seconds of the first inference and then of the first step, with "
        "tracing and compiling.",
        "",
        *_parts(found),
        "",
    ]
    if memory:
        said += [
            "## Memory",
            "",
            f"Megabytes by which the process grows in a training step of the LSTM on {examples} sentences of equal "
            "length. This is its peak, less its size when all is compiled.",
            "",
            *table(
                ["", *(f"{each} tokens" for each in lengths)],
                [[name, *(f"{each / 2**20:.0f}" for each in sizes)] for name, sizes in memory.items()],
            ),
            "",
        ]
    return [*said, *missing(found)]


def _parts(found: Found) -> list[str]:
    """The table of ratios."""
    numbers = list(dict.fromkeys(examples for cells in found.values() for examples in cells))
    head = ["", "", *(f"step, {each}" for each in numbers), *(f"taped, {each}" for each in numbers)]
    rows = []
    for network, cells in found.items():
        for name in dict.fromkeys(name for cell in cells.values() for name in cell):
            figures = {examples: cell[name] for examples, cell in cells.items() if name in cell}
            ratios = [
                _ratio(figures[each].over(part, "inference")) if each in figures else "--"
                for part in ("step", "taped")
                for each in numbers
            ]
            rows.append([network, name, *ratios, *(_first(figures.values(), part) for part in ("inference", "step"))])
    return table([*head, "first inference, s", "first step, s"], rows)


def _first(figures: Sequence[Figures], part: str) -> str:
    """The longest first call of a part, at whatever number of examples."""
    firsts = [each.firsts[part] for each in figures if part in each.firsts]
    return f"{max(firsts):.1f}" if firsts else "--"
