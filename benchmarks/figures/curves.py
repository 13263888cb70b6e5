"""Common parts of the commands that draw the papers' figures: tasks over a row of sizes, a picture, a page.

A task has contestants, which `harness.measure` times in turn and compares. What they compute is that of an example of
`examples/`, so that a figure is of a program that people read.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pcbatch
from benchmarks import harness
from benchmarks.figures import pages
from benchmarks.figures.pictures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Curve, Panel, Style
from benchmarks.figures.pictures import save_panels as save_panels
from benchmarks.harness import Contestant, Timing

ROOT = Path(__file__).resolve().parents[2]
OURS, AUTO, ALONE = "pcbatch", "pcbatch, jit=auto", "sequential"
STYLES = {
    OURS: Style(BLUE, "o"),
    AUTO: Style(SKY, "P", ":"),
    ALONE: Style(GREY, "x"),
    "tf.while_loop": Style(GREY, "v", "--"),
    "tf.vectorized_map": Style(ORANGE, "s"),
    "tf.vectorized_map, XLA": Style(RED, "^"),
    "by hand": Style(GREEN, "s"),
    "by hand + automatic": Style(SKY, "P", ":"),
    "by depth": Style(ORANGE, "v", "--"),
    "by agenda": Style(RED, "^", "--"),
    "same shapes": Style(SKY, "D"),
    "different shapes": Style(BLUE, "o"),
    "one tree at a time": Style(BLACK, "x"),
    "pcbatch, forks": Style(PURPLE, "P"),
}
"""All contestants, in the order of tables."""


@dataclass(frozen=True)
class Task:
    """A row of sizes; `contestants(size)` has calls by name, or the reason why there is none. `said` is on the page."""

    name: str
    said: str
    sizes: Sequence[int]
    contestants: Callable[[int], Mapping[str, Contestant | str]]
    unit: str = "examples"


Cell = dict[str, Timing | str]
"""Timings by name, or reasons."""
Cells = dict[int, Cell]


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options of all of these commands."""
    parser = harness.arguments(description)
    parser.set_defaults(repeats=5)
    parser.add_argument("--small", action="store_true", help="small sizes, two minutes in all: to try the command")
    parser.add_argument(
        "--limit", type=float, default=20.0, help="seconds of a call, above which there is no larger one"
    )
    parser.add_argument("--folder", type=Path, default=pages.FOLDER, help="of the page and the pictures")
    return parser


def measured(task: Task, options: argparse.Namespace) -> Cells:
    """Timings of all contestants, by size; who takes too long for the next one has the reason there.

    Raises:
        AssertionError: if two contestants disagree.
    """
    cells: Cells = {}
    gone: dict[str, str] = {}
    for place, size in enumerate(task.sizes):
        made = dict(task.contestants(size))
        calls = {name: call for name, call in made.items() if not isinstance(call, str) and name not in gone}
        timings = harness.measure(
            calls,
            repeats=options.repeats,
            rtol=2e-3,
            atol=2e-3,
            budget=options.limit,
            failed=gone,
            once=(ALONE,),
        )
        cells[size] = {name: timings.get(name) or gone.get(name) or str(made[name]) for name in made}
        print(f"{task.name}, {size:,}: {printed(cells[size], size)}", flush=True)
        larger = task.sizes[place + 1] / size if place + 1 < len(task.sizes) else 1.0
        for name, timing in timings.items():
            if timing.median * larger > options.limit:
                gone[name] = f"a call takes {timing.median:.1f} s with {size:,} {task.unit}, so it makes no larger one"
    return cells


def table(found: Mapping[str, Cells]) -> str:
    """A table of tasks of one size each: examples per second, a column for each contestant."""
    cells = {name: next(iter(each.items())) for name, each in found.items()}
    names = [name for name in STYLES if any(name in cell for _, cell in cells.values())]
    rows = {task: [_against(cell, name, size) for name in names] for task, (size, cell) in cells.items()}
    return pages.table(names, rows, "task")


def reasons(cells: Cells) -> list[str]:
    """A list of those who are not there, and why; empty if there is nobody."""
    found = (f"{name}: {each}." for cell in cells.values() for name, each in cell.items() if isinstance(each, str))
    every = [*dict.fromkeys(found)]
    return [pages.points(every)] if every else []


def each_of(argument: Any, lane: int) -> Any:
    """One example of an argument: a tree, a row of its own length, an element."""
    if isinstance(argument, pcbatch.Ragged):
        return argument.values[lane][: argument.length[lane]]
    return argument.of_lane(lane) if hasattr(argument, "of_lane") else argument[lane]


def one_by_one(function: Any, given: Sequence[Any], lanes: int) -> list[Any]:
    """The results of a batched function for each example by itself: the sequential loop."""
    return [function.single(*(each_of(argument, lane) for argument in given)) for lane in range(lanes)]


def printed(cell: Cell, size: int) -> str:
    """A cell in a line."""
    return ", ".join(
        f"{name} {shown(size / t.median) if isinstance(t, Timing) else '--'}/s" for name, t in cell.items()
    )


def shown(rate: float) -> str:
    """A number of three digits.

    >>> [shown(each) for each in (0.1234, 12.34, 1234.5, 1234567.0)]
    ['0.12', '12', '1.2k', '1235k']
    """
    if rate >= 1e5:
        return f"{rate / 1e3:.0f}k"
    if rate >= 1e3:
        return f"{rate / 1e3:.1f}k"
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"


def names_of(cells: Cells) -> list[str]:
    """The contestants, in the order of `STYLES`."""
    found = {name for cell in cells.values() for name in cell}
    return [name for name in STYLES if name in found]


def panel(task: Task, cells: Cells) -> Panel:
    """The curves of a task."""
    curves = []
    for name in names_of(cells):
        points = {size: size / t.median for size, cell in cells.items() if isinstance(t := cell.get(name), Timing)}
        if points:
            curves.append(Curve(name, STYLES[name], [*points], [*points.values()]))
    return Panel(task.name, f"{task.unit} in a batch", f"{task.unit} per second", curves, formatted=shown)


def section(task: Task, cells: Cells) -> list[str]:
    """The parts of a page on a task: what it is, a table, and who is not there."""
    rows = {
        name: [_against(cells[size], name, size) for size in cells] + [_first(cells, name)] for name in names_of(cells)
    }
    heads = [*(f"{size:,}" for size in cells), "first call, s"]
    return [
        f"## {task.name[0].upper()}{task.name[1:]}",
        pages.paragraph(task.said),
        pages.table(heads, rows, task.unit),
        *reasons(cells),
    ]


def _against(cell: Cell, name: str, size: int) -> str:
    timing, ours = cell.get(name), cell.get(OURS)
    if not isinstance(timing, Timing):
        return "--"
    if name == OURS or not isinstance(ours, Timing):
        return shown(size / timing.median)
    ratio = timing.median / ours.median
    return (
        f"{shown(size / timing.median)} ({ratio:.2f})" if ratio < 10 else f"{shown(size / timing.median)} ({ratio:.0f})"
    )


def _first(cells: Cells, name: str) -> str:
    """The longest first call."""
    firsts = [t.first for cell in cells.values() if isinstance(t := cell.get(name), Timing)]
    return f"{max(firsts):.1f}" if firsts else "--"


def standing(options: argparse.Namespace, before: float) -> str:
    """A paragraph on what was measured where; of a small run with what that is worth."""
    said = f"{harness.origin(before)} TensorFlow computes on {harness.device()}."
    if options.small:
        said += (
            " **This is a small run** (`--small`), which shows that the command works and who agrees. Sizes are small, "
            "and other work was done on the machine. Take no ratio from it: without `--small` the command measures "
            "large ones."
        )
    return pages.paragraph(said)


def write(name: str, options: argparse.Namespace, parts: Sequence[str], figures: Any) -> None:
    """Write the page, and the figures where the options say."""
    pages.write(name, parts, options.folder)
    if options.json:
        harness.write_json(options.json, figures)


def plain(found: Mapping[str, Cells]) -> dict[str, Any]:
    """Figures for JSON."""
    return {
        task: {
            size: {name: asdict(each) if isinstance(each, Timing) else each for name, each in cell.items()}
            for size, cell in cells.items()
        }
        for task, cells in found.items()
    }


def example(name: str) -> ModuleType:
    """A module of `examples/`, such as "training/rare_words"; its folder is where it finds its neighbours."""
    path = ROOT / "examples" / f"{name}.py"
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    if path.stem in sys.modules:
        return sys.modules[path.stem]
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    found = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = found  # where dataclasses look
    specification.loader.exec_module(found)
    return found
