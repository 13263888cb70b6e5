"""Do samplers draw from the same density? First and second moments of their draws, against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

LEAST_DRAWS = 16
"""Fewer prove nothing."""
LARGEST_SHIFT = 1.6
"""Standard errors that means may differ by, in the root mean square over the coordinates; 1 is expected, of draws that
are independent, and less of such as start at the same points."""
LARGEST_RATIO = 6.0
"""Standard errors of the mean logarithm of the ratio of variances."""
MOST_APART = 0.05
"""Standard deviations between the means of machines that make the same draws but for rounding."""
LEAST_MOVE = 0.5
"""Of the squared distance between a draw and its chain's start, over that of independent draws."""


@dataclass(frozen=True)
class Moments:
    """Of draws of `size` numbers: how many, sums, sums of squares, and sums of squared distances from the starts."""

    count: int
    sums: list[float]
    squares: list[float]
    moves: list[float]

    @classmethod
    def of(cls, draws: np.ndarray, starts: np.ndarray) -> Moments:
        """Of draws `[chains, n, size]` of chains that start at `starts` `[chains, size]`."""
        draws, starts = np.asarray(draws, np.float64), np.asarray(starts, np.float64)[:, np.newaxis]
        flat, moves = draws.reshape(-1, draws.shape[-1]), (draws - starts).reshape(-1, draws.shape[-1])
        return cls(
            len(flat), flat.sum(axis=0).tolist(), (flat**2).sum(axis=0).tolist(), (moves**2).sum(axis=0).tolist()
        )

    @classmethod
    def given(cls, reply: Mapping[str, Any]) -> Moments:
        """As a process gives them."""
        return cls(**reply)

    def __add__(self, other: Moments) -> Moments:
        """Of both."""

        def both(name: str) -> list[float]:
            return (np.asarray(getattr(self, name)) + getattr(other, name)).tolist()

        return Moments(self.count + other.count, both("sums"), both("squares"), both("moves"))

    @property
    def mean(self) -> np.ndarray:
        """Of each number, `[size]`."""
        return np.asarray(self.sums) / self.count

    @property
    def variance(self) -> np.ndarray:
        """Of each number, `[size]`."""
        return (np.asarray(self.squares) - self.count * self.mean**2) / (self.count - 1)


@dataclass(frozen=True)
class Verdict:
    """How far one contestant's draws are from those of all others, in the units of the bounds above."""

    count: int
    shift: float
    ratio: float
    move: float

    @property
    def agrees(self) -> bool:
        """Whether all of it is within the bounds."""
        return self.shift <= LARGEST_SHIFT and abs(self.ratio) <= LARGEST_RATIO and self.move >= LEAST_MOVE

    def __str__(self) -> str:
        return f"shift {self.shift:.2f}, ratio {self.ratio:.1f}, move {self.move:.2f}, of {self.count} draws"


def compared(own: Moments, others: Moments) -> Verdict:
    """One contestant's draws beside the others'."""
    parts = 1 / own.count + 1 / others.count
    shift = np.sqrt(np.mean((own.mean - others.mean) ** 2 / (others.variance * parts)))
    # The logarithm of a normal sample's variance has about 2 / n of variance.
    ratio = np.mean(np.log(own.variance / others.variance)) / np.sqrt(2 * parts / len(own.sums))
    move = np.mean(np.asarray(own.moves) / own.count / (2 * others.variance))
    return Verdict(own.count, float(shift), float(ratio), float(move))


def verdicts(found: Mapping[str, Moments], families: Mapping[str, str]) -> dict[str, Verdict]:
    """Each contestant beside those of other families; who has too few draws is left out.

    A family are contestants that may draw the same: of each family the first one is what others are compared with.
    """
    enough = {name: moments for name, moments in found.items() if moments.count >= LEAST_DRAWS}
    first: dict[str, str] = {}
    for name in enough:
        first.setdefault(families[name], name)
    said = {}
    for name, own in enough.items():
        others = [enough[other] for family, other in first.items() if family != families[name]]
        if others:
            said[name] = compared(own, reduce(Moments.__add__, others))
    return said


def apart(one: Moments, other: Moments) -> float:
    """How far means are apart, in standard deviations: nothing but rounding, if the draws are the same."""
    return float(np.sqrt(np.mean((one.mean - other.mean) ** 2 / one.variance)))
