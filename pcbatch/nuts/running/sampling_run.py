"""Runs chains chunk by chunk: what each trajectory is for goes in, draws and figures come out, memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.function.cache import Stats
from pcbatch.notice import silent
from pcbatch.nuts.adaptation import adaptation, pooling
from pcbatch.nuts.adaptation.adaptation import CLOSE, SEARCH, plan_of
from pcbatch.nuts.kernel.algorithm import STATISTICS
from pcbatch.nuts.kernel.metrics import learned_dense
from pcbatch.nuts.parameters.parameters import by_name
from pcbatch.nuts.results.draws import GROUPS, Cost, Origin
from pcbatch.nuts.results.samples import Samples
from pcbatch.nuts.running import density_programs, diagnosis
from pcbatch.nuts.running.chain import ChainState, padded, together
from pcbatch.nuts.running.density_programs import gradient_rows_of
from pcbatch.nuts.running.groups import are_expensive, device, groups_of, side_by_side
from pcbatch.nuts.running.starts import ATTEMPTS, NOT_FINITE, Starts
from pcbatch.nuts.settings import Settings
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.costs.device import GPU
from pcbatch.runtime.report.run import Run

# -- progress ----------------------------------------------------------------------------------------------------------
# The bar that sampling shows: trajectories, divergences, utilisation.

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


# -- sampling run ------------------------------------------------------------------------------------------------------

LONGEST_CHUNK = 250
"""Arrays; chains wait for each other at the end of a chunk, and a bar moves on."""
CHUNK_BYTES = 1 << 26
"""The most that the draws of a chunk may take on the device."""

Arrays = Mapping[str, np.ndarray]

_NATIVE: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()
"""Programs of which native code is made, with shapes of the data: to find that out takes a fifth of a short call."""


def chunk_size(chains: int, size: int) -> int:
    """The number of draws that a chunk has room for, for chains of `size` numbers in float64."""
    return max(1, min(LONGEST_CHUNK, CHUNK_BYTES // row_bytes(chains, size)))


def row_bytes(chains: int, size: int) -> int:
    """The bytes that a draw of each chain takes."""
    return 8 * max(1, chains) * (size + len(STATISTICS))


@dataclass(frozen=True)
class RunState:
    """The state of a run; replaced as a whole, so that an interruption finds it before a chunk or after it."""

    origin: Origin
    cost: Cost = Cost(0, 0)
    failed: Mapping[int, str] = field(default_factory=dict)
    chunks: Mapping[str, tuple[Arrays, ...]] = field(default_factory=lambda: dict.fromkeys(GROUPS, ()))


class SamplingRun:
    """A run as it goes on."""

    def __init__(self, settings: Settings, standing: RunState, starts: Starts | None = None):
        """`starts` are where chains begin that have not begun; None goes on from where they stand."""
        self.settings = settings
        self.standing = standing
        self._starts = starts

    @classmethod
    def after(cls, samples: Samples) -> SamplingRun:
        """The run that gave `samples`, to go on with."""
        chunks = {group: (getattr(samples, group),) for group in GROUPS}
        return cls(samples.settings, RunState(samples.origin, samples.cost, samples.failed, chunks))

    def run(self, shows_progress: bool) -> Samples:
        """Make the trajectories that are still to be made, or those before Ctrl-C."""
        settings, interrupted = self.settings, False
        with bar(settings, self.done, shows_progress) as watch:
            try:
                for _ in self._chunks():
                    watch(self.done, self.divergences, self.standing.cost.utilization)
            except KeyboardInterrupt:
                interrupted = True
        return self._samples(interrupted)

    @property
    def done(self) -> int:
        """The number of trajectories that each chain has made."""
        return self.standing.origin.done

    @property
    def state(self) -> ChainState:
        """The chains' state, arrays `[chains, ..]`."""
        return self.standing.origin.state

    @property
    def pool(self) -> pooling.Pool | None:
        """The state of pooled adaptation; None before it has one."""
        return self.standing.origin.pool

    @property
    def divergences(self) -> int:
        """The number of draws whose trajectories diverged."""
        return sum(int(np.count_nonzero(part["diverging"])) for part in self.standing.chunks["sample_stats"])

    @cached_property
    def actions(self) -> np.ndarray:
        """The purpose of each trajectory of the warm-up."""
        return adaptation.plan(self.settings.warmup if self.settings.adapts else 0)

    def _chunks(self) -> Iterator[None]:
        settings, starts = self.settings, self._starts
        if starts is not None and not self._has_begun():
            self._begin(starts)
        if settings.adapt == "pooled":
            yield from pooling.warm_up(self)
        while self.done < settings.trajectories:
            self._make_chunk()
            yield

    def _make_chunk(self) -> None:
        """Make the next trajectories, of the warm-up or of the draws."""
        settings = self.settings
        if self.done < settings.warmup:
            with self.whole_or_not():
                self.advance(min(settings.chunk, self._to_learn()), actions=self.actions)
                self._close_windows()
        else:
            left = (settings.trajectories - self.done) // settings.thin
            self.advance(min(settings.chunk, left) * settings.thin, thin=settings.thin, actions=self.actions)

    def _to_learn(self) -> int:
        """The number of trajectories up to the end of the warm-up, or to that of a window which is closed here."""
        ends = np.flatnonzero(self.actions[self.done :] == CLOSE)
        dense = self.settings.metric == "dense" and len(ends)
        return int(ends[0]) + 1 if dense else self.settings.warmup - self.done

    def _close_windows(self) -> None:
        """Let each chain learn a dense metric from its window, if that ends here, and search a step size."""
        if self.settings.metric == "dense" and CLOSE in self.actions[self.done - 1 : self.done]:
            state, phase = self.state, np.full(self.settings.chains, SEARCH, np.int32)
            metric = learned_dense(state.window, state.metric)
            empty = tf.nest.map_structure(np.zeros_like, state.window)
            self.remember(state=state._replace(metric=metric, window=empty, phase=phase))

    def _has_begun(self) -> bool:
        """Make the first chunk at once; False, with nothing done, if some chain cannot start where it stands.

        To look at the starts first would be a run of its own, which takes as long as a short chunk.
        """
        before, settings = self.standing, self.settings
        if settings.adapt == "pooled" or not settings.trajectories:
            return False
        self._make_chunk()
        if any(NOT_FINITE in text for text in self.standing.failed.values()):
            self.standing = before
            return False
        return True

    def _begin(self, starts: Starts) -> None:
        """Compute density and gradient where chains start; those that cannot start there try other points.

        UsageError PCB557 where there is none.
        """
        fresh, attempts = self.state, 1 if starts.are_given else ATTEMPTS
        self.advance(0)
        for attempt in range(1, attempts + 1):
            failed = {chain: text for chain, text in self.standing.failed.items() if NOT_FINITE in text}
            if not failed:
                return
            if attempt == attempts:
                why = diagnosis.start(self.standing.origin, starts.positions(attempt - 1)[min(failed)])
                raise starts.refused(failed, attempts, why)
            point = fresh.point._replace(q=starts.positions(attempt))
            chosen = np.isin(np.arange(self.settings.chains), [*failed])
            state = tf.nest.map_structure(partial(_where, chosen), fresh._replace(point=point), self.state)
            others = {chain: text for chain, text in self.standing.failed.items() if chain not in failed}
            self.standing = replace(self.standing, failed=others)
            self.remember(state=state)
            self.advance(0)

    def advance(self, count: int, *, actions: Any = (), thin: int = 1, **changes: Any) -> tuple[np.ndarray, Arrays]:
        """Make `count` trajectories of each chain: positions before bijectors `[chains, rows, size]`, and statistics.

        `actions` says what trajectories are for, counted from the first of the run; those beyond it give draws. A row
        is kept of each `thin`. `changes` are made to the chains' state before.
        """
        try:
            return self._advanced(count, actions, thin, changes)
        except UsageError as error:
            if error.code != "PCB534" or not self._is_native:
                raise
        # What the density reads from around it is something else now.
        _NATIVE.pop(self._native, None)
        vars(self).pop("chain", None)
        vars(self)["_native"] = None
        return self._advanced(count, actions, thin, changes)

    def _advanced(self, count: int, actions: Any, thin: int, changes: Mapping[str, Any]) -> tuple[np.ndarray, Arrays]:
        standing, settings, origin = self.standing, self.settings, self.standing.origin
        lanes = (origin.keys, *origin.state._replace(**changes))
        shared = self._shared(actions, count, thin)

        chain, is_native = self.chain, self._is_native  # found by this thread: each would find, and compile, its own

        def part(group: slice) -> Run:
            return chain.run(*(lanes if is_native else padded(lanes, group)), *shared)

        groups = [slice(0, settings.chains)] if is_native else groups_of(settings.chains, self._work.cost)
        runs = side_by_side(part, groups)
        *fields, positions, rows = together([run.value for run in runs], settings.chains)
        state = ChainState(*fields)
        found = {g.start + e.lane: e.message for g, run in zip(groups, runs, strict=True) for e in run.errors}
        failed = {**{chain: text for chain, text in found.items() if chain < settings.chains}, **standing.failed}
        kept = slice(0, count // thin)
        moved, statistics = positions[:, kept], self._named(rows[:, kept], failed)
        moved[list(failed)] = np.nan
        # Leaves of the chains themselves, not of the copies that fill up the lanes; the count may wrap.
        leaves = np.delete((state.leaves - np.asarray(origin.state.leaves)).astype(np.uint32), list(failed))
        needed = int(leaves.sum(dtype=np.int64))
        computed = needed if self._is_native else sum(gradient_rows_of(chain).of(run)[1] for run in runs)
        self.standing = RunState(
            replace(origin, state=state, done=origin.done + count),
            standing.cost + Cost(needed, computed).times(settings.leapfrogs_per_leaf),
            failed,
            self._with_draws(moved, statistics),
        )
        return moved, statistics

    def _shared(self, actions: Any, count: int, thin: int) -> tuple[Any, ...]:
        """The arguments of the program that are the same for all chains."""
        settings = self.settings
        # Arrays: TensorFlow takes NumPy's own scalars in twice the time.
        numbers = [np.array(number, np.int32) for number in (self.done, count, thin)]
        target = np.array(settings.target_accept, settings.dtype)
        return (plan_of(actions), *numbers, target, self._operand, settings.adapt is not None)

    def _with_draws(self, moved: np.ndarray, statistics: Arrays) -> Mapping[str, tuple[Arrays, ...]]:
        """The chunks so far and these, where they are to be given back."""
        settings, chunks = self.settings, self.standing.chunks
        is_warmup = self.done < settings.warmup
        if not moved.shape[1] or (is_warmup and not settings.save_warmup):
            return chunks
        layout, values = self.standing.origin.transform.layout, self.standing.origin.transform.values(moved)
        prefix = "warmup_" if is_warmup else ""
        new = {f"{prefix}posterior": by_name(layout, values), f"{prefix}sample_stats": statistics}
        return {**chunks, **{group: (*chunks[group], part) for group, part in new.items()}}

    def remember(self, **changes: Any) -> None:
        """Change what is known of the origin (`state`, `pool`)."""
        self.standing = replace(self.standing, origin=replace(self.standing.origin, **changes))

    @contextmanager
    def whole_or_not(self) -> Iterator[None]:
        """Do all or nothing of the block inside: Ctrl-C leaves the run as it was before."""
        before = self.standing
        try:
            yield
        except KeyboardInterrupt:
            self.standing = before
            raise

    def _named(self, rows: np.ndarray, failed: Mapping[int, str]) -> dict[str, np.ndarray]:
        """Statistics `[chains, rows, len(STATISTICS)]` under ArviZ's names; NaN or 0 for chains that failed."""
        rows[list(failed)] = np.nan
        columns = dict(zip(STATISTICS, np.moveaxis(rows, -1, 0), strict=True))
        leaves = np.nan_to_num(columns.pop("n_leaves")).astype(np.int64)
        return {
            **columns,
            "diverging": columns["diverging"] > 0,
            "tree_depth": np.nan_to_num(columns["tree_depth"]).astype(np.int64),
            "n_steps": leaves * self.settings.leapfrogs_per_leaf,
        }

    @cached_property
    def chain(self) -> Any:
        """The batched program.

        In lockstep chains wait for each other where gradients are expensive, or are kept from native code for the
        product in them, and under schedules that know no prices; never in the machines of the paper that pcbatch is
        compared with.
        """
        settings = self.settings
        waits = are_expensive(settings.chains, self._work.cost) or settings.schedule not in ("auto", "adaptive")
        return self._native or self._chain((waits or self._meets) and not settings.is_compared)

    def _chain(self, waits: bool, form: Literal["auto", "native"] = "auto") -> Any:
        origin = self.standing.origin
        return density_programs.chain_of(
            origin.density, origin.transform, origin.data is not None, self.settings, waits, form
        )

    @property
    def _is_native(self) -> bool:
        """Tell whether chains run one after another in native code, each with its gradients."""
        return self._native is not None

    @cached_property
    def _native(self) -> Any:
        """The batched program for this; None where a leaf is too expensive for it, or something stands against it.

        A leaf is what counts: momenta, which cost more if the gradient is cheap, are drawn once in a trajectory.
        """
        settings = self.settings
        work = self._work.cost + settings.leapfrogs_per_leaf * self.state.metric.inverse[0].size
        if device() is GPU or work > device().native_work:
            return None
        if settings.schedule != "auto" or settings.is_compared or self._meets:
            return None
        chain = self._chain(waits=False, form="native")
        known = _NATIVE.setdefault(chain, set())
        specs = tuple((each.dtype, tuple(each.shape)) for each in map(np.asarray, tf.nest.flatten(self._operand)))
        if specs in known:
            return chain
        try:
            chain.pipeline(self.standing.origin.keys, *self.state, *self._shared((), 0, 1))
        except UsageError as error:
            if error.code != "PCB534":
                raise
            return None
        known.add(specs)
        return chain

    @property
    def _meets(self) -> bool:
        """Tell whether chains gain by a product for all of them, though a gradient is cheap enough for native code."""
        settings, (cost, shares) = self.settings, self._work
        is_middling = device().native_shared < cost <= device().native_work
        return (
            settings.schedule == "auto"
            and is_middling
            and shares
            and settings.chains >= device().shared_rows
            and backend_named("tensorflow").handlers.version() is not None
        )

    @cached_property
    def _work(self) -> density_programs.Work:
        """The estimated work of a leaf of one chain; infinite where no XLA program is made of it."""
        origin, settings = self.standing.origin, self.settings
        if settings.jit is not True:
            return density_programs.Work(float("inf"))
        work = density_programs.gradient_work(origin.density, origin.transform, origin.data, origin.state.point.q)
        return work._replace(cost=settings.leapfrogs_per_leaf * work.cost)

    @cached_property
    def _operand(self) -> Any:
        """The data; the program always takes some."""
        data = self.standing.origin.data
        return np.zeros((0,), self.settings.dtype) if data is None else data

    def _samples(self, interrupted: bool) -> Samples:
        standing, settings = self.standing, self.settings
        found = {group: [*filter(None, standing.chunks[group])] for group in GROUPS}
        wanted = GROUPS if settings.save_warmup else GROUPS[:2]
        nothing = {} if all(found[group] for group in wanted) else self.nothing()
        groups = {group: _joined(parts) if parts else nothing.get(group, {}) for group, parts in found.items()}
        # Where Ctrl-C came before there was a program, none is made to report on it.
        stats = self.chain.stats() if "chain" in vars(self) else Stats(0, 0, 0.0, 0.0)
        return Samples(
            **groups,
            cost=standing.cost,
            stats=stats,
            settings=settings,
            failed=standing.failed,
            interrupted=interrupted,
            origin=standing.origin,
        )

    def nothing(self) -> dict[str, Arrays]:
        """No draws of each group."""
        settings, layout = self.settings, self.standing.origin.transform.layout
        posterior = by_name(layout, np.zeros((settings.chains, 0, layout.size), settings.dtype))
        statistics = self._named(np.zeros((settings.chains, 0, len(STATISTICS)), settings.dtype), {})
        kept = settings.save_warmup
        return {
            "posterior": posterior,
            "sample_stats": statistics,
            "warmup_posterior": posterior if kept else {},
            "warmup_sample_stats": statistics if kept else {},
        }


def _where(chosen: np.ndarray, one: Any, other: Any) -> np.ndarray:
    """Arrays `[chains, ..]`: of the `chosen` chains what `one` has."""
    array = np.asarray(one)
    return np.where(chosen.reshape(-1, *(1 for _ in array.shape[1:])), array, np.asarray(other))


def _joined(parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """Arrays one after another, by name."""
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
