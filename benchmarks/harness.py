"""The one tool behind all figures: contestants timed in turn, their results compared, the figures kept as JSON.

On a shared machine absolute times drift, so contestants take turns within each repeat and what counts is the ratio of
medians. The first call of each (tracing, compiling, running) is timed apart; its result must agree with the others'.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

Contestant = Callable[[], Any]


@dataclass(frozen=True)
class Timing:
    """Seconds of one contestant: its first call, every later one, their median, and that divided by the baseline's."""

    first: float
    seconds: tuple[float, ...]
    median: float
    ratio: float


def measure(
    contestants: Mapping[str, Contestant],
    *,
    repeats: int = 7,
    rtol: float | None = 0.0,
    atol: float = 0.0,
    budget: float = math.inf,
    failed: dict[str, str] | None = None,
    once: Collection[str] = (),
) -> dict[str, Timing]:
    """Time the contestants, interleaved; the first named is the baseline of the ratios.

    Args:
        contestants: name to a call that computes its result to the end (a nested structure of arrays).
        repeats: timed calls of each, after the first; every repeat starts with another contestant.
        rtol: relative tolerance within which all results must agree with the baseline's; None compares nothing, for
            contestants that compute different things.
        atol: absolute tolerance of that comparison.
        budget: seconds of timed calls after which a contestant makes no more.
        once: those that compile nothing and take long: their first call is the one that counts.
        failed: where the reasons are put of those whose first call fails, which take no more part; None lets it fail.

    Raises:
        AssertionError: if two contestants disagree.
    """
    first, results = {}, {}
    for name, contestant in contestants.items():
        try:
            first[name], results[name] = _timed(contestant)
        except Exception as error:
            if failed is None:
                raise
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0].split(" {")[0][:200]
    names = list(first)
    if rtol is not None:
        for name in names[1:]:
            _assert_same(results[names[0]], results[name], rtol, atol, f"{names[0]} and {name} disagree")
    seconds: dict[str, list[float]] = {name: [first[name]] if name in once else [] for name in names}
    for repeat in range(repeats):
        start = repeat % len(names)
        for name in names[start:] + names[:start]:
            if sum(seconds[name]) < budget and name not in once:
                seconds[name].append(_timed(contestants[name])[0])
    medians = {name: statistics.median(seconds[name]) for name in names}
    return {
        name: Timing(first[name], tuple(seconds[name]), medians[name], medians[name] / medians[names[0]])
        for name in names
    }


def paired(base: Timing, other: Timing) -> float:
    """The median of the ratios of calls in the same repeat, `other` in terms of `base`."""
    return statistics.median(b / a for a, b in zip(base.seconds, other.seconds, strict=True))


def _timed(contestant: Contestant) -> tuple[float, Any]:
    started = time.perf_counter()
    result = contestant()
    return time.perf_counter() - started, result


def _assert_same(expected: Any, actual: Any, rtol: float, atol: float, message: str) -> None:
    if isinstance(expected, dict):
        assert expected.keys() == actual.keys(), message
        for key, value in expected.items():
            _assert_same(value, actual[key], rtol, atol, message)
    elif isinstance(expected, tuple | list):
        assert len(expected) == len(actual), message
        for one, other in zip(expected, actual, strict=True):
            _assert_same(one, other, rtol, atol, message)
    else:
        np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol, atol=atol, err_msg=message)


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, help="timed calls of each contestant")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    return parser


def load() -> float:
    """How many threads want a core, in the mean of a minute: those of other programs, if asked before anything runs."""
    return os.getloadavg()[0]


def device() -> str:
    """The GPU that TensorFlow computes on, or the cores, by their names."""
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):
        return f"a GPU ({tf.config.experimental.get_device_details(gpu).get('device_name', 'of no name')})"
    names = re.findall(r"^model name\s*:\s*(.*)$", _read(Path("/proc/cpuinfo")), re.MULTILINE)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores ({names[0] if names else platform.machine()})"


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def origin(before: float, packages: tuple[str, ...] = ("pcbatch", "tensorflow")) -> str:
    """A paragraph for a page of figures: what gave them, and what else the machine was doing (`load` before)."""
    versions = ", ".join(f"{name} {_version(name)}" for name in packages)
    return (
        f"Measured by `{_called()}` on {os.cpu_count()} cores ({platform.machine()}) with Python "
        f"{platform.python_version()}, {versions}. The load average of the machine was {before:.1f} before it began "
        f"and {load():.1f} at its end, itself included."
    )


def write_page(path: Path, lines: list[str]) -> None:
    """Write a page of Markdown, its folder made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def write_json(path: Path, figures: Any, packages: tuple[str, ...] = ("pcbatch", "tensorflow", "numpy")) -> None:
    """Write `figures` (Timings in any structure) with the command, the versions and the machine that gave them."""
    record = {
        "command": _called(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in packages}},
        "machine": {"system": platform.system(), "architecture": platform.machine(), "cpus": os.cpu_count()},
        "figures": figures,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, default=_plain)
    path.write_text(re.sub(r"\[[^][{}]*\]", lambda row: " ".join(row[0].split()), text) + "\n")  # numbers in a row
    print(f"wrote {path}")


def _called() -> str:
    """The command that is running."""
    return " ".join(["python", *map(shlex.quote, _command())])


def _command() -> list[str]:
    """The arguments after the interpreter's name, `-m module` where the program was started so."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return (["-m", spec.name.removesuffix(".__main__")] if spec else sys.argv[:1]) + sys.argv[1:]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
