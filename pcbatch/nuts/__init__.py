"""A recursive No-U-Turn sampler for many chains, written for one: chains meet at gradients, never at trajectories."""

from pcbatch.nuts.api import export, resume, sample
from pcbatch.nuts.parameters.bijectors import interval, ordered, positive
from pcbatch.nuts.results.draws import Cost
from pcbatch.nuts.results.reports import SamplerWarning
from pcbatch.nuts.results.samples import Samples

__all__ = ["Cost", "SamplerWarning", "Samples", "export", "interval", "ordered", "positive", "resume", "sample"]
