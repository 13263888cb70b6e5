"""The posteriors: data, parameters and what is known of them, in NumPy alone. They are written down in `contestants/`.

Six are posteriordb's. Breast cancer is the logistic regression of `examples/nuts/`. The data of the others are
simulated, always the same.
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

    `positive` ones move as logarithms, those in the `unit` interval as logits. `data` and `reference` read files; the
    reference has mean and standard deviation with their Monte Carlo errors, `[4, numbers]`, NaN of unknown ones.
    """

    title: str
    sizes: Mapping[str, int]
    data: Callable[[], Arrays]
    reference: Callable[[], np.ndarray] | None = None
    positive: tuple[str, ...] = ()
    unit: tuple[str, ...] = ()

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
        return {name: self._constrained(name, starts[:, place]) for name, place in self.places().items()}

    def _constrained(self, name: str, moving: np.ndarray) -> np.ndarray:
        if name in self.positive:
            return np.exp(moving)
        return 1 / (1 + np.exp(-moving)) if name in self.unit else moving


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


def schools() -> Arrays:
    """Eight effects, and their standard errors as `x`."""
    data = _read("eight_schools-eight_schools_noncentered.data.json")
    return {"x": np.asarray(data["sigma"], float), "y": np.asarray(data["y"], float)}


def kidscore() -> Arrays:
    """Scores of 434 children by their mothers' degree, score, and the product of these."""
    data = {name: np.asarray(each, float) for name, each in _read("kidiq-kidscore_interaction.data.json").items()}
    school, score = data["mom_hs"], data["mom_iq"]
    return {"x": np.stack([np.ones(len(school)), school, score, school * score], axis=1), "y": data["kid_score"]}


def garch() -> Arrays:
    """A series of 200, and the standard deviation of its first number as `x`."""
    data = _read("garch-garch11.data.json")
    return {"x": np.asarray([data["sigma1"]], float), "y": np.asarray(data["y"], float)}


def process() -> Arrays:
    """Eleven points of a function."""
    data = _read("gp_pois_regr-gp_regr.data.json")
    return {"x": np.asarray(data["x"], float), "y": np.asarray(data["y"], float)}


def groups() -> Arrays:
    """Forty groups of eight, whose intercepts differ."""
    random = np.random.default_rng(11)
    x = random.normal(size=(40, 8))
    return {"x": x, "y": 1.5 - 0.7 * x + 0.4 * random.normal(size=(40, 1)) + 0.8 * random.normal(size=(40, 8))}


def volatility() -> Arrays:
    """Sixty returns, whose log variance is an autoregression; `x` is not used."""
    random = np.random.default_rng(12)
    log_variance = np.full(60, -1.0)
    for step in range(1, 60):
        log_variance[step] = -1.0 + 0.9 * (log_variance[step - 1] + 1.0) + 0.4 * random.normal()
    return {"x": np.zeros(1), "y": np.exp(0.5 * log_variance) * random.normal(size=60)}


def answers() -> Arrays:
    """Fifty persons' answers to fifteen questions, 1 if right; `x` is not used."""
    random = np.random.default_rng(13)
    ability, difficulty = random.normal(size=(50, 1)), random.normal(size=15)
    slope = np.exp(0.3 * random.normal(size=15))
    right = random.uniform(size=(50, 15)) < 1 / (1 + np.exp(-slope * (ability - difficulty)))
    return {"x": np.zeros(1), "y": right.astype(float)}


def counts() -> Arrays:
    """Fifty counts, more spread than Poisson's, by two measurements and a column of ones."""
    random = np.random.default_rng(14)
    x = np.column_stack([np.ones(50), random.normal(size=(50, 2))])
    return {"x": x, "y": random.poisson(np.exp(x @ [1.0, 0.5, -0.3] + 0.5 * random.normal(size=50))).astype(float)}


def _posteriordb(name: str, *known: str, unknown: tuple[int, int] = (0, 0)) -> Callable[[], np.ndarray]:
    """The reference figures of posteriordb: of all its parameters, whose order is ours, or of the `known` ones.

    So many of our numbers before and after them are `unknown`.
    """

    def read() -> np.ndarray:
        parameters = _read(f"{name}.summary.json")["parameters"]
        chosen = [parameters[each] for each in known or parameters]
        found = np.array([[each[figure] for each in chosen] for figure in ("mean", "mcse_mean", "sd", "mcse_sd")])
        return np.pad(found, ((0, 0), unknown), constant_values=np.nan)

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
    "eight-schools": Posterior(
        "eight schools, not centred (posteriordb)",
        {"z": 8, "mu": 0, "tau": 0},
        schools,
        _posteriordb("eight_schools-eight_schools_noncentered", "mu", "tau", unknown=(8, 0)),
        ("tau",),
    ),
    "kidscore": Posterior(
        "linear regression, 434 x 4 (posteriordb's kidscore_interaction)",
        {"beta": 4, "sigma": 0},
        kidscore,
        _posteriordb("kidiq-kidscore_interaction"),
        ("sigma",),
    ),
    "garch": Posterior(
        "GARCH(1, 1), 200 steps (posteriordb)",
        {"mu": 0, "alpha0": 0, "alpha1": 0, "share": 0},
        garch,
        _posteriordb("garch-garch11", "mu", "alpha0", "alpha1", unknown=(0, 1)),
        ("alpha0",),
        ("alpha1", "share"),
    ),
    "process": Posterior(
        "Gaussian process of 11 points (posteriordb's gp_regr)",
        {"rho": 0, "alpha": 0, "sigma": 0},
        process,
        _posteriordb("gp_pois_regr-gp_regr"),
        ("rho", "alpha", "sigma"),
    ),
    "groups": Posterior(
        "varying intercepts of 40 groups, not centred",
        {"z": 40, "mu": 0, "slope": 0, "tau": 0, "sigma": 0},
        groups,
        positive=("tau", "sigma"),
    ),
    "volatility": Posterior(
        "stochastic volatility, 60 steps, not centred",
        {"z": 60, "mu": 0, "phi": 0, "sigma": 0},
        volatility,
        positive=("sigma",),
        unit=("phi",),
    ),
    "answers": Posterior(
        "item response, 50 persons, 15 questions",
        {"ability": 50, "difficulty": 15, "slope": 15},
        answers,
        positive=("slope",),
    ),
    "counts": Posterior(
        "Poisson regression with noise, 50 counts", {"z": 50, "beta": 3, "spread": 0}, counts, positive=("spread",)
    ),
}
