"""Where chains start, and with which keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.nuts.parameters.bijectors import Transform
from pcbatch.nuts.parameters.parameters import layout_of, leaves, ravel
from pcbatch.nuts.running.chain import ChainState, fresh_state
from pcbatch.nuts.settings import Settings
from pcbatch.random import host

NOISE = {"jitter": 1.0, "uniform": 2.0}
"""Half the width of the uniform noise."""


def starting_state(settings: Settings, positions: np.ndarray, step_size: Any, inverse_mass_matrix: Any) -> ChainState:
    """The state of chains about to start at `positions`, with a step size to be found unless one is given."""
    if step_size is None and not settings.adapts:
        raise UsageError("PCB551", "without a warm-up that adapts it, step_size must be given")
    inverse = starting_metric(settings, positions.shape[1], inverse_mass_matrix)
    if step_size is None:
        return fresh_state(positions, inverse)
    sizes = np.asarray(step_size, settings.dtype)
    if sizes.shape not in ((), (settings.chains,)) or not ((sizes > 0) & np.isfinite(sizes)).all():
        raise UsageError("PCB551", f"step_size must be a positive number, or one for each chain, not {step_size!r}")
    state = fresh_state(positions, inverse, 1.0)
    return state._replace(step_size=np.broadcast_to(sizes, settings.chains).copy())


def key_pairs(seed: int, chains: int) -> np.ndarray:
    """Two keys of each chain: uint32 `[chains, 2, 2]`."""
    return host.splits(host.splits(host.key(seed), chains), 2)


def starting_points(
    settings: Settings, transform: Transform, initial: Any, initial_per_chain: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Starting points before bijectors, `[chains, size]`, and the keys of the chains, `[chains, 2]`."""
    pairs = key_pairs(settings.seed, settings.chains)
    start_keys, run_keys = pairs[:, 0], pairs[:, 1]
    if initial_per_chain is not None:
        expected = [(name, (settings.chains, *leaf.shape)) for name, leaf in leaves(transform.layout)]
        given = [(name, leaf.shape) for name, leaf in leaves(layout_of(initial_per_chain))]
        if given != expected:
            raise UsageError("PCB551", f"initial_per_chain must have the arrays {expected}, not {given}")
        return transform.inverse(ravel(initial_per_chain, batch=1)).astype(settings.dtype), run_keys
    point = transform.inverse(ravel(initial)).astype(settings.dtype)
    if settings.init == "exact":
        return np.repeat(point[np.newaxis], settings.chains, axis=0), run_keys
    width = NOISE[settings.init]
    noise = width * (2 * host.uniforms(start_keys, point.shape, settings.dtype) - 1)
    return (point if settings.init == "jitter" else 0 * point) + noise, run_keys


def starting_metric(settings: Settings, size: int, given: Any) -> np.ndarray:
    """The inverse mass matrix that all chains start with: `[size]`, or `[size, size]` if it is dense."""
    shape = (size,) if settings.metric == "diag" else (size, size)
    if given is None:
        matrix = np.ones(size) if settings.metric == "diag" else np.eye(size)
    else:
        matrix = np.asarray(given, float)
        if matrix.shape != shape:
            raise UsageError(
                "PCB551",
                f"inverse_mass_matrix must have the shape {list(shape)} with metric={settings.metric!r}, not "
                f"{list(matrix.shape)}",
            )
        scales = matrix if settings.metric == "diag" else np.linalg.eigvalsh((matrix + matrix.T) / 2)
        if not (
            np.isfinite(matrix).all() and (scales > 0).all() and (matrix.ndim == 1 or np.allclose(matrix, matrix.T))
        ):
            raise UsageError("PCB551", "inverse_mass_matrix must be positive, and symmetric where it is a matrix")
    return matrix.astype(settings.dtype)
