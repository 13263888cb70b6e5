"""The breast cancer posterior by an independent sampler: NumPyro's NUTS, in an environment that this script makes.

    python benchmarks/reference_sampler.py            writes benchmarks/reference/breast_cancer.json

The model is written out once more here, so that nothing is shared with pcbatch: 569 tumours, 30 measurements
standardised to mean 0 and standard deviation 1, `y ~ Bernoulli(sigmoid(intercept + x . weights))`, all 31 coefficients
N(0, 1) a priori. Each figure comes with its Monte Carlo standard error: for means sd / sqrt(ESS), for standard
deviations from the effective sample size of the squared deviations (delta method).
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "reference" / "breast_cancer.json"
REQUIREMENTS = ("numpyro>=0.15", "scikit-learn>=1.4")
CHAINS, WARMUP, DRAWS = 4, 1000, 10_000


def run_in_fresh_environment() -> None:
    """Make a virtual environment with NumPyro, run this script's `--inside` part there, throw the environment away."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        subprocess.run([python, __file__, "--inside"], check=True)


def sample() -> dict[str, Any]:
    """Sample and summarise; runs inside the environment."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import numpyro
    import numpyro.distributions as dist
    import sklearn
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
    from sklearn.datasets import load_breast_cancer

    jax.config.update("jax_enable_x64", True)
    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)

    def model(x: Any, y: Any) -> None:
        intercept = numpyro.sample("intercept", dist.Normal(0.0, 1.0))
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=intercept + x @ weights), obs=y)

    mcmc = numpyro.infer.MCMC(
        numpyro.infer.NUTS(model, dense_mass=True, target_accept_prob=0.9),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(20201), x, y, extra_fields=("diverging",))

    parameters = {}
    for name, draws in mcmc.get_samples(group_by_chain=True).items():
        draws = np.asarray(draws)
        mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
        squares = (draws - mean) ** 2
        ess = effective_sample_size(draws)
        mcse_sd = squares.std(axis=(0, 1)) / np.sqrt(effective_sample_size(squares)) / (2 * sd)
        figures = {
            "mean": mean,
            "mcse_mean": sd / np.sqrt(ess),
            "sd": sd,
            "mcse_sd": mcse_sd,
            "ess": ess,
            "r_hat": split_gelman_rubin(draws),
        }
        parameters[name] = {key: np.asarray(value).round(6).tolist() for key, value in figures.items()}
    return {
        "model": "y ~ Bernoulli(sigmoid(intercept + x . weights)), x standardised, intercept and weights ~ N(0, 1)",
        "sampler": f"NumPyro NUTS, dense metric, {CHAINS} chains, {WARMUP} warm-up and {DRAWS} draws each, float64",
        "divergences": int(np.asarray(mcmc.get_extra_fields()["diverging"]).sum()),
        "command": "python benchmarks/reference_sampler.py",
        "versions": {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "numpyro": numpyro.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "parameters": parameters,
    }


def main() -> None:
    """Write the figures to `RESULT`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inside", action="store_true", help="run in the present environment, which has NumPyro")
    if not parser.parse_args().inside:
        run_in_fresh_environment()
        return
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(sample(), indent=1) + "\n")
    print(f"wrote {RESULT}", file=sys.stderr)


if __name__ == "__main__":
    main()
