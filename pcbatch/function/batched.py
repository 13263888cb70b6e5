"""`Batched`, the function that `autobatch` returns: how it is called, looked into, bound, copied and kept."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, get_args

from pcbatch.errors import PcbatchError, PieceRefusalError, UsageError
from pcbatch.frontend import FunctionSource, read_function
from pcbatch.function import methods
from pcbatch.function.arguments import one_example
from pcbatch.function.cache import Cache
from pcbatch.function.linkable import Linkable
from pcbatch.function.naming import by_name, short_signature
from pcbatch.function.pipeline import Pipeline
from pcbatch.function.session import SIGNATURES, Session, Stats, compiling
from pcbatch.function.singly import Plainly
from pcbatch.ir import machine
from pcbatch.ir.program import Program
from pcbatch.ir.text.machine_printer import print_machine
from pcbatch.ir.text.printer import print_program
from pcbatch.lowering.calls import lower_calls
from pcbatch.lowering.captures.captured import Namespace
from pcbatch.optimize.pipeline import optimize
from pcbatch.options import Options, OptionValues
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report.run import Run, RunInterruptedError

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
T = TypeVar("T")
Stage = Literal["cfg", "stack", "optimized", "machine"]

STAGES: tuple[Stage, ...] = get_args(Stage)

_running_singly: ContextVar[bool] = ContextVar("running_singly", default=False)

NOT_FOR_AUTOGRAPH: dict[str, Any] = {"autograph_info__": None}
"""How TensorFlow's AutoGraph knows what it must not rewrite when a caller's tf.function is traced."""


def without_internals(method: Callable[Q, T]) -> Callable[Q, T]:
    """`method`, its pcbatch errors raised anew from here: a user's traceback shows none of our insides."""

    @functools.wraps(method)
    def wrapper(*args: Q.args, **kwargs: Q.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (PcbatchError, RunInterruptedError) as error:
            raise error.with_traceback(None) from None

    vars(wrapper).update(NOT_FOR_AUTOGRAPH)
    return wrapper


class Batched(Linkable, Generic[P, R]):
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
        self._binder: methods.Binder[Batched[..., R]] = methods.Binder(self._bound)
        self.__signature__ = inspect.signature(function.__func__ if isinstance(function, classmethod) else function)
        if not methods.is_defined_in_class(function):
            options.check_names(tuple(self.__signature__.parameters))  # refuses what does not fit
        self._lock = threading.RLock()
        self._session = Session(self, options)
        self._family: Cache[str, Batched[P, R]] = Cache(SIGNATURES)
        """What `options` has derived from the same function, this one included, by options: each compiles once."""
        self._family.put(repr(options), self)

    # -- running -------------------------------------------------------------------------------------------------------

    @without_internals
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a batch: arguments with a leading lane axis in, results with a leading lane axis out.

        Raises LaneError if a lane failed; it carries the whole `Run`, so no finished lane is lost. Raises CompileError
        where the function is refused, UsageError where the arguments do not fit, and with the options `progress` or
        `resume` RunInterruptedError (a KeyboardInterrupt) after Ctrl-C; it carries the `Run` as well.
        """
        if _running_singly.get():
            return self._plain(*args, **kwargs)
        self._refuse_inside_pieces()
        warm = None if kwargs else self._session.run_warm(args)
        if warm is not None:
            plan, finished = warm
            if finished.values is not None:
                value: R = plan.packed(finished.values)
                return value
            return Run.checked_value(plan.table, finished.outcome())
        pipeline, outcome = self._execute(args, kwargs)
        return Run.checked_value(pipeline.table, outcome)

    @without_internals
    def run(self, *args: P.args, **kwargs: P.kwargs) -> Run:
        """Run a batch and report: a `Run`, which tells of each lane what became of it. Never raises for a lane.

        With the options `progress` or `resume`, Ctrl-C ends it early: lanes that are not done are UNFINISHED, and
        `run.save` keeps them.
        """
        self._refuse_inside_pieces()
        warm = None if kwargs else self._session.run_warm(args)
        if warm is not None:
            plan, finished = warm
            return Run.of(plan.table, finished.outcome())
        pipeline, outcome = self._execute(args, kwargs)
        return Run.of(pipeline.table, outcome)

    @without_internals
    def single(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The user's function as plain Python on one example; batched functions that it calls run singly too.

        Raises what the function raises, ZeroDivisionError and IndexError on tensors too; UsageError PCB511 for an
        argument that is no array.
        """
        bound = self.__signature__.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            bound.arguments[name] = self.as_example(name, value)
        token = _running_singly.set(True)
        try:
            return self._plain(*bound.args, **bound.kwargs)
        except Exception as error:
            known = backend_named(self._options.backend).as_python(error)
            if known is error:
                raise
            raise known.with_traceback(error.__traceback__) from None
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

    @without_internals
    def check(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Compile without running; raises every diagnostic. Without arguments only names and syntax are checked."""
        if not args and not kwargs and self.__signature__.parameters:
            self.session.link()
        else:
            self.session.check(args, kwargs)

    @without_internals
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

    def under(self, changes: Mapping[str, Any]) -> Batched[P, R]:
        """The same function under other options."""
        return self.options(**changes)

    def costing(self, row: float) -> Batched[P, R]:
        """The same function with the hint that a row of its blocks costs `row`; see `pcbatch.cost`."""
        return Batched(self.__wrapped__, self._options, replace(self._source, cost=row))

    @without_internals
    def ir(self, stage: Stage = "cfg", *args: Any, **kwargs: Any) -> str:
        """The program's text at stage "cfg", "stack", "optimized" or "machine"; typed where arguments are given.

        At stage "machine", which needs them, it is what the machine executes for so many lanes.
        """
        program = self.program(stage, *args, **kwargs)
        return print_program(program) if isinstance(program, Program) else print_machine(program)

    @without_internals
    def program(self, stage: Stage = "cfg", *args: Any, **kwargs: Any) -> Program | machine.Program:
        """The program at one of the stages, as `ir` prints it."""
        if stage not in STAGES:
            known = f"{', '.join(map(repr, STAGES[:-1]))} and {STAGES[-1]!r}"
            raise UsageError("PCB505", f"there is no stage {stage!r}; the stages are {known}")
        if args or kwargs or not self.__signature__.parameters:
            return self.session.stage(stage, args, kwargs)
        if stage == "machine":
            raise UsageError(
                "PCB506",
                "what the machine executes depends on types and shapes: give ir('machine', ..) arguments",
            )
        cfg = self.session.link().built.program
        if stage == "cfg":
            return cfg
        stack = lower_calls(optimize(cfg))
        return stack if stage == "stack" else optimize(stack)

    @without_internals
    def source(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """The generated Python that is executed for these arguments; without any, for the signature compiled last."""
        if args or kwargs or not self.__signature__.parameters:
            return self.pipeline(*args, **kwargs).emitted.source
        last = self.session.compiled.last
        if last is None:
            raise UsageError("PCB506", f"{self.__name__} has not run yet; give source() example arguments")
        return last.emitted.source

    def stats(self) -> Stats:
        """Compilations, cache entries, trace and compile seconds so far, and the size of stacks."""
        return self.session.stats()

    def changed_options(self) -> dict[str, Any]:
        """The options that are not at their defaults."""
        return {k: v for k, v in vars(self._options).items() if v != vars(Options())[k]}

    def pipeline(self, *args: Any, **kwargs: Any) -> Pipeline:
        """Every stage of the program for these arguments."""
        return self.session.pipeline(args, kwargs)[1]

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
        plainly = Plainly(backend_named(self._options.backend))
        plain = plainly.function(self.function, self._source, self.namespace)
        return plain if self.receiver is None else MethodType(plain, self.receiver)

    def _refuse_inside_pieces(self) -> None:
        """Only calls that the compiler sees go through the machine; one from a helper would run in every lane."""
        caller = compiling()
        if caller is not None:
            raise PieceRefusalError(
                "PCB405",
                f"the batched function `{self.__name__}` is called by a helper of `{caller}`",
                f"call the helper by its name in `{caller}`, or call `{self.__name__}` in `{caller}` itself",
            )

    @property
    def session(self) -> Session:
        """What compiles it: the one of the same function under the options that matter to what is compiled."""
        return self.options(progress=False, resume=None).session if self._options.in_slices else self._session

    def _execute(self, args: Any, kwargs: Any) -> tuple[Pipeline, Outcome]:
        if self._options.in_slices:
            return self.session.run_in_slices(args, kwargs, self._options)
        return self._session.run_at_once(args, kwargs)
