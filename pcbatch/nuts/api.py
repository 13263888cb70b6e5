"""`pcbatch.nuts.sample` and `pcbatch.nuts.resume`: the sampler as its users call it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import tensorflow as tf

from pcbatch.errors import CompileError, Diagnostic, UsageError
from pcbatch.function.primitives import from_jax, is_of_jax
from pcbatch.nuts.parameters import models
from pcbatch.nuts.parameters.parameters import cast, dtype_of, layout_of
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.results import reports, savefile
from pcbatch.nuts.results.draws import Origin
from pcbatch.nuts.results.samples import Samples
from pcbatch.nuts.running import density_programs, diagnosis, extras, resuming, shards, starts
from pcbatch.nuts.running.chain import LANES
from pcbatch.nuts.running.exporting import whole_chain
from pcbatch.nuts.running.sampling_run import RunState, SamplingRun, chunk_size
from pcbatch.nuts.settings import Settings
from pcbatch.runtime.backends.tensorflow.operands import UNCAST

_FLOATS = re.compile(r"\bb?float\d+\b")
"""The floats that a message names."""


def sample(
    log_density: Callable[..., Any],
    initial: Any = None,
    *,
    data: Any = None,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    seed: int = 0,
    init: Literal["jitter", "uniform", "exact"] = "jitter",
    initial_per_chain: Any = None,
    superchains: int | None = None,
    step_size: Any = None,
    inverse_mass_matrix: Any = None,
    metric: Literal["auto", "diag", "dense"] = "auto",
    target_accept: float = 0.8,
    max_tree_depth: int = 10,
    leapfrogs_per_leaf: int = 1,
    end_weight: float = 1.0,
    adapt: Literal["per_chain", "pooled"] | None = "per_chain",
    kernel: Literal["multinomial", "slice"] = "multinomial",
    bijectors: Mapping[str, Any] | None = None,
    thin: int = 1,
    save_warmup: bool = False,
    dtype: Any = None,
    progress: bool = True,
    jit: bool | Literal["auto"] = True,
    schedule: str = "auto",
    strategy: Literal["pc", "local", "hybrid"] = "pc",
    chunk: int | None = None,
    executor: Executor | None = None,
    extra: Callable[..., Any] | None = None,
) -> Samples:
    """Draw from a density with the No-U-Turn sampler, all chains in one batched program.

    Args:
        log_density: `log_density(params)` or, with `data`, `log_density(params, data)`: TensorFlow code for one
            example that returns a scalar, up to a constant, or code of JAX (see `pcbatch.from_jax`). The same function
            object compiles once for each structure of arguments. Or a model of TensorFlow Probability, with its
            observed values pinned, such as `joint.experimental_pin(y=y)`, which brings its bijectors with it.
        initial: parameters of one example in any structure of dicts, tuples, dataclasses and arrays; of a model those
            at which the unconstrained ones are zero, by default.
        data: what `log_density` is given beside the parameters, unbatched; new data of equal shapes compile nothing.
            Floats are cast to `dtype`, ints stay ints.
        chains: how many; a chain's random numbers depend on `seed` and its own number alone.
        warmup: trajectories that come before the first draw, in which step size and metric are adapted.
        draws: of each chain.
        seed: of the random numbers.
        init: chains start at `initial` plus uniform noise from (-1, 1) in each coordinate ("jitter"), uniformly in
            (-2, 2) ("uniform"), or at `initial` ("exact"); coordinates are those before bijectors. Where the density
            or its gradient is not finite another point is drawn, a hundred times at most.
        initial_per_chain: instead of `initial`'s values, `[chains, ...]` starting points in the same structure, used
            exactly.
        superchains: start chains in so many groups, each from one point, and warn by nested R-hat instead of R-hat:
            for many chains of few draws. Points of `initial_per_chain` have to be in such groups.
        step_size: of the leapfrog integrator, a number or one for each chain; where the adaptation begins, if there is
            one (else it must be given).
        inverse_mass_matrix: the metric at the start, `[size]` for a diagonal and `[size, size]` for a dense one, in the
            order of the parameters in `initial`, before bijectors; ones by default.
        metric: "diag", a scale for each coordinate, or "dense", a covariance matrix; both are learned from draws and
            their gradients. "auto" takes a dense one where products by it cost little beside a gradient;
            `Samples.settings.metric` says which.
        target_accept: the mean acceptance probability that the step size is adapted to.
        max_tree_depth: a trajectory has at most `2**max_tree_depth - 1` points.
        leapfrogs_per_leaf: integration steps from one point of a trajectory to the next.
        end_weight: how much the ends of a trajectory count in the U-turn criterion: 1 as in Stan, 0.5 as in NumPyro and
            BlackJAX. Less makes long trajectories shorter, which pays for variances and tails, not for means.
        adapt: "per_chain", each chain from its own draws; "pooled", all from the draws of all, so that chains are no
            longer independent of each other in the warm-up; None leaves step size and metric as they are given.
        kernel: "multinomial" (Betancourt 2017, as Stan has it) or "slice" (Hoffman and Gelman 2014).
        bijectors: by the name of a parameter, where it may be: `nuts.positive`, `nuts.lower(low)`, `nuts.upper(high)`,
            `nuts.interval(low, high)`, `nuts.ordered`, `nuts.simplex`, `nuts.unit_vector`, `nuts.zero_sum`,
            `nuts.cholesky_corr`, `nuts.cholesky_cov`, or an object with the methods `forward`, `inverse` and
            `forward_log_det_jacobian`, such as a bijector of TensorFlow Probability. The density is that of the
            constrained parameters; Jacobians are added here.
        thin: trajectories from one draw to the next.
        save_warmup: whether the draws of the warm-up are given back, too.
        dtype: of the computation; by default float64 if `initial` has a float64 array, else float32.
        progress: whether a bar is shown.
        jit: compile with XLA; False runs TensorFlow's own kernels; "auto" times the gradient both ways and takes the
            faster, which `Samples.settings.jit` records.
        schedule: how the machine chooses blocks, as in `pcbatch.autobatch`. Chains wait for each other at gradients
            under all of them but "switch"; with "auto", where gradients are cheap, only while that pays.
        strategy: as in `pcbatch.autobatch`; others than "pc" are there to be compared with.
        chunk: trajectories after which draws leave the machine and chains wait for each other; by default as many as
            memory allows, 250 at most. Another chunk compiles anew.
        executor: runs the chains on its workers, in parts, as `pcbatch.shard` runs lanes: a process pool, Dask's
            `client.get_executor()`, .. Draws are those of one process. Ctrl-C gives nothing back then.
        extra: a function of the parameters of one draw and of `data`, if there is some, that gives a structure of
            arrays, such as predictions, or pointwise log likelihoods: `Samples.extra`. It runs batched, after sampling.
            If it has a parameter `key`, it gets a key of `pcbatch.random`, another one for each draw.

    Returns:
        The draws. What speaks against trusting them is said in warnings (`SamplerWarning`). Ctrl-C gives back what is
        there, and `Samples.save` and `resume` go on with it.

    Raises:
        UsageError: PCB551 for options that make no sense, PCB558 for bijectors that do not fit, PCB557 where chains
            find no point to start at, or where the one that they are given has no finite density.
        ValueError: if every chain failed, since the posterior is improper.
    """
    log_density, initial, initial_per_chain, bijectors, dtype = _read(
        log_density, initial, initial_per_chain, bijectors, data, dtype
    )
    density_programs.check_call(log_density, data is not None)
    transform = Transform.of(layout_of(initial), bijectors, dtype)
    settings = Settings(
        chains=chains,
        warmup=warmup,
        draws=draws,
        seed=seed,
        init=init,
        metric=metric,
        target_accept=target_accept,
        max_tree_depth=max_tree_depth,
        leapfrogs_per_leaf=leapfrogs_per_leaf,
        end_weight=end_weight,
        adapt=adapt,
        kernel=kernel,
        thin=thin,
        save_warmup=save_warmup,
        dtype=dtype.name,
        jit=jit,
        schedule=schedule,
        strategy=strategy,
        superchains=superchains,
        chunk=chunk_size(chains, transform.size) if chunk is None else chunk,
    )
    data = None if data is None else cast(data, settings.dtype, "data")
    places, keys = starts.starts_of(settings, transform, initial, initial_per_chain)
    positions = places.positions()
    if metric == "auto":
        chosen = density_programs.metric_for(settings, inverse_mass_matrix, log_density, transform, data, positions)
        settings = replace(settings, metric=chosen)
    state = starts.starting_state(settings, positions, step_size, inverse_mass_matrix)
    if jit == "auto":
        settings = replace(settings, jit=density_programs.faster(log_density, transform, data, positions))
    savefile.hand_over(log_density)
    origin = Origin(log_density, data, transform, keys, state, 0)
    if extra is not None:
        extras.check(extra, origin)
    with _naming_dtype(settings.dtype):
        if executor is not None:
            return _told(shards.sampled(settings, origin, places, executor, progress), extra)
        return _told(SamplingRun(settings, RunState(origin), places).run(progress), extra)


def export(
    path: str | os.PathLike[str],
    log_density: Callable[..., Any],
    initial: Any = None,
    *,
    data: Any = None,
    warmup: int = 1000,
    draws: int = 1000,
    init: Literal["jitter", "uniform", "exact"] = "jitter",
    step_size: Any = None,
    inverse_mass_matrix: Any = None,
    metric: Literal["diag", "dense"] = "diag",
    target_accept: float = 0.8,
    max_tree_depth: int = 10,
    leapfrogs_per_leaf: int = 1,
    end_weight: float = 1.0,
    adapt: Literal["per_chain"] | None = "per_chain",
    kernel: Literal["multinomial", "slice"] = "multinomial",
    bijectors: Mapping[str, Any] | None = None,
    thin: int = 1,
    dtype: Any = None,
    platforms: Sequence[str] = ("cpu", "cuda"),
) -> None:
    """Write the sampler of a density to a file, for processes that have JAX and no TensorFlow.

    There `pcbatch.exported.load(path)` gives a function of keys, uint32 `[chains, 2]`, as
    `jax.random.split(jax.random.PRNGKey(0), chains)` gives them, and of `data`, if there is some: it returns
    `{"posterior": .., "sample_stats": ..}`, arrays `[chains, draws, ..]` by name. Draws have the distribution of those
    of `sample`, not the same bits. A chain whose density is not finite where it starts fails (its status says so); no
    other point is tried.

    Args:
        path: the path of the file, which is replaced.
        log_density: as in `sample`.
        initial: parameters of one example; chains start there or, by `init`, around it.
        data: of the dtypes and shapes that will be given; the numbers do not count.
        warmup: as in `sample`.
        draws: as in `sample`.
        init: as in `sample`.
        step_size: as in `sample`, one number.
        inverse_mass_matrix: as in `sample`.
        metric: the kind of metric; a "dense" one is not learned, but may be given as `inverse_mass_matrix`.
        target_accept: as in `sample`.
        max_tree_depth: as in `sample`.
        leapfrogs_per_leaf: as in `sample`.
        end_weight: as in `sample`.
        adapt: as in `sample`, but for "pooled".
        kernel: as in `sample`.
        bijectors: as in `sample`.
        thin: as in `sample`.
        dtype: as in `sample`.
        platforms: the devices, as JAX calls them: "cpu", "cuda", "rocm". None of them need be here.

    Raises:
        UsageError: PCB551 and PCB558 as `sample`, PCB582 as `Batched.export`.
        OSError: the file cannot be written.
    """
    log_density, initial, _, bijectors, dtype = _read(log_density, initial, None, bijectors, data, dtype)
    transform = Transform.of(layout_of(initial), bijectors, dtype)
    settings = Settings(
        chains=1,
        warmup=warmup,
        draws=draws,
        seed=0,
        init=init,
        metric=metric,
        target_accept=target_accept,
        max_tree_depth=max_tree_depth,
        leapfrogs_per_leaf=leapfrogs_per_leaf,
        end_weight=end_weight,
        adapt=adapt,
        kernel=kernel,
        thin=thin,
        save_warmup=False,
        dtype=dtype.name,
        jit=True,
        schedule="auto",
        chunk=max(1, draws),
    )
    if not draws:
        raise UsageError("PCB551", "draws must be an int of at least 1, not 0: an exported chain is of these")
    if settings.adapt == "pooled":
        raise UsageError("PCB551", "exported chains know nothing of each other: adapt must be 'per_chain' or None")
    if settings.metric != "diag" and settings.adapts:
        why = "exported chains learn a diagonal metric, or have an inverse_mass_matrix and adapt=None"
        raise UsageError("PCB551", f"{why}: metric must be 'diag', not {settings.metric!r}")
    data = None if data is None else cast(data, settings.dtype, "data")
    places, _ = starts.starts_of(settings, transform, initial, None)
    state = starts.starting_state(settings, places.point[None], step_size, inverse_mass_matrix)
    chain = whole_chain(log_density, transform, settings, places.point, state, data)
    keys = tf.TensorSpec([LANES, 2], tf.uint32)
    with _naming_dtype(settings.dtype):
        chain.export(path, keys, *([] if data is None else [data]), platforms=platforms)


def resume(
    path: str | os.PathLike[str],
    *,
    draws: int | None = None,
    log_density: Callable[..., Any] | None = None,
    bijectors: Mapping[str, Any] | None = None,
    extra: Callable[..., Any] | None = None,
    progress: bool = True,
) -> Samples:
    """Go on with samples that `Samples.save` wrote, exactly as if they had not been interrupted.

    Args:
        path: the file.
        draws: how many more draws of each chain; by default what is left of those that were asked for.
        log_density: the density, in a process that has not sampled it yet. Nothing is imported or run for a name in a
            file: classes of the data and the parameters must be loaded, too.
        bijectors: by the name of a parameter, those of them that are none of pcbatch's own.
        extra: as in `sample`, of all draws.
        progress: whether a bar is shown.

    Returns:
        All draws, those of the file first.

    Raises:
        OSError: if the file cannot be read.
        UsageError: PCB590 for a file that is damaged or something else, PCB591 for one of another version, PCB592 if
            density or bijectors are not what they were or the arrays are not those of the settings, PCB595 for what is
            no path.
    """
    if draws is not None and (isinstance(draws, bool) or not isinstance(draws, int) or draws < 0):
        raise UsageError("PCB551", f"draws must be None or an int of at least 0, not {draws!r}")
    saved = savefile.read(path)
    given: Any = bijectors
    if log_density is not None:
        if models.is_model(log_density):
            model = models.read(log_density)
            log_density, given = model.density, model.bijector if bijectors is None else bijectors
        elif is_of_jax(log_density):
            log_density = from_jax(log_density)
        savefile.hand_over(log_density)
    samples = resuming.samples_of(saved, saved.density(log_density), given)
    if draws is not None:
        samples = replace(samples, settings=samples.settings.with_draws(samples.draws + draws))
    if extra is not None:
        extras.check(extra, samples.origin)
    return _told(SamplingRun.after(samples).run(progress), extra)


def _read(
    log_density: Any, initial: Any, initial_per_chain: Any, bijectors: Any, data: Any, dtype: Any
) -> tuple[Any, Any, Any, Any, tf.DType]:
    """The density as a function of TensorFlow, with what a model brings along where nothing else is given."""
    if models.is_model(log_density):
        if data is not None:
            raise UsageError("PCB551", "a model has its data pinned: model.experimental_pin(y=..), without data=")
        model = models.read(log_density)
        if dtype is not None and tf.as_dtype(dtype) != model.dtype:
            raise UsageError("PCB551", f"dtype must be that of the model, {model.dtype.name}, or be left away")
        given = [None if each is None else model.named(each) for each in (initial, initial_per_chain)]
        initial = model.initial if given[0] is None else given[0]
        return model.density, initial, given[1], model.bijector if bijectors is None else bijectors, model.dtype
    if initial is None:
        raise UsageError("PCB551", "initial must be parameters of one example; only a model has some of its own")
    function = from_jax(log_density) if is_of_jax(log_density) else log_density
    return function, initial, initial_per_chain, bijectors, tf.as_dtype(dtype) if dtype else dtype_of(initial)


@contextmanager
def _naming_dtype(dtype: str) -> Iterator[None]:
    """Add to refusals of mixed floats in a density that `dtype=` is an alternative to casts."""
    try:
        yield
    except CompileError as error:
        raise type(error)([_with_dtype(each, dtype) for each in error.diagnostics]) from None


def _with_dtype(found: Diagnostic, dtype: str) -> Diagnostic:
    floats = {*_FLOATS.findall(found.message)} if UNCAST in f"{found.message} {found.help}" else set()
    if dtype not in floats or len(floats) != 2:
        return found
    (other,) = floats - {dtype}
    return replace(found, help=f"{found.help}, or have the sampler compute in it: nuts.sample(.., dtype=tf.{other})")


def _told(samples: Samples, extra: Callable[..., Any] | None) -> Samples:
    """The samples, with `extra`, after warnings at the line that asked for them; ValueError if every chain failed."""
    if len(samples.failed) == samples.chains:
        why = samples.failed[0]
        where = diagnosis.faults(samples.origin) if reports.IMPROPER in why else ""
        raise ValueError(f"all {samples.chains} chains failed, the first with: {why}{where and f' ({where})'}")
    reports.warn(samples, stacklevel=3, faults=partial(diagnosis.faults, samples.origin))
    return samples if extra is None else replace(samples, extra=extras.computed(extra, samples))
