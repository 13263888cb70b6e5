"""The decorator `autobatch` and the `Batched` function that it returns; the pipeline behind it is `compilation.py`."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from pcbatch.arguments import Arguments, bind_arguments
from pcbatch.compilation import Compilation
from pcbatch.diagnostics import PcbatchError, PieceRefusalError, UsageError
from pcbatch.frontend import FunctionSource, read_function
from pcbatch.frontend.plain import plain_function
from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Program
from pcbatch.linking import Linked, link
from pcbatch.lowering.calls import lower_calls
from pcbatch.lowering.captures import Captured, Namespace, collect
from pcbatch.lowering.environment import Environment
from pcbatch.lowering.fingerprints import fingerprint
from pcbatch.optimize import optimize
from pcbatch.options import Options
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.outcome import Outcome
from pcbatch.runtime.run import Run

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_running_singly: ContextVar[bool] = ContextVar("running_singly", default=False)
_inside: ContextVar[str | None] = ContextVar("inside", default=None)
"""The batched function that is being compiled or traced: whatever calls another one then is one of its pieces."""

NOT_FOR_AUTOGRAPH: dict[str, Any] = {"autograph_info__": None}
"""How TensorFlow's AutoGraph knows what it must not rewrite when a caller's tf.function is traced."""


def _without_internals(method: Callable[..., T]) -> Callable[..., T]:
    """`method`, its pcbatch errors raised anew from here: a user's traceback shows none of our insides."""

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> T:
        try:
            return method(*args, **kwargs)
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    vars(wrapper).update(NOT_FOR_AUTOGRAPH)
    return wrapper


@dataclass(frozen=True)
class Stats:
    """What compiling has cost so far: machine programs compiled, cache entries, seconds of tracing and compiling."""

    compilations: int
    cache_entries: int
    trace_seconds: float
    compile_seconds: float


class Batched(Generic[P, R]):
    """A function of one example, batched: call it with a leading batch axis on its arguments. Made by `autobatch`."""

    autograph_info__ = None  # see NOT_FOR_AUTOGRAPH
    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], options: Options, source: FunctionSource | None = None):
        functools.update_wrapper(self, function)
        self.__name__ = options.name or function.__name__
        self._source = source if source is not None else read_function(function)
        self.function: FunctionType = inspect.unwrap(function)
        self._options = options
        self.__signature__ = inspect.signature(function)
        options.axes(tuple(self.__signature__.parameters))  # refuses what does not fit
        self._lock = threading.RLock()
        self._linked: Linked | None = None
        self._compiled: dict[Any, Compilation] = {}
        self._family: list[Batched[P, R]] = [self]
        """Every function that `options` has derived from the same one, this one included: each compiles once."""

    # -- running -------------------------------------------------------------------------------------------------------

    @_without_internals
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a batch: arguments with a leading lane axis in, results with a leading lane axis out.

        Raises LaneError if a lane failed; it carries the whole `Run`, so no finished lane is lost. Raises CompileError
        where the function is refused, UsageError where the arguments do not fit.
        """
        if _running_singly.get():
            return self._plain(*args, **kwargs)
        self._refuse_inside_pieces()
        compilation, outcome = self._execute(args, kwargs)
        return Run.checked_value(compilation.table, outcome)

    @_without_internals
    def run(self, *args: P.args, **kwargs: P.kwargs) -> Run:
        """Run a batch and report: a `Run`, which tells of each lane what became of it. Never raises for a lane."""
        self._refuse_inside_pieces()
        compilation, outcome = self._execute(args, kwargs)
        return Run.of(compilation.table, outcome)

    @_without_internals
    def single(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The user's function as plain Python on one example; batched functions that it calls run singly too."""
        bound = self.__signature__.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            bound.arguments[name] = self.as_example(name, value)
        token = _running_singly.set(True)
        try:
            return self._plain(*bound.args, **bound.kwargs)
        finally:
            _running_singly.reset(token)

    # -- looking inside ------------------------------------------------------------------------------------------------

    @_without_internals
    def check(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Compile without running; raises every diagnostic. Without arguments only names and syntax are checked."""
        if not args and not kwargs and self.__signature__.parameters:
            self._link()
        else:
            arguments, compilation, _ = self._compilation(args, kwargs)
            with self._compiling():
                compilation.machine.check(arguments.lanes)

    @_without_internals
    def options(self, **changes: Any) -> Batched[P, R]:
        """The same function under other options; UsageError PCB50x for what makes no sense.

        Asked for the same options again it gives the same function, with all that is compiled already.
        """
        options = self._options.changed(changes)
        options.axes(tuple(self.__signature__.parameters))  # refuses what does not fit
        with self._lock:
            for relative in self._family:
                if relative._options == options:
                    return relative
            derived: Batched[P, R] = Batched(self.__wrapped__, options, self._source)
            derived._family = self._family
            self._family.append(derived)
            return derived

    @_without_internals
    def ir(self, stage: str = "cfg", *args: Any, **kwargs: Any) -> str:
        """The program's text at stage "cfg", "stack" or "optimized"; typed where example arguments are given."""
        return print_program(self.program(stage, *args, **kwargs))

    @_without_internals
    def program(self, stage: str = "cfg", *args: Any, **kwargs: Any) -> Program:
        """The program at stage "cfg", "stack" or "optimized", as `ir` prints it."""
        if stage not in ("cfg", "stack", "optimized"):
            raise UsageError("PCB505", f"there is no stage {stage!r}; the stages are 'cfg', 'stack' and 'optimized'")
        if args or kwargs or not self.__signature__.parameters:
            _, compilation, _ = self._compilation(args, kwargs)
            by_stage = {"cfg": lambda: compilation.typed.program, "stack": lambda: compilation.stack}
            return by_stage.get(stage, lambda: compilation.optimized)()
        cfg = self._link().built.program
        if stage == "cfg":
            return cfg
        stack = lower_calls(cfg)
        return stack if stage == "stack" else optimize(stack)

    @_without_internals
    def source(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """The generated Python that is executed for these arguments; without any, for the signature compiled last."""
        if args or kwargs or not self.__signature__.parameters:
            return self._compilation(args, kwargs)[1].emitted.source
        if not self._compiled:
            raise UsageError("PCB506", f"{self.__name__} has not run yet; give source() example arguments")
        return next(reversed(self._compiled.values())).emitted.source

    def stats(self) -> Stats:
        """Compilations, cache entries, trace and compile seconds so far."""
        machines = [compilation.machine.statistics for compilation in self._compiled.values()]
        return Stats(
            sum(s.compilations for s in machines),
            len(self._compiled),
            sum(s.trace_seconds for s in machines),
            sum(s.compile_seconds for s in machines),
        )

    def changed_options(self) -> dict[str, Any]:
        """The options that are not at their defaults."""
        return {k: v for k, v in vars(self._options).items() if v != vars(Options())[k]}

    def compilation(self, *args: Any, **kwargs: Any) -> Compilation:
        """Every stage of the program for these arguments."""
        return self._compilation(args, kwargs)[1]

    def __repr__(self) -> str:
        changed = [f"{k}={v!r}" for k, v in self.changed_options().items()]
        return f"<pcbatch.Batched {self.__qualname__}{self.__signature__}{' ' if changed else ''}{', '.join(changed)}>"

    # -- one example ---------------------------------------------------------------------------------------------------

    def as_example(self, parameter: str, value: Any) -> Any:
        """One example's argument as `single` sees it: arrays, but a number that all lanes share stays one."""
        shared = self._options.axes(tuple(self.__signature__.parameters))[parameter] is None
        number = isinstance(value, (bool, int, float))
        return value if shared and number else backend_named(self._options.backend).as_arrays(value)

    # -- what linking asks ---------------------------------------------------------------------------------------------

    @property
    def function_source(self) -> FunctionSource:
        """The captured source."""
        return self._source

    @cached_property
    def namespace(self) -> Namespace:
        """Lookup of the function's free names."""
        return Namespace(self.function)

    @cached_property
    def _plain(self) -> Callable[..., Any]:
        """The user's function with stores to arrays made on copies."""
        backend = backend_named(self._options.backend)
        return plain_function(self.function, self._source, backend.store_element, backend.plain_builtins)

    def _refuse_inside_pieces(self) -> None:
        """Only calls that the compiler sees go through the machine; one from a helper would run in every lane."""
        caller = _inside.get()
        if caller is not None:
            raise PieceRefusalError(
                "PCB405",
                f"the batched function `{self.__name__}` is called by a helper of `{caller}`",
                f"make the helper a batched function too, or call `{self.__name__}` in `{caller}` itself",
            )

    @contextmanager
    def _compiling(self) -> Iterator[None]:
        """Whatever of the user's code runs inside is a piece of this function."""
        token = _inside.set(self.__name__)
        try:
            yield
        finally:
            _inside.reset(token)

    # -- compiling -----------------------------------------------------------------------------------------------------

    def _link(self) -> Linked:
        with self._lock:
            if self._linked is None or not self._linked.is_current():
                self._linked = link(self)
                self._compiled.clear()
            return self._linked

    def _compilation(self, args: Any, kwargs: Any) -> tuple[Arguments, Compilation, Captured]:
        backend = backend_named(self._options.backend)
        arguments = bind_arguments(self.__signature__, self._options, backend, args, kwargs)
        linked = self._link()
        captured = collect(linked.free, linked.namespaces, backend.is_array)
        types = {name: backend.type_of(value) for name, value in captured.values.items()}
        statics = tuple((function, path, fingerprint(value)) for function, path, value in captured.statics)
        operands = tuple((function, *paths.items()) for function, paths in captured.operands.items())
        key = (arguments.signature, tuple(types.items()), operands, statics)
        with self._lock:
            compilation = self._compiled.get(key)
            if compilation is None:
                environment = Environment(backend, linked.namespaces, captured, types)
                compilation = Compilation(linked, environment, arguments.without_values(), self._options)
                started = time.perf_counter()
                with self._compiling():
                    statistics = compilation.machine.statistics  # the whole pipeline, or its refusals
                statistics.trace_seconds += time.perf_counter() - started
                self._compiled[key] = compilation
        return arguments, compilation, captured

    def _execute(self, args: Any, kwargs: Any) -> tuple[Compilation, Outcome]:
        arguments, compilation, captured = self._compilation(args, kwargs)
        with self._compiling():
            return compilation, compilation.run(arguments, captured)


@overload
def autobatch(fn: Callable[P, R]) -> Batched[P, R]: ...
@overload
def autobatch(fn: None = None, **options: Any) -> Callable[[Callable[P, R]], Batched[P, R]]: ...
@overload
def autobatch(fn: Callable[P, R], **options: Any) -> Batched[P, R]: ...


@_without_internals
def autobatch(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Batch a function of one example: a decorator, bare or with options, or a call.

    Arguments:
        fn: a plain Python function of one example; docs/language.md says what it may contain.
        **options: as follows.
        in_axes: 0 (the default) if every argument has a leading lane axis, None for arguments that all lanes share;
            one for all, a tuple by position or a dict by name.
        schedule: which waiting block runs next: "auto" (the best we have), "earliest" (the paper's), "sweep".
        backend: "tensorflow", or "reference" (lane by lane with Python lists for stacks: slow, for debugging).
        jit: compile with XLA (the default) or run as a plain graph, for debugging.
        max_depth: the most live calls of a lane, tail calls apart (default 64); a lane beyond fails with MAX_DEPTH.
        max_steps: the most loop turns plus calls of a lane (default: no limit); a lane beyond fails with MAX_STEPS.
        name: a name for messages.
        strategy, static_argnames, vectorize: as the design has them; for now only their defaults are built.

    Returns:
        A `Batched`; calling it with arguments of shape `[lanes, ...]` gives results of shape `[lanes, ...]`.

    Raises:
        UnsupportedSyntaxError: the source has constructs that pcbatch does not translate; every one is named.
        UsageError: an option makes no sense.

    Source: Radul, Patton, Maclaurin, Hoffman, Saurous, "Automatically Batching Control-Intensive Programs for Modern
    Accelerators", MLSys 2020.

    >>> import pcbatch
    >>> @pcbatch.autobatch
    ... def gcd(a, b):
    ...     while b:
    ...         a, b = b, a % b
    ...     return a
    >>> print(gcd([12, 18, 7], [8, 12, 21]).numpy())
    [4 6 7]
    """
    given = Options().changed(options)
    return partial(_made, options=given) if fn is None else _made(fn, given)


@_without_internals
def _made(function: Callable[..., Any], options: Options) -> Batched[..., Any]:
    return Batched(function, options)
