"""The batched program of a density, kept so that it compiles once; what its gradient costs, and on which kernels."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from pcbatch.api import autobatch
from pcbatch.errors import PcbatchError, UsageError
from pcbatch.function.executing import called_within
from pcbatch.ir import machine
from pcbatch.ir.machine import Program
from pcbatch.nuts.kernel.dynamics import leapfrog, span_of, value_and_gradient
from pcbatch.nuts.parameters.parameters import unravel
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.running.chain import make_sampler
from pcbatch.nuts.running.groups import device
from pcbatch.nuts.settings import Settings
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.report.run import Run

# -- gradient block ----------------------------------------------------------------------------------------------------
# The block of a program that computes gradients: its rows are a run's cost, counted and estimated.

CALLS = tuple(f"{function.__name__}(" for function in (leapfrog, value_and_gradient))
"""Text in the sampler's lines that compute gradients, and in no others."""


def gradient_blocks(program: Program) -> tuple[int, ...]:
    """The numbers of the blocks with such a line: one, or more if the compiler has made copies of it.

    LookupError where there is none, rather than the figures of some other block.
    """
    found = tuple(
        number
        for number, block in enumerate(program.blocks)
        if any(call in span.text for span in machine.spans(program, block) for call in CALLS)
    )
    if not found:
        raise LookupError(f"no block of {program.name} computes a gradient")
    return found


def gradient_rows(run: Run) -> tuple[int, int]:
    """The number of rows of gradients that a run of `chain` needed, and the number that it computed."""
    return GradientRows().of(run)


class GradientRows:
    """The same, for one run after another: in the text of their program the blocks are looked for once."""

    def __init__(self) -> None:
        self._last: tuple[Program | None, list[int]] = (None, [])

    def of(self, run: Run) -> tuple[int, int]:
        """The rows of one run."""
        program, blocks = self._last
        if run.program is not program:
            blocks = [*gradient_blocks(run.program)]
            self._last = (run.program, blocks)
        active, computed = (np.asarray(counts) for counts in (run.outcome.active, run.outcome.rows))
        return int(active[blocks].sum()), int(computed[blocks].sum())


_rows: WeakKeyDictionary[Any, GradientRows] = WeakKeyDictionary()


def gradient_rows_of(chain: Any) -> GradientRows:
    """The rows of a batched program's runs, kept with it: to look through its text takes a fifth of a short call."""
    return _rows.setdefault(chain, GradientRows())


# -- density programs --------------------------------------------------------------------------------------------------

TRIALS = 5
"""The number of times that a gradient is timed each way."""


def check_call(log_density: Callable[..., Any], with_data: bool) -> None:
    """Refuse a density that does not take what it is called with, at its own line: PCB551."""
    try:
        signature = inspect.signature(log_density)
    except (TypeError, ValueError):  # nothing is known of its parameters, or it is no function
        signature = None
    if not callable(log_density):
        raise UsageError("PCB551", f"log_density must be a function, not {type(log_density).__name__}")
    given = ("the parameters", "data") if with_data else ("the parameters",)
    try:
        if signature is not None:
            signature.bind(*given)
    except TypeError:
        way = "let it take both, `def log_density(params, data):`" if with_data else "hand over the second as data="
        told = f"the log density is called with {' and '.join(given)}, but is defined with {signature}: {way}"
        raise UsageError("PCB551", told, span_of(log_density)) from None


def density_of_vector(log_density: Callable[..., Any], transform: Transform, with_data: bool) -> Callable[..., Any]:
    """`(q, data) -> scalar`: the log density of an unconstrained position `[size]`, Jacobians included."""

    def density(q: tf.Tensor, data: Any) -> tf.Tensor:
        parameters = unravel(transform.layout, transform.forward(q))
        found = log_density(parameters, data) if with_data else log_density(parameters)
        return found + transform.log_jacobian(q) if any(transform.bijectors) else found

    return functools.update_wrapper(density, log_density, assigned=(), updated=())  # whose faults are the user's


def chain_of(
    log_density: Callable[..., Any],
    transform: Transform,
    with_data: bool,
    settings: Settings,
    waits: bool,
    form: Literal["auto", "native"] = "auto",
) -> Any:
    """The batched function that runs a stretch of chains, which wait for each other at gradients or not."""
    return _chosen(
        log_density,
        transform,
        with_data,
        settings.dtype,
        settings.chunk,
        settings.max_tree_depth,
        settings.leapfrogs_per_leaf,
        settings.end_weight,
        settings.kernel,
        waits,
        schedule=settings.schedule,
        jit=settings.jit,
        strategy=settings.strategy,
        form=form,
    )


@functools.lru_cache(maxsize=32)
def _chosen(*sampler: Any, **options: Any) -> Any:
    """The chain of a sampler under some options, kept: to check options takes a tenth of a short run's host time."""
    return _chain(*sampler).options(**options)


@functools.lru_cache(maxsize=32)
def _chain(
    log_density: Callable[..., Any],
    transform: Transform,
    with_data: bool,
    dtype: str,
    capacity: int,
    max_tree_depth: int,
    leapfrogs_per_leaf: int,
    end_weight: float,
    kernel: Literal["multinomial", "slice"],
    waits: bool,
) -> Any:
    return make_sampler(
        density_of_vector(log_density, transform, with_data),
        dimensions=transform.size,
        dtype=tf.as_dtype(dtype),
        capacity=capacity,
        max_tree_depth=max_tree_depth,
        leapfrogs_per_leaf=leapfrogs_per_leaf,
        end_weight=end_weight,
        kernel=kernel,
        waits=waits,
    ).chain


@functools.lru_cache(maxsize=32)
def _gradient(log_density: Callable[..., Any], transform: Transform, with_data: bool) -> Any:
    """The batched function `(q, data) -> (log density, gradient)`."""
    density = density_of_vector(log_density, transform, with_data)

    @autobatch(in_axes=(0, None))
    def gradient(q: tf.Tensor, data: Any) -> tuple[tf.Tensor, tf.Tensor]:
        return value_and_gradient(density, q, data)

    return gradient


def values_and_gradients(
    log_density: Callable[..., Any], transform: Transform, data: Any, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log densities `[n]` and gradients `[n, size]` at some unconstrained positions `[n, size]`."""
    operand = np.zeros((0,), positions.dtype) if data is None else data
    value, gradient = _gradient(log_density, transform, data is not None)(positions, operand)
    return np.asarray(value), np.asarray(gradient)


class Work(NamedTuple):
    """The work of one chain's gradient, in the unit of `runtime.costs`."""

    cost: float
    shares: bool = False
    """True if it has a product by something that all chains share, which is cheaper for several at once."""


_works: WeakKeyDictionary[Any, dict[tuple[Any, ...], Work]] = WeakKeyDictionary()
"""The results of `gradient_work`, by function and kinds of arguments."""


def gradient_work(log_density: Callable[..., Any], transform: Transform, data: Any, positions: np.ndarray) -> Work:
    """The estimated work of the gradient at one of `positions` `[chains, size]`.

    Infinite where it calls batched functions, each of which is a run of its own, and where it cannot be compiled, which
    will be said when it is run.
    """
    gradient = _gradient(log_density, transform, data is not None)
    kinds = tuple(map(_kind, tf.nest.flatten((positions[:1], data))))
    known = _works.setdefault(gradient, {})
    if kinds not in known:
        try:
            pipeline = gradient.pipeline(positions[:1], data)
            if called_within(pipeline.table, backend_named("tensorflow")):
                return Work(float("inf"))
            rows = [pipeline.row(number) for number in gradient_blocks(pipeline.table)]
            known[kinds] = Work(max(row.cost for row in rows), any(row.shares for row in rows))
        except PcbatchError:
            return Work(float("inf"))
    return known[kinds]


def metric_for(
    settings: Settings,
    inverse: Any,
    log_density: Callable[..., Any],
    transform: Transform,
    data: Any,
    positions: np.ndarray,
) -> Literal["diag", "dense"]:
    """The metric that "auto" stands for: that of the `inverse` mass matrix, if one is given, else what pays.

    With a dense one a leaf costs more, by several products of a matrix and a vector, and of correlated parameters there
    are a tenth of the leaves.
    """
    if inverse is not None:
        return "dense" if np.ndim(inverse) == 2 else "diag"
    size = positions.shape[1]
    if not settings.adapts or settings.jit is not True or not 1 < size <= device().dense_largest:
        return "diag"
    work = settings.leapfrogs_per_leaf * gradient_work(log_density, transform, data, positions).cost
    return "dense" if np.isfinite(work) and device().dense_entry * size**2 <= work else "diag"


def _kind(leaf: Any) -> Any:
    """The properties of an array that the estimate may depend on: its dtype and shape."""
    return getattr(leaf, "dtype", type(leaf)), tuple(getattr(leaf, "shape", ()))


def faster(log_density: Callable[..., Any], transform: Transform, data: Any, positions: tf.Tensor) -> bool:
    """Tell whether XLA computes the gradients at `positions` `[chains, size]` faster than TensorFlow's own kernels."""
    density = density_of_vector(log_density, transform, data is not None)

    def gradients(positions: tf.Tensor, data: Any) -> Any:
        return tf.vectorized_map(lambda q: value_and_gradient(density, q, data), positions)

    operand = None if data is None else tf.nest.map_structure(tf.convert_to_tensor, data)
    return seconds(gradients, True, positions, operand) <= seconds(gradients, False, positions, operand)


def seconds(function: Callable[..., Any], jit: bool, *arguments: Any) -> float:
    """The shortest time of a call, under XLA or by TensorFlow's own kernels, once it is compiled."""
    compiled = tf.function(function, jit_compile=jit, autograph=False)
    times = []
    for _ in range(TRIALS + 1):
        started = time.perf_counter()
        tf.nest.map_structure(lambda tensor: tensor.numpy(), compiled(*arguments))
        times.append(time.perf_counter() - started)
    return min(times[1:])
