"""`pcbatch.shard`: a batch in parts, each run by a worker of somebody else's executor (PEP 3148).

Lanes do not depend on each other, so a part is a batch like any other. What travels is the function, by name or with
its source, the arguments of the part's lanes, and back their results.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import signal
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from itertools import pairwise
from typing import Any, Generic, ParamSpec, TypeVar

import cloudpickle
import numpy as np

from pcbatch.errors import UsageError
from pcbatch.function.batched import Batched
from pcbatch.function.user_code import without_internals
from pcbatch.ir import values
from pcbatch.ir.types import Type, leaves
from pcbatch.notice import silent
from pcbatch.options import Options, leaf_axes
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import results
from pcbatch.runtime.report.results import packed
from pcbatch.runtime.report.run import Run

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_ALONE = {"progress": False, "notice": False, "resume": None, "output": "numpy"}
"""The options of a part, without progress, which nobody would see in a worker."""


def shard(fn: Batched[P, R], executor: Executor, shards: int | None = None) -> Sharded[P, R]:
    """Spread the batches of a function over the workers of an executor.

    Any executor of PEP 3148 will do: `concurrent.futures.ProcessPoolExecutor(mp_context=get_context("spawn"))`, Dask's
    `client.get_executor()`, those of Ray, of MPI (`mpi4py.futures`) and of clusters. A function of a notebook or a
    script travels with its source, one of a module by its name. Each worker compiles once and keeps the program.

    Arguments:
        fn: a batched function, with whatever options. `progress=True` shows a bar of lanes whose parts have ended.
        executor: it stays the caller's, who shuts it down.
        shards: how many parts a batch is cut into, of equal numbers of lanes but for one; by default one for each
            worker, as far as the executor tells, else for each core here.

    Returns:
        A `Sharded`, which is called as `fn` is.

    Raises:
        UsageError: PCB584 where `fn` is no batched function, `executor` no executor or `shards` no number of parts;
            a call raises PCB571 for a function that is neither at the top level of a module nor of the main script.
    """
    if not isinstance(fn, Batched):
        raise UsageError("PCB584", f"shard takes a batched function, not {fn!r}; decorate it with pcbatch.autobatch")
    if not callable(getattr(executor, "submit", None)):
        raise UsageError(
            "PCB584", f"an executor has `submit`, and {executor!r} has not; of Dask, client.get_executor()"
        )
    if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int) or shards < 1):
        raise UsageError("PCB584", f"shards must be None or an int of at least 1, not {shards!r}")
    return Sharded(fn, executor, shards)


class Sharded(Generic[P, R]):
    """A batched function whose batches an executor runs in parts; made by `pcbatch.shard`."""

    def __init__(self, function: Batched[P, R], executor: Executor, shards: int | None):
        self.function = function
        self.executor = executor
        self.shards = shards
        self.__name__ = function.__name__
        self.__signature__ = function.__signature__

    @without_internals
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a batch, as `fn` does: the same values, in parts.

        A lane has the same bits as in one batch where it has these in batches of any size: in native code, and under
        `deterministic=True`.

        Raises:
            LaneError: lanes failed; their numbers are those of the whole batch, and the error carries the whole `Run`.
            CompileError, UsageError: as a call of `fn`; PCB584 where a worker died and the executor does not replace
                it, or inside of a `tf.function`.
            KeyboardInterrupt: after Ctrl-C. Parts that wait are given up, and processes of a pool stop what they run.
        """
        return self._ran(args, kwargs).check()

    @without_internals
    def run(self, *args: Any, **kwargs: Any) -> Run:
        """Run a batch and report: a `Run` of all lanes. It has values, statuses, steps and errors; no profile."""
        return self._ran(args, kwargs)

    def options(self, **changes: Any) -> Sharded[P, R]:
        """The same with other options of the function."""
        return Sharded(self.function.options(**changes), self.executor, self.shards)

    def __repr__(self) -> str:
        return f"<pcbatch.Sharded {self.function!r} on {type(self.executor).__name__}>"

    def _ran(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Run:
        function, options = self.function, self.function.all_options()
        if options["resume"] is not None or options["trace"]:
            raise UsageError("PCB584", f"{self.__name__} runs in parts, which the options resume and trace know not of")
        if not backend_named(options["backend"]).runs_now():
            raise UsageError("PCB584", f"{self.__name__} runs on an executor; call it outside of a graph")
        lanes, part_of = self._cut(args, kwargs)
        count = max(1, min(self.shards or workers_of(self.executor), lanes))
        bounds = [lanes * number // count for number in range(count + 1)]
        alone = function.under(_ALONE)
        tasks = [(alone, part_of(start, stop)) for start, stop in pairwise(bounds)]
        with _bar(self.__name__, lanes, options["progress"]) as watch:
            parts = gathered(self.executor, _part, tasks, lambda number: watch(bounds[number + 1] - bounds[number]))
        run = self._joined(parts, bounds)
        home = function.home(args, kwargs)
        return run.with_value(function.sent(run.value, home)) if home else run

    def _cut(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, Callable[[int, int], Any]]:
        """The number of lanes, and what gives the arguments, and `lanes=`, of those from one number to another."""
        function, options = self.function, self.function.all_options()
        backend, signature = backend_named(options["backend"]), function.__signature__
        given = function.session.bind(args, kwargs)
        named = {name: value for name, value in kwargs.items() if name in signature.parameters}
        axes = Options(**options).axes(tuple(signature.parameters))
        whole: dict[str, Any] = {}
        cut: dict[str, tuple[Type, list[tuple[Any, bool]]]] = {}

        def plain(value: Any) -> Any:
            return backend.mapped(backend.numpy_of, value)

        for name, value in signature.bind(*args, **named).arguments.items():
            if name in function.static_argnames or name in given.shared:
                whole[name] = value if name in function.static_argnames else plain(value)
                continue
            type_ = given.types[name]
            own_parts = values.flatten(type_, backend.padded(value, axes[name]))
            every = zip(given.leaves[name], own_parts, leaves(type_), strict=True)
            has_lanes = [axis == 0 for _, axis in leaf_axes(axes[name], type_, name)]
            cut[name] = (
                type_,
                [
                    (np.asarray(array), True) if has and not leaf.weak else (plain(own), False)
                    for (array, own, leaf), has in zip(every, has_lanes, strict=True)
                ],
            )

        def part(start: int, stop: int) -> tuple[dict[str, Any], dict[str, int]]:
            arguments = {
                name: values.pack(type_, [array[start:stop] if has else array for array, has in parts])
                for name, (type_, parts) in cut.items()
            }
            return {**whole, **arguments}, {} if cut else {"lanes": stop - start}

        return given.lanes, part

    def _joined(self, parts: Sequence[Mapping[str, Any]], bounds: Sequence[int]) -> Run:
        """The run of all lanes."""
        backend = backend_named("tensorflow")
        program = parts[0]["program"]
        behind = results.StayedBehind(
            self.__name__,
            origin=f"{len(parts)} parts",
            has="values, statuses, steps and errors",
            help=f"run {self.__name__} itself, on some of the lanes",
        )
        arrays = [np.concatenate(each) for each in zip(*(part["values"] for part in parts), strict=True)]
        if self.function.all_options()["output"] != "numpy":
            arrays = [backend.array(each, each.dtype.name) for each in arrays]
        ends: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in _ENDS}
        outcome = Outcome(
            values=tuple(arrays),
            **ends,
            fault_values={},
            counting=behind,
            backend=results.NUMPYS,
            checkpoint=behind,
        )
        errors = tuple(
            replace(fault, lane=fault.lane + start)
            for part, start in zip(parts, bounds, strict=False)
            for fault in part["errors"]
        )
        return Run.from_elsewhere(packed(program, arrays), program, outcome, errors)


LARGE = 1 << 16
"""Size in bytes from which on workers do not cache pickled data: it is no function."""
_ENDS = ("status", "site", "place", "steps")


def _part(fn: Any, part: tuple[Mapping[str, Any], Mapping[str, int]]) -> dict[str, Any]:
    """Run a part in a worker: what `Sharded` makes a run of."""
    given, lanes = part
    bound = inspect.BoundArguments(fn.__signature__, OrderedDict(given))
    run = fn.run(*bound.args, **bound.kwargs, **lanes)
    outcome = run.outcome
    return {
        "program": results.program_of(run.program),
        "values": [np.asarray(leaf) for leaf in outcome.values],
        "errors": run.errors,
        **{name: np.asarray(getattr(outcome, name)) for name in _ENDS},
    }


def _there(task: Sequence[bytes]) -> bytes:
    """Call a function in a worker on pickled arguments; return its result pickled."""
    function, *args = map(_loaded, task)
    return cloudpickle.dumps(function(*args))


@functools.lru_cache(maxsize=64)
def _kept(travelled: bytes) -> Any:
    return cloudpickle.loads(travelled)


def _loaded(travelled: bytes) -> Any:
    """Unpickle a function or its arguments; a function is the same object each time: it compiles once in a worker."""
    return _kept(travelled) if len(travelled) < LARGE else cloudpickle.loads(travelled)


def workers_of(executor: Executor) -> int:
    """The number of an executor's workers; where it does not tell, of this machine's cores."""
    known = getattr(executor, "_max_workers", None)
    client: Any = getattr(executor, "_client", None)
    if not known and hasattr(client, "nthreads"):
        known = len(client.nthreads())
    return known if isinstance(known, int) and known > 0 else os.cpu_count() or 1


def gathered(
    executor: Executor,
    function: Callable[..., T],
    tasks: Sequence[tuple[Any, ...]],
    ended: Callable[[int], None] = lambda number: None,
) -> list[T]:
    """`function(*task)` of each task, on the workers, in order; `ended` hears of each that has ended, by number.

    Threads get what is given, all others pickles of it. Where one fails, or Ctrl-C comes, the others are given up.
    UsageError PCB584 where a worker is lost for good.
    """
    futures: list[Future[Any]] = []
    travels = not isinstance(executor, ThreadPoolExecutor)
    if travels:
        known: dict[int, bytes] = {}
        sent = [[_sent(each, known) for each in (function, *task)] for task in tasks]
    try:
        for number, task in enumerate(tasks):
            futures.append(executor.submit(_there, sent[number]) if travels else executor.submit(function, *task))
        for future in as_completed(futures):
            future.result()
            ended(futures.index(future))
        found = [future.result() for future in futures]
        return [cloudpickle.loads(each) for each in found] if travels else found
    except BrokenExecutor as error:
        raise UsageError(
            "PCB584",
            f"a worker of {type(executor).__name__} died ({error}), and it does not run parts again: make a new one. "
            "Under Python's spawn the main module must be importable, its own work below `if __name__ == '__main__':`; "
            "executors of Dask and Ray run the part of a lost worker on another one",
        ) from error
    except BaseException:
        _give_up(executor, futures)
        raise


def _sent(value: Any, known: dict[int, bytes]) -> bytes:
    """A pickle; the same for the same object."""
    if id(value) not in known:
        known[id(value)] = cloudpickle.dumps(value)
    return known[id(value)]


def _give_up(executor: Executor, futures: Sequence[Future[Any]]) -> None:
    """Cancel the workers' tasks that nobody waits for any more."""
    for future in futures:
        future.cancel()
    if all(future.done() for future in futures):
        return
    processes = getattr(executor, "_processes", None)
    for process in list((processes or {}).values()) if isinstance(processes, dict) else []:
        with contextlib.suppress(ProcessLookupError, OSError):
            os.kill(process.pid, signal.SIGINT)


@contextlib.contextmanager
def _bar(name: str, lanes: int, shown: bool) -> Iterator[Callable[[int], Any]]:
    """A bar of lanes whose parts have ended; nothing unless `shown`."""
    if not shown:
        yield lambda count: None
        return
    from tqdm.auto import tqdm  # only now: it looks for a notebook

    with silent(), tqdm(total=lanes, desc=name, unit="lane") as bar:
        yield bar.update
