"""Whole chains, from a key to draws, as one batched function: what `nuts.export` writes to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import random
from pcbatch.api import autobatch
from pcbatch.nuts.adaptation import adaptation
from pcbatch.nuts.adaptation.adaptation import plan_of
from pcbatch.nuts.kernel.algorithm import STATISTICS
from pcbatch.nuts.parameters.parameters import leaves, split
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.running.chain import Point, make_sampler
from pcbatch.nuts.running.density_programs import density_of_vector
from pcbatch.nuts.running.starts import NOISE
from pcbatch.nuts.settings import Settings


def whole_chain(
    log_density: Callable[..., Any], transform: Transform, settings: Settings, point: np.ndarray, state: Any, data: Any
) -> Any:
    """The batched function `(key)` or `(key, data) -> {"posterior": .., "sample_stats": ..}` of one chain.

    It starts at `point`, or around it as `settings.init` says, in this `state` of one chain otherwise; `data` is such
    as it will be given, or None.
    """
    dtype, size = tf.as_dtype(settings.dtype), transform.size
    chain = make_sampler(
        density_of_vector(log_density, transform, data is not None),
        dimensions=size,
        dtype=dtype,
        capacity=max(1, settings.draws),
        max_tree_depth=settings.max_tree_depth,
        leapfrogs_per_leaf=settings.leapfrogs_per_leaf,
        end_weight=settings.end_weight,
        kernel=settings.kernel,  # type: ignore[arg-type]
    ).chain
    first = tf.nest.map_structure(lambda array: np.asarray(array)[0], state)
    gradient, lowest = first.point.g, first.point.lp
    step_size, metric, averaging, window = first.step_size, first.metric, first.averaging, first.window
    ahead, none = first.phase, np.zeros((), np.int32)
    plan = plan_of(adaptation.plan(settings.warmup if settings.adapts else 0))
    warmup, draws = np.array(settings.warmup, np.int32), np.array(settings.draws * settings.thin, np.int32)
    longest, thin = np.array(max(1, settings.warmup), np.int32), np.array(settings.thin, np.int32)
    target = np.asarray(settings.target_accept, settings.dtype)
    middle = point if settings.init != "uniform" else 0 * point
    width = np.asarray(NOISE.get(settings.init, 0.0), settings.dtype)
    nothing, name = np.zeros((0,), settings.dtype), getattr(log_density, "__name__", "chain")

    def start(key: Any) -> Any:
        return middle + width * (2 * random.uniform(key, [size], dtype=dtype) - 1)

    def named(positions: Any, statistics: Any) -> dict[str, Any]:
        parameters = [*leaves(transform.layout)]
        parts = split(transform.forward(positions), [leaf for _, leaf in parameters])
        posterior = {
            name: tf.reshape(part, [-1, *leaf.shape]) for (name, leaf), part in zip(parameters, parts, strict=True)
        }
        return {"posterior": posterior, "sample_stats": _statistics(statistics, settings.leapfrogs_per_leaf)}

    @autobatch(in_axes=(0, None))
    def drawn(key: Any, data: Any) -> Any:
        begins, key = random.split(key)
        point = Point(start(begins), gradient, lowest)
        # Of the warm-up one row is kept, the last, and nobody looks at it.
        point, step, mass, average, seen, phase, trials, count, _, _ = chain(
            key,
            point,
            step_size,
            metric,
            averaging,
            window,
            ahead,
            none,
            none,
            plan,
            none,
            warmup,
            longest,
            target,
            data,
        )
        _, _, _, _, _, _, _, _, positions, statistics = chain(
            key, point, step, mass, average, seen, phase, trials, count, plan, warmup, draws, thin, target, data
        )
        return named(positions, statistics)

    @autobatch
    def drawn_without_data(key: Any) -> Any:
        return drawn(key, nothing)

    return (drawn_without_data if data is None else drawn).options(name=name, max_depth=settings.max_tree_depth + 3)


def _statistics(rows: Any, leapfrogs: int) -> Mapping[str, Any]:
    """The statistics `[draws]` under ArviZ's names."""
    columns = dict(zip(STATISTICS, tf.unstack(rows, axis=-1), strict=True))
    count = tf.cast(columns.pop("n_leaves"), tf.int32)
    return {
        **columns,
        "diverging": columns["diverging"] > 0,
        "tree_depth": tf.cast(columns["tree_depth"], tf.int32),
        "n_steps": count * leapfrogs,
    }
