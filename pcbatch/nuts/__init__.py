"""A recursive No-U-Turn sampler for many chains, written for one: chains meet at gradients, never at trajectories."""

from pcbatch.nuts.api import sample
from pcbatch.nuts.bijectors import interval, ordered, positive
from pcbatch.nuts.samples import Cost, Samples

__all__ = ["Cost", "Samples", "interval", "ordered", "positive", "sample"]
