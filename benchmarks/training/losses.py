"""What the networks are trained to: half the squared distance of their results to random targets, a mean by example.

Python 3.8 has to read this file.
"""

from __future__ import annotations

import numpy as np

from benchmarks.trees.networks import LONGEST, TAGS, Arrays, Network


def targets(network: Network, batch: Arrays) -> np.ndarray:
    """A vector for each example, `[examples, width]`; of a tagger `[examples, LONGEST, TAGS]`, 0 behind the ends."""
    random, examples = np.random.RandomState(2), len(batch["word"])
    if network.cell != "tagger":
        return (0.1 * random.standard_normal((examples, network.width))).astype(np.float32)
    found = 0.1 * random.standard_normal((examples, LONGEST, TAGS))
    return np.where((batch["word"] >= 0)[:, :, np.newaxis], found, 0.0).astype(np.float32)
