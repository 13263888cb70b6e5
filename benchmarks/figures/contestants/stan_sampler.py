"""Stan, by PyStan: chains one after another, one on each core, in C++ and float64.

Seconds are those that Stan itself gives for its draws, of the slowest chain: PyStan's way of passing data and draws is
left out. Stan adapts its step size in at least one trajectory, which is left out, too; its parameters are such that
this first step ends at the given one (dual averaging with an infinite gamma goes to ten times where it started).
Every draw takes its leapfrogs from Stan's column `n_leapfrog__`; of the draws every tenth is compared.
"""

from __future__ import annotations

import re

import numpy as np
import stan

from benchmarks.figures.contestants.worker import Job, Outcome, Run, serve

MODEL = """
data { int<lower=0> n; int<lower=0> d; matrix[n, d] x; array[n] int<lower=0, upper=1> y; }
parameters { vector[d] q; }
model { q ~ std_normal(); y ~ bernoulli_logit_glm(x, 0, q); }
"""
AT_ONCE = 10
"""Times as many draws as the others make: a call is short, and its seconds have three digits."""
APART = 10
NO_STEP = 1e30
ELAPSED = re.compile(rb"([0-9.]+) seconds \(Sampling\)")


def prepare(job: Job) -> Run:
    """The model compiled and its data bound."""
    x, y = job.sizes.target.data()
    data = {"n": len(x), "d": job.sizes.target.size, "x": x.astype(float), "y": y.astype(int)}
    starts = job.sizes.target.starts(job.chains).astype(float)

    def run(seed: int) -> Outcome:
        model = stan.build(MODEL, data=data, random_seed=seed + 1)  # which finds what it has compiled
        fit = model.sample(
            num_chains=job.chains,
            num_warmup=1,
            num_samples=AT_ONCE * job.sizes.trajectories,
            stepsize=job.sizes.target.step_size / 10,
            gamma=NO_STEP,
            stepsize_jitter=0.0,
            max_depth=10,
            init=[{"q": list(start)} for start in starts],
        )
        assert np.allclose(fit["stepsize__"], job.sizes.target.step_size, rtol=1e-3), (
            "not the step size that was asked for"
        )
        seconds = max(float(ELAPSED.search(output).group(1)) for output in fit.stan_outputs)
        draws = fit["q"].reshape(job.sizes.target.size, -1, job.chains).transpose(2, 1, 0)  # draws of chains take turns
        gradients = int(fit["n_leapfrog__"].sum())
        return Outcome(gradients, gradients, draws[:, APART - 1 :: APART], seconds)

    return run


if __name__ == "__main__":
    serve(prepare)
