"""The decorator `autobatch` and the `Batched` function that it returns; the pipeline behind it is `compilation.py`."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, overload

from pcbatch import longruns, methods
from pcbatch.arguments import Arguments, bind_arguments, one_example
from pcbatch.cache import Cache
from pcbatch.compilation import Compilation
from pcbatch.diagnostics import CompileError, PcbatchError, PieceRefusalError, UsageError
from pcbatch.frontend import FunctionSource, read_function
from pcbatch.frontend.plain import plain_function
from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Program
from pcbatch.linking import Linked, link
from pcbatch.lowering.calls import lower_calls
from pcbatch.lowering.captures import Captured, Namespace, collect
from pcbatch.lowering.environment import Environment
from pcbatch.lowering.fingerprints import fingerprint
from pcbatch.naming import by_name, short_signature
from pcbatch.optimize import optimize
from pcbatch.options import Options, OptionValues
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.outcome import Outcome, Statistics
from pcbatch.runtime.run import Run, RunInterruptedError

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
T = TypeVar("T")
Stage = Literal["cfg", "stack", "optimized"]

logger = logging.getLogger("pcbatch")
logger.addHandler(logging.NullHandler())

SIGNATURES = 64
"""How many compiled signatures each batched function keeps, and how many sets of options: those used last."""

_running_singly: ContextVar[bool] = ContextVar("running_singly", default=False)
_inside: ContextVar[str | None] = ContextVar("inside", default=None)
"""The batched function that is being compiled or traced: whatever calls another one then is one of its pieces."""


def compiling() -> str | None:
    """The batched function of which a piece is being traced right now, None in ordinary code."""
    return _inside.get()


NOT_FOR_AUTOGRAPH: dict[str, Any] = {"autograph_info__": None}
"""How TensorFlow's AutoGraph knows what it must not rewrite when a caller's tf.function is traced."""


def _without_internals(method: Callable[Q, T]) -> Callable[Q, T]:
    """`method`, its pcbatch errors raised anew from here: a user's traceback shows none of our insides."""

    @functools.wraps(method)
    def wrapper(*args: Q.args, **kwargs: Q.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (PcbatchError, RunInterruptedError) as error:
            raise error.with_traceback(None) from None

    vars(wrapper).update(NOT_FOR_AUTOGRAPH)
    return wrapper


@dataclass(frozen=True)
class Stats:
    """What compiling has cost so far: machine programs compiled, cache entries, seconds of tracing and compiling.

    A recursive program is compiled anew for each size of its stacks; `stack_entries` is the one that the next call
    starts with, learnt from those before it (0 for programs without stacks).
    """

    compilations: int
    cache_entries: int
    trace_seconds: float
    compile_seconds: float
    stack_entries: int = 0

    def __repr__(self) -> str:
        stacks = f", stacks of {self.stack_entries} entries" if self.stack_entries else ""
        return (
            f"<pcbatch.Stats: {self.compilations} compilations of {self.cache_entries} signatures, "
            f"traced in {self.trace_seconds:.3g} s, compiled in {self.compile_seconds:.3g} s{stacks}>"
        )


class Batched(Generic[P, R]):
    """A function of one example, batched: call it with a leading batch axis on its arguments. Made by `autobatch`."""

    autograph_info__ = None  # see NOT_FOR_AUTOGRAPH
    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], options: Options, source: FunctionSource | None = None):
        if isinstance(function, Batched):
            raise UsageError(
                "PCB570",
                f"{function.__name__} is a batched function already; {function.__name__}.options(..) gives "
                "it other options",
            )
        self._source = source if source is not None else read_function(function)
        functools.update_wrapper(self, function)
        self.__name__ = options.name or function.__name__
        self.function: FunctionType = inspect.unwrap(methods.plain_function(function))
        self.receiver: Any = getattr(function, "__self__", None)
        """The object that a method is bound to."""
        self._options = options
        self._binder = methods.Binder(self._bound)
        self.__signature__ = inspect.signature(function.__func__ if isinstance(function, classmethod) else function)
        if not methods.is_defined_in_class(function):
            options.check_names(tuple(self.__signature__.parameters))  # refuses what does not fit
        self._lock = threading.RLock()
        self._linked: Linked | None = None
        self._compiled: Cache[Any, Compilation] = Cache(SIGNATURES)
        self._statistics: list[Statistics] = []
        self._family: Cache[str, Batched[P, R]] = Cache(SIGNATURES)
        """What `options` has derived from the same function, this one included, by options: each compiles once."""
        self._family.put(repr(options), self)

    # -- running -------------------------------------------------------------------------------------------------------

    @_without_internals
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a batch: arguments with a leading lane axis in, results with a leading lane axis out.

        Raises LaneError if a lane failed; it carries the whole `Run`, so no finished lane is lost. Raises CompileError
        where the function is refused, UsageError where the arguments do not fit, and with the options `progress` or
        `resume` RunInterruptedError (a KeyboardInterrupt) after Ctrl-C; it carries the `Run` as well.
        """
        if _running_singly.get():
            return self._plain(*args, **kwargs)
        self._refuse_inside_pieces()
        compilation, outcome = self._execute(args, kwargs)
        return Run.checked_value(compilation.table, outcome)

    @_without_internals
    def run(self, *args: P.args, **kwargs: P.kwargs) -> Run:
        """Run a batch and report: a `Run`, which tells of each lane what became of it. Never raises for a lane.

        With the options `progress` or `resume`, Ctrl-C ends it early: lanes that are not done are UNFINISHED, and
        `run.save` keeps them.
        """
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

    # -- methods -------------------------------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: type | None = None) -> Batched[..., R]:
        """The function as a method of `instance`, which is static: no argument of the program."""
        wrapped: Any = self.__wrapped__
        if isinstance(wrapped, classmethod):
            instance = owner
        elif isinstance(wrapped, staticmethod):
            return self
        if instance is None or self.receiver is not None:
            return self
        with self._lock:
            return self._binder.bind(self, instance)

    def _bound(self, receiver: Any) -> Batched[..., R]:
        return Batched(MethodType(self.function, receiver), self._options, self._source.bound())

    # -- looking inside ------------------------------------------------------------------------------------------------

    @_without_internals
    def check(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Compile without running; raises every diagnostic. Without arguments only names and syntax are checked."""
        if not args and not kwargs and self.__signature__.parameters:
            self._link()
        else:
            arguments, compilation, _ = self._compilation(args, kwargs)
            with self._compiling(), compilation.first_time(None), self._logged(arguments, compilation):
                compilation.machine.check(arguments.lanes)

    @_without_internals
    def options(self, **changes: Unpack[OptionValues]) -> Batched[P, R]:
        """The same function under other options; UsageError PCB50x for what makes no sense.

        Asked for the same options again it gives the same function, with all that is compiled already.
        """
        options = self._options.changed(changes)
        if not methods.is_defined_in_class(self.__wrapped__):
            options.check_names(tuple(self.__signature__.parameters))  # refuses what does not fit
        known = self if options == self._options else self._family.get(repr(options))
        if known is not None:
            return known
        derived: Batched[P, R] = Batched(self.__wrapped__, options, self._source)
        derived._family = self._family
        return self._family.put(repr(options), derived)

    def costing(self, row: float) -> Batched[P, R]:
        """The same function with the hint that a row of its blocks costs `row`; see `pcbatch.cost`."""
        return Batched(self.__wrapped__, self._options, replace(self._source, cost=row))

    @_without_internals
    def ir(self, stage: Stage = "cfg", *args: Any, **kwargs: Any) -> str:
        """The program's text at stage "cfg", "stack" or "optimized"; typed where example arguments are given."""
        return print_program(self.program(stage, *args, **kwargs))

    @_without_internals
    def program(self, stage: Stage = "cfg", *args: Any, **kwargs: Any) -> Program:
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
        stack = lower_calls(optimize(cfg))
        return stack if stage == "stack" else optimize(stack)

    @_without_internals
    def source(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """The generated Python that is executed for these arguments; without any, for the signature compiled last."""
        if args or kwargs or not self.__signature__.parameters:
            return self._compilation(args, kwargs)[1].emitted.source
        last = self._compiler._compiled.last
        if last is None:
            raise UsageError("PCB506", f"{self.__name__} has not run yet; give source() example arguments")
        return last.emitted.source

    def stats(self) -> Stats:
        """Compilations, cache entries, trace and compile seconds so far, and the size of stacks."""
        compiler = self._compiler
        return Stats(
            sum(s.compilations for s in compiler._statistics),
            len(compiler._compiled),
            sum(s.trace_seconds for s in compiler._statistics),
            sum(s.compile_seconds for s in compiler._statistics),
            max((each.machine.stack_entries for each in compiler._compiled.values()), default=0),
        )

    def changed_options(self) -> dict[str, Any]:
        """The options that are not at their defaults."""
        return {k: v for k, v in vars(self._options).items() if v != vars(Options())[k]}

    def compilation(self, *args: Any, **kwargs: Any) -> Compilation:
        """Every stage of the program for these arguments."""
        return self._compilation(args, kwargs)[1]

    def __repr__(self) -> str:
        changed = ", ".join(f"{k}={v!r}" for k, v in self.changed_options().items())
        signature = short_signature(self.__signature__)
        return f"<pcbatch.Batched {self.__qualname__}{signature}{changed and ' '}{changed}>"

    # -- kept elsewhere ------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by name, as plain functions are, with the options that its namesake has not; see `naming.by_name`."""
        return by_name(self)

    def __copy__(self) -> Batched[P, R]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Batched[P, R]:
        return self

    def is_relative(self, other: object) -> bool:
        """Whether `other` is this function, perhaps under other options."""
        return isinstance(other, Batched) and other._family is self._family

    def all_options(self) -> dict[str, Any]:
        """Every option."""
        return dict(vars(self._options))

    # -- one example ---------------------------------------------------------------------------------------------------

    def as_example(self, parameter: str, value: Any) -> Any:
        """One example's argument as `single` sees it: arrays, but static ones and shared numbers stay as they are."""
        if parameter in self.static_argnames:
            return value
        axes = self._options.axes(tuple(self.__signature__.parameters))[parameter]
        return one_example(backend_named(self._options.backend), value, axes, parameter)

    # -- what linking asks ---------------------------------------------------------------------------------------------

    @property
    def function_source(self) -> FunctionSource:
        """The captured source."""
        return self._source

    @property
    def static_argnames(self) -> tuple[str, ...]:
        """The static parameters."""
        return self._options.static_argnames

    @property
    def __defaults__(self) -> tuple[Any, ...] | None:
        """The values of default arguments, as functions have them: what a batched call without them hands over."""
        return self.function.__defaults__

    @property
    def __kwdefaults__(self) -> dict[str, Any] | None:
        """The values of keyword-only default arguments, as functions have them."""
        return self.function.__kwdefaults__

    @cached_property
    def namespace(self) -> Namespace:
        """Lookup of the function's free names."""
        return Namespace(self.function, {} if self._source.receiver is None else {self._source.receiver: self.receiver})

    @cached_property
    def _plain(self) -> Callable[..., Any]:
        """The user's function with stores to arrays made on copies."""
        backend = backend_named(self._options.backend)
        plain = plain_function(self.function, self._source, backend.store_element, backend.plain_builtins)
        return plain if self.receiver is None else MethodType(plain, self.receiver)

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

    @property
    def _compiler(self) -> Batched[P, R]:
        """The same function under the options that matter to what is compiled: it compiles, and keeps that."""
        return self.options(progress=False, resume=None) if self._options.in_slices else self

    def _link(self) -> Linked:
        if self._options.in_slices:
            return self._compiler._link()
        with self._lock:
            if self._linked is None or not self._linked.is_current():
                self._linked = link(self)
                self._compiled.clear()
            return self._linked

    def _compilation(self, args: Any, kwargs: Any) -> tuple[Arguments, Compilation, Captured]:
        backend = backend_named(self._options.backend)
        arguments = bind_arguments(self.__signature__, self._options, backend, args, kwargs)
        return arguments, *self._compiler._compiled_for(arguments)

    def _compiled_for(self, arguments: Arguments) -> tuple[Compilation, Captured]:
        backend = backend_named(self._options.backend)
        linked = self._link()
        captured = collect(linked.free, linked.namespaces, backend.is_array)
        types = {name: backend.type_of(value) for name, value in captured.values.items()}
        statics = tuple((function, path, fingerprint(value)) for function, path, value in captured.statics)
        operands = tuple((function, *paths.items()) for function, paths in captured.operands.items())
        key = (arguments.signature, tuple(types.items()), operands, statics)
        with self._lock:
            compilation = self._compiled.get(key)
            if compilation is None:
                environment = Environment(backend, linked.namespaces, captured.without_values(), types, linked.statics)
                compilation = Compilation(linked, environment, arguments.without_values(), self._options)
                started = time.perf_counter()
                with self._compiling():
                    statistics = compilation.machine.statistics  # the whole pipeline, or its refusals
                statistics.trace_seconds += time.perf_counter() - started
                logger.debug("%s: generated code for %s", self.__name__, arguments.described)
                self._statistics.append(statistics)
                self._compiled.put(key, compilation)
        return compilation, captured

    def _execute(self, args: Any, kwargs: Any) -> tuple[Compilation, Outcome]:
        if self._options.in_slices:
            return self._execute_in_slices(args, kwargs)
        arguments, compilation, captured = self._compilation(args, kwargs)
        with self._compiling(), compilation.first_time(arguments.lanes), self._logged(arguments, compilation):
            return compilation, compilation.run(arguments, captured)

    def _execute_in_slices(self, args: Any, kwargs: Any) -> tuple[Compilation, Outcome]:
        saved = longruns.read(self._options) if self._options.resume is not None else None
        if saved is None:
            arguments, compilation, captured = self._compilation(args, kwargs)
        else:
            arguments = longruns.saved_arguments(saved, self.__signature__, self._options, args, kwargs)
            try:
                compilation, captured = self._compiler._compiled_for(arguments)
            except CompileError as error:
                why = f"{self.__name__} is another program now, refused for the arguments in the file: {error}"
                raise saved.refusal("PCB592", why) from None
        with self._compiling(), self._logged(arguments, compilation):
            return compilation, compilation.run_in_slices(arguments, captured, self._options, saved)

    @contextmanager
    def _logged(self, arguments: Arguments, compilation: Compilation) -> Iterator[None]:
        """Tell the log if something is compiled inside, and how long that took."""
        statistics = compilation.machine.statistics
        before = (statistics.compilations, statistics.compile_seconds)
        yield
        if statistics.compilations > before[0]:
            logger.info(
                "%s: compiled %s for %s lanes in %.2f s",
                self.__name__,
                arguments.described,
                arguments.lanes if isinstance(arguments.lanes, int) else "any number of",
                statistics.compile_seconds - before[1],
            )


@overload
def autobatch(fn: Callable[P, R]) -> Batched[P, R]: ...
@overload
def autobatch(fn: None = None, **options: Unpack[OptionValues]) -> Callable[[Callable[P, R]], Batched[P, R]]: ...
@overload
def autobatch(fn: Callable[P, R], **options: Unpack[OptionValues]) -> Batched[P, R]: ...


@_without_internals
def autobatch(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Batch a function of one example: a decorator, bare or with options, or a call.

    Arguments:
        fn: a plain Python function of one example; docs/language.md says what it may contain.
        **options: as follows.
        in_axes: 0 (the default) if every argument has a leading lane axis, None for arguments that all lanes share;
            one for all, a tuple by position or a dict by name.
        schedule: which waiting block runs next: "auto" (the best we have, now "adaptive": cheap blocks are swept, lanes
            gather at dear ones), "earliest" (the paper's), "busiest" (most lanes), "sweep" (all in order).
        backend: "tensorflow", or "reference" (lane by lane with Python lists for stacks: slow, for debugging).
        jit: compile with XLA (the default) or run as a plain graph, for debugging.
        max_depth: the most live calls of a lane, tail calls apart (default 8192); a lane beyond fails with MAX_DEPTH.
            It is a limit against recursion without end, not a size: stacks grow as lanes need them. In a function
            compiled with `jit_compile=True` they cannot, so there it must be given, and is their size.
        max_steps: the most loop turns plus calls of a lane (default: no limit); a lane beyond fails with MAX_STEPS.
        deterministic: every block computes a row for every lane, always (default: dear blocks that few lanes wait at
            run on those alone). A lane's floats then never depend, in their last bits, on which other lanes wait.
        trace: of how many trips of the machine's loop, from the first, to record which blocks ran for how many lanes;
            `Run.trace` then has the steps. The default, 0, records nothing and costs nothing.
        name: a name for messages.
        progress: show a bar with the lanes that have ended, trips and utilisation. The run goes in slices of about a
            quarter of a second, so that Ctrl-C can end it early with nothing lost: the `Run` can be saved.
        resume: the path of a saved run, which a call then goes on with; it takes no arguments but static ones.
        static_argnames: parameters whose arguments are Python values when the program is compiled: hashable, and part
            of the cache key. Sizes, names and functions can be such; a branch on one has only one arm.
        strategy, vectorize: as the design has them; for now only their defaults are built.

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


def _explicit(function: Any) -> None:
    """Give `function`, which takes `**options`, a signature with every option, for `help()` and editors."""
    signature = inspect.signature(function)
    first = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in vars(Options()).items()
    ]
    function.__signature__ = signature.replace(parameters=[*first, *options])


_explicit(autobatch)
_explicit(Batched.options)
