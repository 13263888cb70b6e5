"""The posteriors: data, parameters and what is known of them, in NumPy alone. They are written down in `contestants/`.

Breast cancer is the logistic regression of `examples/nuts/`, the others are posteriordb's: an autoregression of order 5
over 200 steps (arK), and a linear regression of 46 bushes (logmesquite).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
REFERENCES = Path(__file__).parents[2] / "reference"
FAR = 2.0
"""Chains start uniformly in (-FAR, FAR), in the coordinates in which they move, as Stan's do."""


class DataMissingError(Exception):
    """The folder with the data is not there; says how to name it."""


@dataclass(frozen=True)
class Posterior:
    """Parameters by name with their sizes (0 for a single number), in the order of the draws' numbers.

    `positive` ones move as logarithms. `data` and `reference` read files; the reference has mean and standard deviation
    with their Monte Carlo errors, `[4, numbers]`.
    """

    title: str
    sizes: Mapping[str, int]
    data: Callable[[], Arrays]
    reference: Callable[[], np.ndarray]
    positive: tuple[str, ...] = ()

    @property
    def numbers(self) -> int:
        """Of a draw."""
        return sum(max(1, size) for size in self.sizes.values())

    def places(self) -> dict[str, slice | int]:
        """Where the parameters stand in a draw."""
        found: dict[str, slice | int] = {}
        first = 0
        for name, size in self.sizes.items():
            found[name] = slice(first, first + size) if size else first
            first += max(1, size)
        return found

    def starts(self, chains: int, seed: int) -> np.ndarray:
        """`[chains, numbers]`, in the coordinates in which chains move."""
        return np.random.default_rng(seed).uniform(-FAR, FAR, (chains, self.numbers)).astype(np.float32)

    def constrained(self, starts: np.ndarray) -> Arrays:
        """Parameters by name, `[chains, ..]`."""
        return {
            name: np.exp(starts[:, place]) if name in self.positive else starts[:, place]
            for name, place in self.places().items()
        }


def breast_cancer() -> Arrays:
    """569 tumours: 30 measurements, standardised, and a column of ones; 1 for a benign one."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return {"x": np.column_stack([np.ones(len(x)), x]), "y": y.astype(float)}


def breast_cancer_reference() -> np.ndarray:
    """By `benchmarks/reference_sampler.py`."""
    found = json.loads((REFERENCES / "breast_cancer.json").read_text())["parameters"]
    figures = ("mean", "mcse_mean", "sd", "mcse_sd")
    return np.array([[found["intercept"][figure], *found["weights"][figure]] for figure in figures])


def autoregression() -> Arrays:
    """Each value with the five before it, the nearest one first."""
    data = _read("arK-arK.data.json")
    y, order = np.asarray(data["y"]), data["K"]
    past = np.stack([y[order - lag : -lag] for lag in range(1, order + 1)], axis=1)
    return {"x": past, "y": y[order:]}


def mesquite() -> Arrays:
    """Logarithms of what was measured, and which of two groups a bush is of."""
    data = _read("mesquite-logmesquite.data.json")
    logs = [np.log(data[name]) for name in ("diam1", "diam2", "canopy_height", "total_height", "density")]
    ones = np.ones(len(data["weight"]))
    return {"x": np.stack([ones, *logs, data["group"]], axis=1), "y": np.log(data["weight"])}


def _posteriordb(name: str) -> Callable[[], np.ndarray]:
    """The reference figures of posteriordb, whose order of parameters is ours."""

    def read() -> np.ndarray:
        parameters = _read(f"{name}.summary.json")["parameters"].values()
        return np.array([[each[figure] for each in parameters] for figure in ("mean", "mcse_mean", "sd", "mcse_sd")])

    return read


def _read(file: str) -> Any:
    folder = os.environ.get("PCBATCH_DATA")
    path = Path(folder or ".") / "posteriordb" / file
    if not path.exists():
        raise DataMissingError(f"{path} is not there: PCBATCH_DATA names the folder that has posteriordb/{file}")
    return json.loads(path.read_text())


POSTERIORS = {
    "breast-cancer": Posterior(
        "logistic regression, 569 x 31 (breast cancer)", {"beta": 31}, breast_cancer, breast_cancer_reference
    ),
    "arK": Posterior(
        "autoregression of order 5, 195 x 5 (posteriordb's arK)",
        {"alpha": 0, "beta": 5, "sigma": 0},
        autoregression,
        _posteriordb("arK-arK"),
        ("sigma",),
    ),
    "mesquite": Posterior(
        "linear regression, 46 x 7 (posteriordb's logmesquite)",
        {"beta": 7, "sigma": 0},
        mesquite,
        _posteriordb("mesquite-logmesquite"),
        ("sigma",),
    ),
}
