"""A recursive No-U-Turn sampler for many chains, written for one: chains meet at gradients, never at trajectories."""

from pcbatch.nuts.api import export, resume, sample
from pcbatch.nuts.parameters.bijectors import (
    cholesky_corr,
    cholesky_cov,
    interval,
    lower,
    ordered,
    positive,
    simplex,
    unit_vector,
    upper,
    zero_sum,
)
from pcbatch.nuts.results.draws import Cost
from pcbatch.nuts.results.reports import SamplerWarning
from pcbatch.nuts.results.samples import Samples

__all__ = [
    "Cost",
    "SamplerWarning",
    "Samples",
    "cholesky_corr",
    "cholesky_cov",
    "export",
    "interval",
    "lower",
    "ordered",
    "positive",
    "resume",
    "sample",
    "simplex",
    "unit_vector",
    "upper",
    "zero_sum",
]
