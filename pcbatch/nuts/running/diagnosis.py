"""Faults of a density, with the parameters that they are in, found by evaluating it when a run has gone wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pcbatch.errors import PcbatchError
from pcbatch.nuts.parameters.parameters import leaves
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.results.draws import Origin
from pcbatch.nuts.running.density_programs import values_and_gradients

DISTANCES = (2e1, 1e2, 1e4, 1e6)
"""Steps from a point along an axis, at which a proper density is lower."""
FALL = 5.0
"""A logarithm that falls by less, up to the largest distance, does not fall off: that of Cauchy's falls by 27."""
SHIFTS = tuple(sign * 10.0**power for power in np.linspace(-1.0, 2.0, 7) for sign in (1.0, -1.0))
"""Changes of a parameter that are tried where the density is not finite."""
GRID = np.linspace(-2.0, 2.0, 65)
"""Places along an axis at which a density is compared with its gradient."""
JUMP = 0.1
"""Less of a difference between a density and the integral of its gradient is no jump."""
AXES = 256
"""The number of axes that are looked along."""
SHOWN = 5


def start(origin: Origin, position: np.ndarray) -> str:
    """Return the reason why a chain cannot start at `position` `[size]`; empty where none is known."""
    places = _places(origin.transform)
    points = np.repeat(position[None], 1 + len(SHIFTS) * len(places), axis=0)
    for row, shift in enumerate(SHIFTS):
        for column, (_, place) in enumerate(places):
            points[1 + row * len(places) + column, place] += shift
    found = _evaluated(origin, points)
    if found is None:
        return ""
    values, gradients = found
    if np.isfinite(values[0]):
        names = _names_of(origin.transform, ~np.isfinite(gradients[0]))
        return f"the log density is {values[0]:.4g} there, and its gradient is not finite in {_listed(names)}"
    helps = np.isfinite(values[1:]).reshape(len(SHIFTS), len(places)).any(axis=0)
    names = [name for (name, _), each in zip(places, helps, strict=True) if each]
    return f"the log density is {values[0]} there" + (
        f", and finite where {_listed(names)} is changed" if names else ""
    )


def faults(origin: Origin) -> str:
    """Faults of a density, in words, with the names of parameters: it does not fall off, or it jumps; empty if none.

    It is followed along each axis, before bijectors, from where a chain stands.
    """
    points = np.asarray(origin.state.point.q)
    finite = points[np.isfinite(points).all(axis=1)]
    point = finite[0] if len(finite) else np.zeros_like(points[0])
    told = [*_improper(origin, point), *_jumps(origin, point)]
    return "; ".join(told) + (", before bijectors" if told and any(origin.transform.bijectors) else "")


def _improper(origin: Origin, point: np.ndarray) -> Iterator[str]:
    """Directions in which a density does not fall off."""
    transform = origin.transform
    found = _along(origin, point, [sign * distance for sign in (1.0, -1.0) for distance in DISTANCES])
    if found is None:
        return
    values, slopes, middle = found
    falls = (values - middle).reshape(-1, 2, len(DISTANCES))
    unknown = np.isnan(falls)  # where a bijector overflows
    stays = np.zeros((2, transform.size), bool)
    stays[:, : len(falls)] = ((falls > -FALL) | unknown).all(axis=-1).T & ~unknown.all(axis=-1).T
    flat, still = stays.all(axis=0), np.zeros(transform.size, bool)
    still[: len(slopes)] = (slopes == 0).all(axis=-1)
    if (flat & still).any():
        yield f"it does not depend on {_listed(_names_of(transform, flat & still))}"
    stays &= ~(flat & still)
    for mask, where in zip(stays, ("grows", "falls"), strict=True):
        if mask.any():
            yield f"it does not fall off where {_listed(_names_of(transform, mask))} {where}"


def _jumps(origin: Origin, point: np.ndarray) -> Iterator[str]:
    """Axes along which a density and the integral of its gradient differ, as they do across a jump, however near."""
    first = _along(origin, point, GRID)
    if first is None:
        return
    errors = _errors(*first[:2], GRID)
    worst = errors.argmax(axis=1)
    nearer = GRID[worst][:, None] + (GRID[1] - GRID[0]) * np.linspace(0.0, 1.0, len(GRID))
    second = _along(origin, point, nearer)
    if second is None:
        return
    again = _errors(*second[:2], nearer).max(axis=1)
    mask = np.zeros(origin.transform.size, bool)
    mask[: len(again)] = (again > JUMP) & (again > 0.5 * errors.max(axis=1))
    if mask.any():
        yield f"it jumps, or has a part without a gradient, in {_listed(_names_of(origin.transform, mask))}"


def _errors(values: np.ndarray, slopes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return by how much values change otherwise than their slopes say; 0 where one is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.abs(np.diff(values) - np.diff(places) * (slopes[:, 1:] + slopes[:, :-1]) / 2)
    return np.where(np.isfinite(found), found, 0)


def _along(origin: Origin, point: np.ndarray, shifts: Any) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Values and slopes `[axes, shifts]` along the axes through a point, and the value there.

    `shifts` are those of all axes, or `[axes, shifts]`.
    """
    axes = min(AXES, point.size)
    steps = np.broadcast_to(np.asarray(shifts, point.dtype), (axes, np.shape(shifts)[-1]))
    points = np.repeat(point[None], 1 + steps.size, axis=0)
    moved = points[1:].reshape(*steps.shape, point.size)
    for axis in range(axes):
        moved[axis, :, axis] += steps[axis]
    found = _evaluated(origin, points)
    if found is None:
        return None
    values, gradients = found
    slopes = gradients[1:].reshape(*steps.shape, point.size)
    return (
        values[1:].reshape(steps.shape).astype(np.float64),
        np.stack([slopes[axis, :, axis] for axis in range(axes)]).astype(np.float64),
        float(values[0]),
    )


def _evaluated(origin: Origin, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Values and gradients at `[n, size]`; None where that cannot be compiled for so many points."""
    try:
        return values_and_gradients(origin.density, origin.transform, origin.data, positions)
    except PcbatchError:
        return None


def _places(transform: Transform) -> list[tuple[str, slice]]:
    """The parameters' names and where a position has them; of a whole, one name."""
    names = ["the parameters"] if transform.whole else [name for name, _ in leaves(transform.layout)]
    ends = np.cumsum([leaf.size for leaf in transform.free])
    return [(name, slice(end - leaf.size, end)) for name, leaf, end in zip(names, transform.free, ends, strict=True)]


def _names_of(transform: Transform, mask: np.ndarray) -> list[str]:
    """The names of the numbers that a mask `[size]` chooses."""
    found = []
    for (name, place), leaf in zip(_places(transform), transform.free, strict=True):
        chosen = np.argwhere(mask[place].reshape(leaf.shape))
        if leaf.size and len(chosen) == leaf.size:
            found.append(name)
        else:
            found += [f"{name}[{', '.join(map(str, index))}]" for index in chosen.tolist()]
    return found


def _listed(names: list[Any]) -> str:
    return ", ".join(map(repr, names[:SHOWN])) + (", .." if len(names) > SHOWN else "")
