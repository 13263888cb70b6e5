"""nutpie, by a function of Python's that JAX has compiled: fair in gradients, and slower than its own compilers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import nutpie
from nutpie.compiled_pyfunc import from_pyfunc

from benchmarks.nuts.end_to_end.contestants.in_jax import of_vector
from benchmarks.nuts.end_to_end.contestants.worker import Counts, Job, Run, serve


def prepare(job: Job, data: dict[str, np.ndarray]) -> Run:
    """Chains of their own adaptation each; the variant is "low-rank" or nothing."""
    density, forward = of_vector(job.model, job.posterior)
    compiled = jax.jit(jax.value_and_grad(lambda q, data: density(data, q)))
    on_device = jax.device_put(data)

    def log_density(q: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = compiled(q, on_device)
        return float(value), np.asarray(gradient)

    def run(seed: int, starts: np.ndarray) -> tuple[np.ndarray, Counts]:
        points = iter(starts.astype(float))
        size = starts.shape[1]
        model = from_pyfunc(
            ndim=size,
            make_logp_fn=lambda: log_density,
            make_expand_fn=lambda *_: lambda q: {"q": np.asarray(q)},
            expanded_dtypes=[np.dtype("float64")],
            expanded_shapes=[(size,)],
            expanded_names=["q"],
            make_initial_point_fn=lambda seed: next(points),
        )
        options: dict[str, Any] = {"low_rank_modified_mass_matrix": True} if job.variant == "low-rank" else {}
        found = nutpie.sample(
            model,
            draws=job.draws,
            tune=job.warmup,
            chains=job.chains,
            seed=seed,
            progress_bar=False,
            save_warmup=True,
            **options,
        )
        counts = Counts(*(int(group["n_steps"].sum()) for group in (found.sample_stats, found.warmup_sample_stats)))
        return np.asarray(forward(jax.numpy.asarray(found.posterior["q"].values))), counts

    return run


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    serve(prepare)
