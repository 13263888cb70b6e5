"""Tables and data structures of ArviZ's, for its versions 0.2x and 1.x."""

from __future__ import annotations

from typing import Any

from pcbatch.nuts.results.draws import Draws

COLUMNS = ("mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat")


def table(samples: Draws) -> Any:
    """`Samples.summary`."""
    import arviz

    healthy = {name: draws[samples.healthy] for name, draws in samples.items() if draws.size}
    return arviz.summary(_converted({"posterior": healthy}), round_to="none")[list(COLUMNS)]


def to_arviz(samples: Draws) -> Any:
    """`Samples.to_arviz`."""
    groups = {"posterior": dict(samples.posterior), "sample_stats": dict(samples.sample_stats)}
    if samples.settings.save_warmup:
        groups["warmup_posterior"] = dict(samples.warmup_posterior)
        groups["warmup_sample_stats"] = dict(samples.warmup_sample_stats)
    return _converted(groups)


def _converted(groups: dict[str, Any]) -> Any:
    """An `InferenceData`, or from 1.0 on a `DataTree`, with these groups of arrays `[chains, draws, ..]`."""
    import arviz

    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, save_warmup=True)
    return arviz.from_dict(**groups, save_warmup=True)
