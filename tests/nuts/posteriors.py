"""The six posteriors of posteriordb that the sampler is tried on: their models, data and reference figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import nuts


def normal(x: Any, mean: Any, sd: Any) -> Any:
    """The log density of independent normal numbers, up to a constant."""
    return tf.reduce_sum(-0.5 * ((x - mean) / sd) ** 2 - tf.math.log(sd * tf.ones_like(x)))


def half_cauchy(x: Any, scale: float) -> Any:
    return -tf.math.log1p((x / scale) ** 2)


def eight_schools(p: Any, data: Any) -> Any:
    theta = p["mu"] + p["tau"] * p["z"]
    prior = normal(p["z"], 0.0, 1.0) + normal(p["mu"], 0.0, 5.0) + half_cauchy(p["tau"], 5.0)
    return prior + normal(data["y"], theta, data["sigma"])


def kidscore(p: Any, data: Any) -> Any:
    mean = tf.linalg.matvec(data["x"], p["beta"])
    return normal(data["y"], mean, p["sigma"]) + half_cauchy(p["sigma"], 2.5)


def mesquite(p: Any, data: Any) -> Any:
    return normal(data["y"], tf.linalg.matvec(data["x"], p["beta"]), p["sigma"])


def autoregression(p: Any, data: Any) -> Any:
    mean = p["alpha"] + tf.linalg.matvec(data["past"], p["beta"])
    prior = normal(p["alpha"], 0.0, 10.0) + normal(p["beta"], 0.0, 10.0) + half_cauchy(p["sigma"], 2.5)
    return prior + normal(data["y"], mean, p["sigma"])


def garch(p: Any, data: Any) -> Any:
    """`share` is beta1 / (1 - alpha1), so that it has the whole of (0, 1).

    The variances follow a linear recurrence, v[t] = alpha0 + alpha1 (y[t - 1] - mu)^2 + beta1 v[t - 1]; here it is
    summed: v[t] is beta1^t v[0] and the sum over s < t of beta1^(t - 1 - s) (alpha0 + alpha1 (y[s] - mu)^2).
    """
    y = data["y"]
    beta1 = p["share"] * (1.0 - p["alpha1"])
    steps = np.arange(y.shape[0])
    lags = steps[:, None] - 1 - steps[None, :]
    powers = tf.where(lags >= 0, tf.exp(np.maximum(lags, 0).astype(float) * tf.math.log(beta1)), 0.0)
    shocks = p["alpha0"] + p["alpha1"] * (y - p["mu"]) ** 2
    variances = beta1 ** steps.astype(float) * data["sigma1"] ** 2 + tf.linalg.matvec(powers, shocks)
    return normal(y, p["mu"], tf.sqrt(variances)) + tf.math.log1p(-p["alpha1"])


def gaussian_process(p: Any, data: Any) -> Any:
    distances = data["x"][:, None] - data["x"][None, :]
    covariance = p["alpha"] ** 2 * tf.exp(-0.5 * (distances / p["rho"]) ** 2)
    root = tf.linalg.cholesky(covariance + p["sigma"] * tf.eye(data["y"].shape[0], dtype=data["y"].dtype))
    white = tf.linalg.triangular_solve(root, data["y"][:, None])
    likelihood = -0.5 * tf.reduce_sum(white**2) - tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)))
    prior = 24.0 * tf.math.log(p["rho"]) - 4.0 * p["rho"] - p["alpha"] ** 2 / 8.0 - 0.5 * p["sigma"] ** 2
    return likelihood + prior


def kidscore_data(d: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    columns = [np.ones(len(d["kid_score"])), d["mom_hs"], d["mom_iq"], d["mom_hs"] * d["mom_iq"]]
    return {"y": d["kid_score"], "x": np.stack(columns, axis=1)}


def mesquite_data(d: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    logs = [np.log(d[name]) for name in ("diam1", "diam2", "canopy_height", "total_height", "density")]
    return {"y": np.log(d["weight"]), "x": np.stack([np.ones(len(d["weight"])), *logs, d["group"]], axis=1)}


def autoregression_data(d: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    y, order = d["y"], int(d["K"])
    past = np.stack([y[order - lag : -lag] for lag in range(1, order + 1)], axis=1)
    return {"y": y[order:], "past": past}


def as_is(d: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: value for name, value in d.items() if name in ("x", "y", "sigma", "sigma1")}


@dataclass(frozen=True)
class Posterior:
    """A model, its data, where to start, and draws under the reference's names."""

    file: str
    log_density: Callable[[Any, Any], Any]
    initial: Mapping[str, Any]
    bijectors: Mapping[str, Any]
    prepared: Callable[[Any], dict[str, np.ndarray]] = as_is
    derived: Callable[[Any], dict[str, np.ndarray]] = dict
    options: Mapping[str, Any] = field(default_factory=dict)

    def data(self, folder: Path) -> dict[str, np.ndarray]:
        """What the density is given."""
        text = (folder / "posteriordb" / f"{self.file}.data.json").read_text()
        return self.prepared({name: np.asarray(value, float) for name, value in json.loads(text).items()})

    def reference(self, folder: Path) -> dict[str, dict[str, float]]:
        """Name to mean, sd and their errors."""
        text = (folder / "posteriordb" / f"{self.file}.summary.json").read_text()
        return json.loads(text)["parameters"]

    def draws(self, samples: Any) -> dict[str, np.ndarray]:
        """Name to `[chains, draws]`, vectors counted from 1 as the reference does."""
        found = {}
        for name, draws in self.derived(samples).items():
            if draws.ndim == 2:
                found[name] = draws
            else:
                found |= {f"{name}[{i + 1}]": draws[..., i] for i in range(draws.shape[-1])}
        return found


def schools_drawn(samples: Any) -> dict[str, np.ndarray]:
    mu, tau = samples["mu"], samples["tau"]
    return {"theta": mu[..., None] + tau[..., None] * samples["z"], "mu": mu, "tau": tau}


def garch_drawn(samples: Any) -> dict[str, np.ndarray]:
    beta1 = samples["share"] * (1.0 - samples["alpha1"])
    return {**{name: samples[name] for name in ("mu", "alpha0", "alpha1")}, "beta1": beta1}


SCALE = {"sigma": nuts.positive}
POSTERIORS = {
    "eight_schools": Posterior(
        "eight_schools-eight_schools_noncentered",
        eight_schools,
        {"mu": 0.0, "tau": 1.0, "z": np.zeros(8)},
        {"tau": nuts.positive},
        derived=schools_drawn,
    ),
    "kidscore": Posterior(
        "kidiq-kidscore_interaction",
        kidscore,
        {"beta": np.zeros(4), "sigma": 20.0},
        SCALE,
        prepared=kidscore_data,
        options={"metric": "dense"},
    ),
    "mesquite": Posterior(
        "mesquite-logmesquite", mesquite, {"beta": np.zeros(7), "sigma": 1.0}, SCALE, prepared=mesquite_data
    ),
    "autoregression": Posterior(
        "arK-arK",
        autoregression,
        {"alpha": 0.0, "beta": np.zeros(5), "sigma": 1.0},
        SCALE,
        prepared=autoregression_data,
    ),
    "garch": Posterior(
        "garch-garch11",
        garch,
        {"mu": 5.0, "alpha0": 1.0, "alpha1": 0.5, "share": 0.5},
        {"alpha0": nuts.positive, "alpha1": nuts.interval(0, 1), "share": nuts.interval(0, 1)},
        derived=garch_drawn,
    ),
    "gaussian_process": Posterior(
        "gp_pois_regr-gp_regr",
        gaussian_process,
        {"rho": 5.0, "alpha": 1.0, "sigma": 1.0},
        {"rho": nuts.positive, "alpha": nuts.positive, "sigma": nuts.positive},
    ),
}
