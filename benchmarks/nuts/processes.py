"""The contestants, and each one's process, kept alive so that timed calls of all can take turns."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks import conversation
from benchmarks.environments import DEVICES, JAX, NATIVE_LOOPS, TENSORFLOW_PROBABILITY, Environment, with_flags


@dataclass(frozen=True)
class Contestant:
    """A script of `contestants/`, one of its variants, and where it runs: beside pcbatch unless said otherwise.

    A peer is another sampler; the best one is what pcbatch is compared with. As pcbatch does, peers use all cores, with
    the chains in one part for each, but for those "on one device", whose large matrix products use all cores anyway.
    """

    name: str
    script: str
    variant: str = ""
    environment: Environment | None = None
    flags: str = ""
    """Of XLA: they hold for a whole process."""

    @property
    def is_peer(self) -> bool:
        """Whether it is someone else's sampler."""
        return self.environment is not None

    @property
    def has_draws(self) -> bool:
        """Whether it samples at all."""
        return self.script != "leapfrog_loop"


CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant("pcbatch", "pcbatch_sampler", "xla"),
        Contestant("pcbatch-auto", "pcbatch_sampler", "auto"),
        Contestant("tfp", "tfp_sampler", "cores", TENSORFLOW_PROBABILITY),
        Contestant("tfp-one-device", "tfp_sampler", "", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-xla", "tfp_autobatched", "xla", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-graph", "tfp_autobatched", "graph", TENSORFLOW_PROBABILITY),
        Contestant("autobatched-stackless", "tfp_autobatched", "stackless", TENSORFLOW_PROBABILITY),
        Contestant("numpyro", "numpyro_sampler", "", JAX, DEVICES),
        Contestant("numpyro-native", "numpyro_sampler", "native", JAX, f"{DEVICES} {NATIVE_LOOPS}"),
        Contestant("numpyro-one-device", "numpyro_sampler", "", JAX),
        Contestant("blackjax", "blackjax_sampler", "", JAX, DEVICES),
        Contestant("blackjax-native", "blackjax_sampler", "native", JAX, f"{DEVICES} {NATIVE_LOOPS}"),
        Contestant("blackjax-one-device", "blackjax_sampler", "", JAX),
        Contestant("loop-xla", "leapfrog_loop", "xla"),
        Contestant("loop-graph", "leapfrog_loop", "graph"),
    )
}


class Process(conversation.Process):
    """A contestant at work."""

    def __init__(self, contestant: Contestant):
        environment = contestant.environment
        python = environment.python() if environment else sys.executable
        module = f"benchmarks.nuts.contestants.{contestant.script}"
        super().__init__(module, python, with_flags(contestant.flags))
