"""Thousands of short chains against a few long ones: `python -m benchmarks.nuts.many_chains`.

    python -m benchmarks.nuts.many_chains [--repeats 5] [--json FILE] [--markdown docs/figures/many-chains.md]

Two densities whose moments and quantiles are known: twenty correlated normals, and ten independent gammas of shape 2,
sampled by their logarithms. Errors are root mean squares over numbers and runs, in standard deviations of the number.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.harness import arguments, load, origin, table, write_json, write_page
from pcbatch import nuts

CORRELATION, NORMALS, GAMMAS = 0.9, 20, 10
LEVELS = (0.05, 0.95, 0.001, 0.999)
"""Quantiles: two that are always reported, and two in the tails."""
HEAD = ("density", "chains", "warm-up", "draws", "seconds", "mean", "5%, 95%", "0.1%, 99.9%", "largest R-hat")

INTRODUCTION = """\
# What thousands of chains are good for

After the same time, which have the better estimates: {chains} chains of {draws} draws, or 8 of 2,000? The
many chains warm up together (`adapt="pooled"`) for {warmup} trajectories, in {superchains} groups that start at one
point each (`superchains=`). The few warm up for 1,000, each for itself. Moments and quantiles of both densities are
known.

- *Seconds* are those of a whole run, warm-up included, once all is compiled.
- *Errors* are root mean squares over all numbers and {repeats} runs, in standard deviations. They are those of the
  mean, of two quantiles, and of two in the tails.
- *At equal time* errors are multiplied by the root of the seconds.
- *R-hat* is the nested one for many chains, and the largest of all numbers and runs.
"""


@dataclass(frozen=True)
class Known:
    """A density of independent or exchangeable numbers, whose mean, standard deviation and quantiles are known."""

    density: Callable[[Any], Any]
    initial: np.ndarray
    bijectors: Mapping[str, Any]
    mean: float
    deviation: float
    quantiles: tuple[float, ...]


def normals(x: Any) -> Any:
    """An autoregression of variance 1."""
    innovations = x[1:] - CORRELATION * x[:-1]
    return -0.5 * (x[0] ** 2 + tf.reduce_sum(innovations**2) / (1 - CORRELATION**2))


def gammas(x: Any) -> Any:
    """Gammas of shape 2."""
    return tf.reduce_sum(tf.math.log(x) - x)


def normal_quantiles() -> tuple[float, ...]:
    """Of a standard normal."""
    return tuple(float(tf.math.ndtri(np.float64(level))) for level in LEVELS)


def gamma_quantiles() -> tuple[float, ...]:
    """Of a gamma of shape 2, whose distribution function is 1 - (1 + x) exp(-x), by bisection."""
    low, high = np.zeros(len(LEVELS)), np.full(len(LEVELS), 50.0)
    for _ in range(100):
        middle = (low + high) / 2
        below = 1 - (1 + middle) * np.exp(-middle) < LEVELS
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return tuple(low.tolist())


KNOWN = {
    "normals": Known(normals, np.zeros(NORMALS), {}, 0.0, 1.0, normal_quantiles()),
    "gammas": Known(gammas, np.ones(GAMMAS), {"x": nuts.positive}, 2.0, 2.0**0.5, gamma_quantiles()),
}


@dataclass
class Figures:
    """One way to run a density: seconds of each run, errors `[runs][mean, 4 quantiles]`, R-hats."""

    chains: int
    warmup: int
    draws: int
    seconds: list[float] = field(default_factory=list)
    errors: list[list[float]] = field(default_factory=list)
    r_hats: list[float] = field(default_factory=list)

    @property
    def time(self) -> float:
        """The median."""
        return float(np.median(self.seconds))

    def error(self, *columns: int) -> float:
        """The root mean square of the errors of a mean (0) or of quantiles (1 and on)."""
        return float(np.sqrt(np.mean(np.array(self.errors)[:, list(columns)] ** 2)))

    @property
    def shown(self) -> list[float]:
        """The errors of the table's columns."""
        return [self.error(0), self.error(1, 2), self.error(3, 4)]


def measured(known: Known, figures: Figures, repeats: int, **options: Any) -> Figures:
    """Runs with other seeds each, the first of which compiles and is not counted."""
    for seed in range(repeats + 1):
        started = time.perf_counter()
        samples = nuts.sample(
            known.density,
            known.initial,
            bijectors=dict(known.bijectors),
            chains=figures.chains,
            warmup=figures.warmup,
            draws=figures.draws,
            init="uniform",
            seed=seed,
            progress=False,
            **options,
        )
        seconds = time.perf_counter() - started
        if not seed:
            continue
        draws = samples["x"].reshape(-1, known.initial.size)
        found = np.concatenate([draws.mean(axis=0)[None], np.quantile(draws, LEVELS, axis=0)])
        away = (found - np.array([known.mean, *known.quantiles])[:, None]) / known.deviation
        r_hats = samples.r_hats if samples.settings.superchains is None else samples.nested_r_hats
        figures.seconds.append(seconds)
        figures.errors.append(np.sqrt((away**2).mean(axis=1)).tolist())
        figures.r_hats.append(float(max(np.max(each) for each in r_hats.values())))
    return figures


def page(found: Mapping[str, tuple[Figures, Figures]], superchains: int, repeats: int, origin: str) -> list[str]:
    """The whole page; first of each density are many chains, then few."""
    many, _ = next(iter(found.values()))
    words = {"chains": f"{many.chains:,}", "draws": many.draws, "warmup": many.warmup}
    rows, said = [], []
    for name, both in found.items():
        for figures in both:
            errors = [f"{each:.4f}" for each in figures.shown]
            start = [name, f"{figures.chains:,}", f"{figures.warmup:,}", f"{figures.draws:,}", f"{figures.time:.2f}"]
            rows.append([*start, *errors, f"{max(figures.r_hats):.3f}"])
        ratios = [
            one * both[0].time ** 0.5 / (other * both[1].time ** 0.5)
            for one, other in zip(both[0].shown, both[1].shown, strict=True)
        ]
        said.append(
            f"- {name}, at equal time, many over few: mean {ratios[0]:.2f}, quantiles {ratios[1]:.2f}, "
            f"tails {ratios[2]:.2f}"
        )
    return [
        INTRODUCTION.format(superchains=superchains, repeats=repeats, **words),
        origin,
        "",
        *table(HEAD, rows),
        "",
        *said,
    ]


def main() -> None:
    """Measure both densities both ways, and write what is asked for."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=5)
    parser.add_argument("--chains", type=int, default=4096, help="of the many")
    parser.add_argument("--warmup", type=int, default=100, help="of the many")
    parser.add_argument("--draws", type=int, default=50, help="of each of the many")
    parser.add_argument("--superchains", type=int, default=16)
    parser.add_argument("--markdown", type=Path, help="where to write the page of docs/figures")
    given = parser.parse_args()
    warnings.simplefilter("ignore", nuts.SamplerWarning)
    others, found = load(), {}
    for name, known in KNOWN.items():
        many = Figures(given.chains, given.warmup, given.draws)
        measured(known, many, given.repeats, adapt="pooled", superchains=given.superchains)
        found[name] = many, measured(known, Figures(8, 1000, 2000), given.repeats)
    lines = page(found, given.superchains, given.repeats, origin(others))
    print("\n".join(lines))
    if given.json:
        write_json(given.json, {name: [asdict(each) for each in both] for name, both in found.items()})
    if given.markdown:
        write_page(given.markdown, lines)


if __name__ == "__main__":
    main()
