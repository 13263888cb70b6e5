"""Faults of a run, found in its draws and statistics, and reported without being asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from pcbatch.nuts.adaptation.adaptation import LARGEST_STEP
from pcbatch.nuts.results import diagnostics
from pcbatch.nuts.results.draws import Draws

LARGEST_R_HAT = 1.01
"""Vehtari et al. 2021."""
SMALLEST_FRACTION = 0.3
"""ArviZ's and Stan's threshold of missing information."""
FAR_APART = 1.1
"""An R-hat that makes one look for faults of the density."""
LEAST_ACCEPTANCE = 0.01
LONG = 50
"""A chain stands still that accepts less than this, or has not moved in the later half of its draws, 50 or more."""
IMPROPER = "improper"
"""A word in all texts about densities that may be that, and in no others."""
SHOWN = 5
"""The number of chains or parameters that a warning names."""


class SamplerWarning(RuntimeWarning):
    """The draws of a run should not be trusted as they are, or not all of them."""


def findings(samples: Draws) -> tuple[str, ...]:
    """The faults of a run, a text for each kind."""
    found: list[str] = []
    if samples.failed:
        found.append(_failures(samples))
    if samples.interrupted:
        found.append(f"interrupted: {samples.draws} of {samples.settings.draws} draws of each chain are here")
    if samples.draws and samples.healthy.any():
        unmixed = [*_r_hats(samples)]
        found += [
            *_frozen(samples),
            *_improper(samples),
            *_divergences(samples),
            *_saturation(samples, mixed=not unmixed),
            *_energies(samples),
            *unmixed,
        ]
    return tuple(found)


def warn(samples: Draws, stacklevel: int, faults: Callable[[], str] = str) -> None:
    """Say what is wrong with a run, at the line of the user's `stacklevel` calls up, as `warnings.warn` counts.

    `faults` looks for those of the density, and is asked where the draws let one expect some.
    """
    texts = findings(samples)
    if (any(IMPROPER in text for text in texts) or _are_apart(samples)) and (found := faults()):
        texts = (f"the log density is no smooth one of a posterior: {found}", *texts)
    for text in texts:
        warnings.warn(text, SamplerWarning, stacklevel=stacklevel + 1)


def _are_apart(samples: Draws) -> bool:
    """Tell whether so many draws should have mixed, and are far from it."""
    if samples.draws < 2 * LONG or not samples.healthy.any():
        return False
    return any((values > FAR_APART).any() for values in _mixing(samples).values())


def _mixing(samples: Draws) -> Mapping[str, np.ndarray]:
    """R-hat of each number, or nested R-hat without what chance adds to it."""
    groups = samples.settings.superchains
    if groups is None:
        return samples.r_hats
    return {name: diagnostics.nested_r_hat(draws, groups, chance=False) for name, draws in samples.items()}


def _failures(samples: Draws) -> str:
    chains = sorted(samples.failed)
    return (
        f"{len(chains)} of {samples.chains} chains failed ({_listed(chains)}), the first with: "
        f"{samples.failed[chains[0]]}; their draws are NaN"
    )


def _frozen(samples: Draws) -> Iterator[str]:
    frozen = samples.sample_stats["acceptance_rate"].mean(axis=1) < LEAST_ACCEPTANCE
    if samples.draws >= 2 * LONG:
        late = [draws[:, samples.draws // 2 :] for draws in samples.values()]
        moved = [(draws[:, 1:] != draws[:, :-1]).reshape(samples.chains, -1).any(axis=1) for draws in late]
        frozen |= ~np.any(moved, axis=0)
    chains = np.flatnonzero(frozen & samples.healthy).tolist()
    if chains:
        yield (
            f"{len(chains)} of {samples.chains} chains stand still ({_listed(chains)}): they accept next to nothing, "
            "or have not moved in the later half of their draws; leave them out, start elsewhere, or warm up for longer"
        )


def _divergences(samples: Draws) -> Iterator[str]:
    by_chain = np.count_nonzero(samples.sample_stats["diverging"], axis=1)
    total = int(by_chain.sum())
    if not total:
        return
    text = f"{total} of {samples.chains * samples.draws} trajectories diverged after the warm-up"
    worst = int(by_chain.argmax())
    if samples.chains > 1 and by_chain[worst] > total / 2:
        text += f", {by_chain[worst]} of them in chain {worst}, which may be stuck where the others are not"
    yield text + "; the draws may miss a region of high curvature: raise target_accept, or write the model otherwise"


def _saturation(samples: Draws, mixed: bool) -> Iterator[str]:
    deepest = samples.settings.max_tree_depth
    saturated = int(np.count_nonzero(samples.sample_stats["tree_depth"] >= deepest))
    if saturated:
        what = (
            "draws are right, but cost more than they should: raise it, warm up for longer, or scale the parameters"
            if mixed
            else "the chains have not mixed, either: where the density does not fall off in some direction the "
            "posterior is improper, and no draw is right; else raise it, warm up for longer, or scale the parameters"
        )
        yield (
            f"{saturated} of {samples.chains * samples.draws} trajectories reached max_tree_depth={deepest} before "
            f"they turned; {what}"
        )


def _improper(samples: Draws) -> Iterator[str]:
    largest = samples.sample_stats["step_size"].max(axis=1)
    chains = np.flatnonzero(largest > LARGEST_STEP).tolist()
    if chains:
        yield (
            f"steps of {len(chains)} of {samples.chains} chains ({_listed(chains)}) grew to {np.nanmax(largest):.0e}: "
            "the posterior is improper, and no draw is right; give each parameter a prior that falls off"
        )


def _energies(samples: Draws) -> Iterator[str]:
    fractions = diagnostics.energy_fractions(samples.sample_stats["energy"])
    low = np.flatnonzero(fractions < SMALLEST_FRACTION)
    if low.size:
        yield (
            f"E-BFMI is below {SMALLEST_FRACTION} in {low.size} of {samples.chains} chains ({_listed(low.tolist())}; "
            f"lowest {np.nanmin(fractions):.2f}): the energy moves slowly, so tails may be missed; write the model "
            "otherwise"
        )


def _r_hats(samples: Draws) -> Iterator[str]:
    found = {}
    for name, values in _mixing(samples).items():
        for place in np.argwhere(values > LARGEST_R_HAT):
            label = f"{name}[{', '.join(map(str, place))}]" if place.size else name
            found[label] = float(values[tuple(place)])
    if found:
        numbers = sum(draws[0, 0].size for draws in samples.values())
        worst = sorted(found, key=lambda label: -found[label])[:SHOWN]
        listed = ", ".join(f"{label}: {found[label]:.3f}" for label in worst)
        figure = "R-hat" if samples.settings.superchains is None else "nested R-hat"
        yield (
            f"{figure} is above {LARGEST_R_HAT} for {len(found)} of {numbers} numbers ({listed}"
            f"{', ..' if len(found) > SHOWN else ''}): the chains have not mixed; draw more, or warm up for longer"
        )


def _listed(chains: list[int]) -> str:
    return ", ".join(map(str, chains[:SHOWN])) + (", .." if len(chains) > SHOWN else "")
