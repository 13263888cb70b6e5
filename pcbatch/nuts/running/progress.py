"""The bar that sampling shows: trajectories, divergences, utilisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pcbatch.notice import silent
from pcbatch.nuts.settings import Settings

Watch = Callable[[int, int, float], None]
"""Told after each chunk: how many trajectories of each chain are done, divergences so far, utilisation."""


@contextmanager
def bar(settings: Settings, done: int, shown: bool) -> Iterator[Watch]:
    """A bar of tqdm's over the trajectories of each chain, `done` of which are behind; nothing unless `shown`."""
    if not shown:
        yield lambda done, divergences, utilization: None
        return
    from tqdm.auto import tqdm  # only now: it looks for a notebook

    with silent(), tqdm(total=settings.trajectories, initial=done, unit="trajectory", dynamic_ncols=True) as bar_:

        def watch(done: int, divergences: int, utilization: float) -> None:
            draws = max(0, done - settings.warmup) // settings.thin
            text = f"{settings.chains} chains, " + (f"{draws} draws" if done >= settings.warmup else "warm-up")
            bar_.set_description_str(text, refresh=False)
            bar_.set_postfix_str(f"{divergences} diverged, {utilization:.0%} of rows of use", refresh=False)
            bar_.update(done - bar_.n)

        watch(done, 0, 1.0)
        yield watch
