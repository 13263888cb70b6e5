"""`pcbatch.nuts.sample`: the sampler as its users call it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from pcbatch import UsageError, random
from pcbatch.nuts.adaptation import plan_of
from pcbatch.nuts.algorithm import STATISTICS
from pcbatch.nuts.chain import fresh_state, gradient_rows, make_sampler
from pcbatch.nuts.parameters import Layout, by_name, dtype_of, layout_of, leaves, ravel, unravel
from pcbatch.nuts.samples import Cost, Samples


def sample(
    log_density: Callable[..., Any],
    initial: Any,
    *,
    step_size: float,
    data: Any = None,
    chains: int = 4,
    draws: int = 1000,
    seed: int = 0,
    init: Literal["jitter", "exact"] = "jitter",
    initial_per_chain: Any = None,
    max_tree_depth: int = 10,
    leapfrogs_per_leaf: int = 1,
    dtype: Any = None,
    chunk: int = 1000,
    schedule: str = "auto",
) -> Samples:
    """Draw from a density with the No-U-Turn sampler, all chains in one batched program.

    The step size is fixed and the metric is the unit matrix: scale the parameters to comparable size.

    Args:
        log_density: `log_density(params)` or, with `data`, `log_density(params, data)`: TensorFlow code for one
            example that returns a scalar, up to a constant. The same function object compiles once for each structure
            of arguments.
        initial: parameters of one example in any structure of dicts, tuples and arrays.
        step_size: of the leapfrog integrator.
        data: what `log_density` is given beside the parameters, unbatched; new data of equal shapes compile nothing.
        chains: how many; a chain's random numbers depend on `seed` and its own number alone.
        draws: trajectories per chain; one draw is kept of each. There is no warm-up: discard what you do not trust.
        seed: of the random numbers.
        init: chains start at `initial` plus uniform noise from (-1, 1) in each coordinate ("jitter") or there
            ("exact").
        initial_per_chain: instead of `initial`'s values, `[chains, ...]` starting points in the same structure, used
            exactly.
        max_tree_depth: a trajectory has at most `2**max_tree_depth - 1` points.
        leapfrogs_per_leaf: integration steps from one point of a trajectory to the next.
        dtype: of the computation; by default float64 if `initial` has a float64 array, else float32.
        chunk: draws that leave the machine at a time; another chunk compiles anew, another number of draws does not.
        schedule: how the machine chooses blocks, as in `pcbatch.autobatch`; with "auto" chains gather at the gradient
            where it is dear, with "earliest" gradients are computed only when no chain can do anything else.

    Returns:
        The draws; chains that failed (a log density that is not finite at the start) are NaN, and a warning names them.

    Raises:
        UsageError: PCB551 for options that make no sense.
        ValueError: if every chain failed.
    """
    if min(chains, draws, chunk, leapfrogs_per_leaf) < 1 or max_tree_depth < 1 or not step_size > 0:
        raise UsageError(
            "PCB551", "chains, draws, chunk, step_size, max_tree_depth and leapfrogs_per_leaf must be positive"
        )
    if init not in ("jitter", "exact"):
        raise UsageError("PCB551", f'init must be "jitter" or "exact", not {init!r}')
    layout = layout_of(initial)
    dtype = tf.as_dtype(dtype) if dtype is not None else dtype_of(initial)
    chain = _chain(log_density, data is not None, layout, dtype, chunk, max_tree_depth, leapfrogs_per_leaf, schedule)
    starts, keys = _starts(initial, initial_per_chain, chains, init, seed, dtype)

    operand = data if data is not None else tf.zeros((0,), dtype)  # the program always takes one
    state = fresh_state(starts, np.ones(layout.size), step_size)
    plan, thin, target = plan_of([]), tf.constant(1), tf.constant(0.8, dtype)
    positions, statistics, runs = [], [], []
    for first in range(0, draws, chunk):
        count = min(chunk, draws - first)
        run = chain.run(keys, state, plan, tf.constant(first), tf.constant(count), thin, target, operand)
        state, *kept = run.value
        moved, rows = (np.asarray(array)[:, :count] for array in kept)
        positions.append(moved)
        statistics.append(rows)
        runs.append(run)
    _report_failures(runs, chains)

    columns = dict(zip(STATISTICS, np.moveaxis(np.concatenate(statistics, axis=1), -1, 0), strict=True))
    points = columns.pop("n_leaves")
    needed, computed = np.sum([gradient_rows(run) for run in runs], axis=0).tolist()
    sample_stats = {
        **columns,
        "diverging": columns["diverging"] > 0,
        "tree_depth": np.nan_to_num(columns["tree_depth"]).astype(int),
        "n_steps": np.nan_to_num(points).astype(int) * leapfrogs_per_leaf,
    }
    cost = Cost(needed * leapfrogs_per_leaf, computed * leapfrogs_per_leaf)
    return Samples(by_name(layout, np.concatenate(positions, axis=1)), sample_stats, cost, chain.stats(), tuple(runs))


@lru_cache(maxsize=32)
def _chain(
    log_density: Callable[..., Any],
    with_data: bool,
    layout: Layout,
    dtype: tf.DType,
    capacity: int,
    max_tree_depth: int,
    leapfrogs_per_leaf: int,
    schedule: str,
) -> Any:
    """The batched function `Sampler.chain` of a density of structured parameters; kept, so that it compiles once."""

    def density_of_vector(q: tf.Tensor, data: Any) -> tf.Tensor:
        parameters = unravel(layout, q)
        return log_density(parameters, data) if with_data else log_density(parameters)

    sampler = make_sampler(
        density_of_vector,
        dimensions=layout.size,
        dtype=dtype,
        capacity=capacity,
        max_tree_depth=max_tree_depth,
        leapfrogs_per_leaf=leapfrogs_per_leaf,
    )
    return sampler.chain.options(schedule=schedule)


def _starts(
    initial: Any, initial_per_chain: Any, chains: int, init: str, seed: int, dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """Starting points `[chains, dimensions]` and the keys of the chains."""
    pairs = tf.vectorized_map(random.split, random.keys(seed, chains))
    start_keys, run_keys = pairs[:, 0], pairs[:, 1]
    if initial_per_chain is not None:
        expected = [(name, (chains, *leaf.shape)) for name, leaf in leaves(layout_of(initial))]
        given = [(name, leaf.shape) for name, leaf in leaves(layout_of(initial_per_chain))]
        if given != expected:
            raise UsageError("PCB551", f"initial_per_chain must have the arrays {expected}, not {given}")
        return tf.constant(ravel(initial_per_chain, batch=1), dtype), run_keys
    point = tf.constant(ravel(initial), dtype)
    if init == "exact":
        return tf.tile(point[tf.newaxis], (chains, 1)), run_keys
    noise = tf.vectorized_map(lambda key: random.uniform(key, point.shape.as_list(), dtype, -1.0, 1.0), start_keys)
    return point + noise, run_keys


def _report_failures(runs: list[Any], chains: int) -> None:
    """Warn about chains that failed; raise if all did."""
    errors = {error.lane: error for run in reversed(runs) for error in run.errors}
    if not errors:
        return
    first = errors[min(errors)]
    message = f"{len(errors)} of {chains} chains failed ({sorted(errors)}), the first with: {first.message}"
    if len(errors) == chains:
        raise ValueError(message)
    warnings.warn(message, RuntimeWarning, stacklevel=3)
