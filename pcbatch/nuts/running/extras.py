"""Quantities computed of each draw: generated quantities, pointwise log likelihoods, predictions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import random
from pcbatch.api import autobatch
from pcbatch.errors import UsageError
from pcbatch.nuts.kernel.dynamics import span_of
from pcbatch.nuts.parameters.parameters import Layout, Leaf, arrays_of, layout_of, leaves, made, split
from pcbatch.nuts.results.draws import Origin
from pcbatch.nuts.results.samples import Samples

LANES = 4096
"""Draws that are computed together, at most: other numbers would compile anew, and memory stays bounded."""
KEY = "key"
"""The parameter of a function that gets a random key for each draw."""


def check(function: Callable[..., Any], origin: Origin) -> None:
    """Raise what speaks against a function, before anything is sampled.

    UsageError PCB551 where it does not take what it is called with, any error of compiling it.
    """
    _check_call(function, origin.data is not None)
    vector = origin.transform.values(np.zeros((1, origin.transform.size), np.asarray(origin.state.point.q).dtype))
    _batched(function).check(*_arguments(function, origin, vector, np.asarray(origin.keys)[:1], np.zeros(1, np.int32)))


def computed(function: Callable[..., Any], samples: Samples) -> dict[str, np.ndarray]:
    """A function of each draw, by name `[chains, draws, ..]`; NaN, or 0, where a chain or the function fails."""
    origin, chains = samples.origin, np.flatnonzero(samples.healthy)
    flat = [np.asarray(samples.posterior[name])[chains] for name, _ in leaves(origin.transform.layout)]
    if not flat or not samples.draws or not len(chains):
        return {}
    rows = np.concatenate([each.reshape(len(chains) * samples.draws, -1) for each in flat], axis=1)
    keys = np.repeat(np.asarray(origin.keys)[chains], samples.draws, axis=0)
    numbers = np.tile(np.arange(samples.draws, dtype=np.int32), len(chains))
    batched, lanes, parts = _batched(function), min(LANES, len(rows)), []
    for first in range(0, len(rows), lanes):
        # The last rows are filled up with copies of the first: another number of lanes would compile anew.
        place = np.arange(first, first + lanes) % len(rows)
        parts.append(batched.run(*_arguments(function, origin, rows[place], keys[place], numbers[place])).value)
    whole = tf.nest.map_structure(lambda *arrays: np.concatenate([*map(np.asarray, arrays)])[: len(rows)], *parts)
    names = [name for name, _ in leaves(layout_of(whole))]
    return {name: _of_all(samples, chains, array) for name, array in zip(names, arrays_of(whole), strict=True)}


def _arguments(
    function: Callable[..., Any], origin: Origin, rows: np.ndarray, keys: np.ndarray, numbers: np.ndarray
) -> list[Any]:
    """The arguments of a function, in the order of its parameters, for constrained positions `[n, layout.size]`."""
    given = [_structured(origin.transform.layout, rows), *([] if origin.data is None else [origin.data])]
    if not _takes_key(function):
        return given
    named = dict(zip([name for name in _parameters(function) if name != KEY], given, strict=False))
    named[KEY] = _keys(keys, numbers)
    return [named[name] for name in _parameters(function) if name in named]


def _structured(layout: Layout, rows: np.ndarray) -> Any:
    """The structure of parameters, each array `[n, ..]`, of laid out rows `[n, size]`."""
    if isinstance(layout, Leaf):
        return rows.reshape(len(rows), *layout.shape)
    parts = zip(layout.layouts, split(rows, layout.layouts), strict=True)
    return made(layout.kind, layout.names, [_structured(inner, part) for inner, part in parts])


def _of_all(samples: Samples, chains: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Rows of some chains as `[all chains, draws, ..]`."""
    nothing = np.nan if np.issubdtype(array.dtype, np.inexact) else 0
    whole = np.full((samples.chains, samples.draws, *array.shape[1:]), nothing, array.dtype)
    whole[chains] = array.reshape(len(chains), samples.draws, *array.shape[1:])
    return whole


@functools.lru_cache(maxsize=32)
def _batched(function: Callable[..., Any]) -> Any:
    """The batched function of the parameters of each draw, of its key, and of the data of all."""
    shared = [name for name in _parameters(function) if name != KEY][1:2]
    return autobatch(function, in_axes={name: None if name in shared else 0 for name in _parameters(function)})


@autobatch
def _keys(key: Any, number: Any) -> Any:
    """The key of a draw, from that of its chain."""
    return random.fold_in(random.fold_in(key, EXTRA), number)


EXTRA = -(2**31)
"""The number of the key of all that is not sampling: no trajectory has it."""


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def _takes_key(function: Callable[..., Any]) -> bool:
    return KEY in _parameters(function)


def _check_call(function: Callable[..., Any], has_data: bool) -> None:
    """PCB551, at its own line, for a function that does not take what it will be called with."""
    if not callable(function):
        raise UsageError("PCB551", f"extra must be a function of the parameters, not {type(function).__name__}")
    names = ["the parameters", *(["data"] if has_data else [])]
    try:
        signature = inspect.signature(function)
        signature.bind(*names, **({KEY: None} if _takes_key(function) else {}))
    except ValueError:
        return
    except TypeError:
        told = f"extra is called with {' and '.join(names)}, but is defined with {signature}"
        raise UsageError("PCB551", told, span_of(function)) from None
