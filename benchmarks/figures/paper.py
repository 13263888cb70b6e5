"""The batching paper's two figures: how section 4 sets them up, and what it says of them."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.nuts.targets import Target

PAPER = (
    "Radul, Patton, Maclaurin, Hoffman, Saurous, [Automatically Batching Control-Intensive Programs for Modern "
    "Accelerators](https://arxiv.org/abs/1910.11141), MLSys 2020"
)

LEAPFROGS = 4
"""Leapfrog steps, and so gradients, of each leaf."""


class Sizes(NamedTuple):
    """An experiment: the density, trajectories of each chain in a call, leapfrog steps of each leaf."""

    target: Target
    trajectories: int
    leapfrogs: int = LEAPFROGS

    def given(self, chains: int) -> dict[str, int | str]:
        """What a contestant's process is told of it."""
        return {**self._asdict(), "target": self.target.name, "chains": chains}


THROUGHPUT = (
    "The paper's figure 6 is this experiment: the same sizes in 32 bits, {leapfrogs} leapfrog steps to a leaf, and "
    "warm runs only. It counts gradients that chains needed, without what synchronisation wastes. The table has "
    "what its section 4 says, beside what is measured here. Chains between two measured numbers are interpolated."
)

LINEAR = "On a GPU throughput grows linearly with the number of chains until the GPU is full, at thousands of chains."
EAGER_LEVEL = "On a CPU local static batching in eager mode is level with Stan at a few hundred chains."
COMPILED_LEVEL = "On a CPU the machine that is compiled as a whole is level with Stan at just ten chains."
HYBRID = "At very large batches the hybrid is ahead of all others."

ACCELERATORS = (
    "The abstract claims speedups of orders of magnitude for *accelerators*, on which a batch of many chains costs "
    "little more than a single one. A few chains of this density keep {cores} cores of a CPU busy. Batching gains here "
    "what one chain's gradient leaves idle, and what an interpreter costs between two gradients."
)

BATCH = 30
"""The number of chains for which the paper gives the loss."""
LOST, WON = "about 4", "about 2"
"""Factors: what chains lose at so many that wait after each trajectory, and what the machine wins back of it."""

UTILIZATION = (
    "The paper's figure 7 is this experiment: the utilisation of the gradient on a correlated Gaussian of 100 "
    "dimensions, by the number of chains. Its section 4 gives two factors at a batch of {batch}. Synchronising lanes "
    "after each trajectory loses the first; with 10 trajectories to a run the program-counter machine wins back the "
    "second."
)

WHY = (
    "The authors' documentation says why. Several trajectories to a step let the machine batch gradients across "
    "consecutive trajectories ([the sampler]"
    "(https://www.tensorflow.org/probability/api_docs/python/tfp/experimental/mcmc/NoUTurnSampler)). The machine runs "
    "the earliest instruction at which a lane waits, so later lines of the source run at higher utilisation ([the "
    "implementation](https://github.com/tensorflow/probability/blob/main/tensorflow_probability/python/internal/"
    "auto_batching/README.md)). Both show here: all machines make {trajectories} trajectories in a row, and the "
    "gradient stands last in the recursion. Local batching has calls on the host's stack, so it waits at the end of "
    "each trajectory for the longest."
)
