"""Dataclasses, frozen and not, as values: made, replaced, read, nested, handed through a recursion."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32")


@dataclasses.dataclass(frozen=True)
class Range:
    """Where a root lies."""

    low: Any
    high: Any


@dataclasses.dataclass
class Search:
    """A range, and how often it has been halved."""

    where: Any
    steps: Any = 0


@pcbatch.autobatch
def halved(search, target, times):
    if times == 0:
        return search
    middle = (search.where.low + search.where.high) / 2.0
    if middle * middle < target:
        where = dataclasses.replace(search.where, low=middle)
    else:
        where = dataclasses.replace(search.where, high=middle)
    return halved(dataclasses.replace(search, where=where, steps=search.steps + 1), target, times - 1)


@pcbatch.autobatch
def dataclass_state(target, times):
    found = halved(Search(Range(tf.zeros_like(target), target + 1.0)), target, times)
    return found.where.high - found.where.low, found.steps


def batch(rng, lanes):
    return rng.uniform(0, 4, lanes).astype(np.float32), rng.integers(0, 7, lanes, dtype=np.int32)


def twin(target, times):
    return (target + 1) / 2**times, times
