"""Starting points of chains, and the keys that they start with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.nuts.parameters.parameters import cast, layout_of, leaves, ravel
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.running.chain import ChainState, fresh_state
from pcbatch.nuts.settings import Settings
from pcbatch.random import host

NOISE = {"jitter": 1.0, "uniform": 2.0}
"""Half the width of the uniform noise."""
NOT_FINITE = "not finite at the initial position"
"""The message of `chain` about a chain that cannot start."""
ATTEMPTS = 100
"""The number of points that are tried for a chain, as in Stan."""
SHOWN = 5
"""The number of chains that a message names."""


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


@dataclass(frozen=True)
class Starts:
    """Starting points before bijectors: at `point`, or drawn around it with the chains' `keys` `[chains, 2]`."""

    settings: Settings
    point: np.ndarray
    """`[size]`, or `[chains, size]` of points of their own."""
    keys: np.ndarray

    @property
    def are_given(self) -> bool:
        """Tell whether the user has given the points, so that there are no others to try."""
        return self.point.ndim == 2 or self.settings.init == "exact"

    def positions(self, attempt: int = 0) -> np.ndarray:
        """The points `[chains, size]` of this attempt; a chain's depend on its own key and the attempt alone."""
        settings = self.settings
        if self.are_given:
            return np.broadcast_to(self.point, (settings.chains, self.point.shape[-1])).copy()
        keys = self.keys
        for _ in range(attempt):
            keys = host.splits(keys, 2)[:, 1]
        noise = NOISE[settings.init] * (2 * host.uniforms(keys, self.point.shape, settings.dtype) - 1)
        return (self.point if settings.init == "jitter" else 0 * self.point) + noise

    def refused(self, failed: Mapping[int, str], attempts: int, diagnosis: str = "") -> UsageError:
        """PCB557: at none of so many points the density of the chains that `failed` is finite."""
        chains = sorted(failed)
        listed = ", ".join(map(str, chains[:SHOWN])) + (", .." if len(chains) > SHOWN else "")
        who = f"{len(chains)} of {self.settings.chains} chains ({listed}) cannot start"
        why = diagnosis or failed[chains[0]].removeprefix("AssertionError: ")
        if self.are_given:
            return UsageError(
                "PCB557",
                f"{who} where they are told to: {why}\n  help: give points at which the density is finite, or let "
                "bijectors= say where parameters may be; init='jitter' draws points around `initial` until one does",
            )
        where = f"(-1, 1) around `initial`, {self.point!s:.60}" if self.settings.init == "jitter" else "(-2, 2)"
        return UsageError(
            "PCB557",
            f"{who} at any of {attempts} points drawn from {where}, before bijectors: {why}\n  help: say with "
            "bijectors= where parameters may be, such as nuts.positive, or give an `initial` well inside the support",
        )


def starts_of(
    settings: Settings, transform: Transform, initial: Any, initial_per_chain: Any
) -> tuple[Starts, np.ndarray]:
    """The starting points of chains, and the keys that they run with, `[chains, 2]`."""
    pairs = key_pairs(settings.seed, settings.chains)
    if settings.superchains is not None:  # the chains of a group start where the first of them does
        each = settings.chains // settings.superchains
        pairs[:, 0] = np.repeat(pairs[::each, 0], each, axis=0)
    if initial_per_chain is not None:
        expected = [(name, (settings.chains, *leaf.shape)) for name, leaf in leaves(transform.layout)]
        given = [(name, leaf.shape) for name, leaf in leaves(layout_of(initial_per_chain))]
        if given != expected:
            raise UsageError("PCB551", f"initial_per_chain must have the arrays {expected}, not {given}")
    structure, batch = (initial, 0) if initial_per_chain is None else (initial_per_chain, 1)
    name = "initial" if initial_per_chain is None else "initial_per_chain"
    given_point = ravel(cast(structure, settings.dtype, name), batch)
    if np.iscomplexobj(given_point):
        raise UsageError("PCB551", f"{name} has complex numbers, and parameters are real")
    point = transform.inverse(given_point).astype(settings.dtype)
    if point.ndim == 2 and settings.superchains is not None:
        groups = point.reshape(settings.superchains, -1, point.shape[1])
        if (groups != groups[:, :1]).any():
            raise UsageError("PCB551", "initial_per_chain must have one point for all chains of each of superchains")
    return Starts(settings, point, pairs[:, 0]), pairs[:, 1]


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
