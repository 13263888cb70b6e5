"""Sentences of advice on a faster batch: each has an observation, its reason, and the code to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pcbatch.runtime.report.explanation import ExecutionCost, Expensive

APART = 1.25
"""A block whose lanes do not meet runs so many times as often as the longest lane needs it."""
FEW = 0.6
"""The part of a block's launches that batching on the fly needs, for that to be worth a word."""
IDLE = 0.5
"""The part of rows that is of use, for more lanes to be worth a word."""


def advised(
    lanes: int, usual: ExecutionCost, blocks: Sequence[Expensive], *, straight: bool, native: bool, failed: int
) -> Iterator[str]:
    """The sentences, the most important first. `usual` is the way in which the batch is run without being told."""
    if failed:
        yield f"{failed} of {lanes} lanes failed: what they would have gone on to do is not in the figures"
    if straight:
        yield (
            "there is no loop, branch or call that lanes differ in: every lane does the same, and `tf.vectorized_map` "
            "or `vmap` would do as well"
        )
        return
    if not blocks:
        how = "in native code, lane after lane" if native else "in lockstep"
        yield (
            "no block has expensive rows: a row costs less than to look who waits for it, so sharing gains nothing; "
            f"this runs {how}; `vmap` or a masked loop, which cannot recurse, does as well where all lanes go the same "
            "way for as long"
        )
        return
    if lanes == 1:
        yield "there is one lane, and nobody to share a launch with: give more examples at once"
        return
    for block in blocks:
        figures = usual.blocks.get(block.label)
        if figures is not None:
            yield from _of_block(block, figures.launches, figures.rows, figures.active)


def _of_block(block: Expensive, launches: int, rows: int, active: int) -> Iterator[str]:
    where = f"line {block.line} ({block.text})"
    fewest = min(block.by_depth, block.by_agenda)
    if fewest < FEW * min(launches, block.longest):
        yield (
            f"{where} ran {launches:,} times, and {fewest:,} would do if an example's own independent calls, as those "
            "of a tree's children, ran at once: see whether `fork=True` gains"
        )
    elif launches > APART * block.longest:
        yield (
            f"{where} ran {launches:,} times, and the longest lane needs it {block.longest:,} times: lanes come to it "
            "at different times; `pcbatch.sync()` in front of it, or of its loop, makes them wait for each other"
        )
    if rows and active < IDLE * rows:
        yield (
            f"{1 - active / rows:.0%} of the rows of {where} were computed for nobody: many lanes were elsewhere, or "
            "had ended; more lanes at once, or examples of like length together, fill them"
        )
