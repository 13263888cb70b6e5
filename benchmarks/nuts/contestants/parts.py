"""Chains in equal parts, one for each core."""

from __future__ import annotations

import numpy as np


def parted(chains: np.ndarray, most: int) -> np.ndarray:
    """`[chains, ..]` as `[parts, chains of a part, ..]`, at most so many parts.

    Where they do not fill up, the last chain is repeated; `joined` leaves the repetitions out.
    """
    each = -(-len(chains) // min(most, len(chains)))
    parts = -(-len(chains) // each)
    lanes = np.minimum(np.arange(parts * each), len(chains) - 1)
    return chains[lanes].reshape(parts, each, *chains.shape[1:])


def joined(parts: np.ndarray, chains: int) -> np.ndarray:
    """`[parts, chains of a part, ..]` as `[chains, ..]`."""
    return parts.reshape(-1, *parts.shape[2:])[:chains]
