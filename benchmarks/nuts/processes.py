"""The contestants, and each one's process, kept alive so that timed calls of all can take turns."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks import conversation
from benchmarks.environments import FOLDER, JAX, TENSORFLOW_PROBABILITY, Environment


@dataclass(frozen=True)
class Contestant:
    """A script of `contestants/`, one of its variants, and where it runs: beside pcbatch unless said otherwise.

    A peer is another sampler; the best one is what pcbatch is compared with.
    """

    name: str
    script: str
    variant: str = ""
    environment: Environment | None = None

    @property
    def is_peer(self) -> bool:
        """Whether it is someone else's sampler."""
        return self.environment is not None


CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant("pcbatch", "pcbatch_sampler", "xla"),
        Contestant("pcbatch-auto", "pcbatch_sampler", "auto"),
        Contestant("tfp", "tfp_sampler", "", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-xla", "tfp_autobatched", "xla", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-graph", "tfp_autobatched", "graph", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-stackless", "tfp_autobatched", "stackless", TENSORFLOW_PROBABILITY),
        Contestant("numpyro", "numpyro_sampler", "", JAX),
        Contestant("blackjax", "blackjax_sampler", "", JAX),
        Contestant("loop-xla", "leapfrog_loop", "xla"),
        Contestant("loop-graph", "leapfrog_loop", "graph"),
    )
}


class Process(conversation.Process):
    """A contestant at work."""

    def __init__(self, contestant: Contestant):
        environment = contestant.environment
        python = environment.python(conversation.ROOT / FOLDER) if environment else sys.executable
        super().__init__(f"benchmarks.nuts.contestants.{contestant.script}", python)
