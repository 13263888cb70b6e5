"""`Batched`, the function that `autobatch` returns: how it is called, looked into, bound, copied and kept."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, get_args

from pcbatch.errors import UsageError
from pcbatch.frontend import FunctionSource, read_function
from pcbatch.function import methods, naming
from pcbatch.function.cache import Cache, Stats
from pcbatch.function.call_api import Calls, running_singly
from pcbatch.function.compilation_cache import SIGNATURES, Session
from pcbatch.function.exporting import PLAIN, export
from pcbatch.function.naming import by_name, of_receiver, restored, restored_method, short_signature
from pcbatch.function.pipeline import Pipeline
from pcbatch.function.reading_cache import untyped_program
from pcbatch.function.user_code import without_internals
from pcbatch.ir import machine
from pcbatch.ir.machine_printer import print_machine
from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Program
from pcbatch.lowering.calls import lower_calls
from pcbatch.notice import announcing
from pcbatch.optimize.pipeline import optimize
from pcbatch.options import Options, OptionValues
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.report.formatting import Text

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
T = TypeVar("T")
Stage = Literal["cfg", "stack", "optimized", "machine"]

STAGES: tuple[Stage, ...] = get_args(Stage)
_DEPENDS = "what the machine executes depends on types and shapes"


def _check_stage(stage: str, stages: Sequence[str]) -> None:
    """Refuse a name that is none of the `stages`, UsageError PCB505."""
    if stage not in stages:
        known = f"{', '.join(map(repr, stages[:-1]))} and {stages[-1]!r}"
        raise UsageError("PCB505", f"there is no stage {stage!r}; the stages are {known}")


class Batched(Calls[P, R]):
    """A function of one example, batched: call it with a leading batch axis on its arguments. Made by `autobatch`."""

    autograph_info__ = None  # see `user_code.NOT_FOR_AUTOGRAPH`
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
        self._output, self._takes_slices = options.output, options.in_slices
        self._binder: methods.Binder[Batched[..., R]] = methods.Binder(self._bound)
        self.__signature__ = inspect.signature(function.__func__ if isinstance(function, classmethod) else function)
        if not methods.is_defined_in_class(function):
            options.check_names(tuple(self.__signature__.parameters))  # refuses what does not fit
        self._lock = threading.RLock()
        self.session = Session(self, options.of_programs, lambda: [each.session for each in self._family.values()])
        self._family: Cache[str, Batched[P, R]] = Cache(SIGNATURES)
        """The functions that `options` has derived from the same one, itself included, by options: each compiles
        once."""
        self._family.put(repr(options), self)
        self._inner: Cache[Hashable, Batched[..., Any]] = Cache(SIGNATURES)
        """The batched functions of loops and helpers on a gradient tape in its body."""

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
        around = running_singly()
        if around is not None:
            return around.called(self.function, instance)  # type: ignore[return-value]
        with self._lock:
            return self._binder.bind(self, instance)

    def _bound(self, receiver: Any) -> Batched[..., R]:
        return Batched(MethodType(self.function, receiver), self._options, self._source.bound())

    def __tf_tracing_type__(self, context: Any) -> Any:
        """Return this function's key among the arguments of a caller's traced one: else it would take `__wrapped__`."""
        return backend_named(self._options.backend).as_argument(self)

    # -- looking inside ------------------------------------------------------------------------------------------------

    @without_internals
    def check(self, *args: Any, **kwargs: Any) -> None:
        """Compile without running; raises every diagnostic. Without arguments only names and syntax are checked."""
        if not args and not kwargs and self.__signature__.parameters:
            self._untyped()
        else:
            with announcing(self.__name__, self._options.notice):
                self.session.check(args, kwargs)

    @without_internals
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile ahead of time for arguments like these, so that the first call with such is a warm one.

        Nothing is computed for them: in the place of an array there may be a spec, `tf.TensorSpec([64], tf.float32)`,
        which says how many lanes there are, too; None there, for any number, where the program is native code. What
        grows in a run, such as stacks in lockstep, is compiled as large as it is at first; runs that a gradient tape
        watches and calls inside of a `tf.function` are compiled when they are made. Raises what `check` raises, and
        UsageError PCB539 for specs that leave too much open.
        """
        with announcing(self.__name__, self._options.notice):
            self.session.compile(args, kwargs)

    @without_internals
    def export(
        self, path: str | os.PathLike[str], *args: Any, platforms: Sequence[str] = ("cpu", "cuda"), **kwargs: Any
    ) -> None:
        """Write the program for arguments like these to a file, which `pcbatch.exported.load` runs by JAX alone.

        The file holds StableHLO, an array for each that the function captures, as it is now, variables, too, and what
        messages say. It needs no TensorFlow and no source where it is loaded, and serves any number of lanes, unless
        an operation depends on it in a way that no one text has: then it is run for as many as there are here at a
        time. Stacks grow as they do here. A tape does not follow it, `progress`, `resume` and `trace` have no meaning,
        and random draws have the same bits; other results differ by rounding, as between devices.

        Arguments:
            path: the path of the file, which is replaced.
            *args: arguments of a batch, or specs in their place, such as `tf.TensorSpec([64], tf.float32)`.
            platforms: the devices, as JAX calls them: "cpu", "cuda", "rocm". None of them need be here.
            **kwargs: further arguments, by name. One called `platforms` is passed by its position.

        Raises:
            CompileError, UsageError: what `check` raises; PCB582 for what cannot be exported: batched functions that
                operations call, functions of Python's that TensorFlow calls, a platform that there is not.
            OSError: the file cannot be written.
        """
        export(self.options(**PLAIN), path, args, kwargs, platforms)

    @without_internals
    def options(self, **changes: Unpack[OptionValues]) -> Batched[P, R]:
        """Return the same function under other options; UsageError PCB50x for impossible ones.

        Asked for the same options again it gives the same function, with all that is compiled already.
        """
        options = self._options.changed(changes)
        if not methods.is_defined_in_class(self.__wrapped__):
            options.check_names(tuple(self.__signature__.parameters))  # refuses what does not fit
        known = self if options == self._options else self._family.get(repr(options))
        if known is not None:
            return known
        return Batched(self.__wrapped__, options, self._source)._joining(self)

    def _joining(self, other: Batched[P, R]) -> Batched[P, R]:
        """Make this function a relative of the other one under other options."""
        self._family, self.session.lessons = other._family, other.session.lessons
        programs = self._options.of_programs
        same = (each.session for each in self._family.values() if each._options.of_programs == programs)
        self.session = next(same, self.session)
        return other._family.put(repr(self._options), self)

    def under(self, changes: Mapping[str, Any]) -> Batched[P, R]:
        """The same function under other options."""
        return self.options(**changes)

    def inner(self, key: Hashable, make: Callable[[], tuple[Any, FunctionSource | None]]) -> Batched[..., Any]:
        """The batched function of another one, which `make` makes with its source: one for each key.

        It has the limits of this one.
        """
        found = self._inner.get(key)
        if found is None:
            mine = self._options
            limits = Options(backend=mine.backend, max_depth=mine.max_depth, max_steps=mine.max_steps)
            function, source = make()
            found = Batched(function, limits, source)
            found.is_inner = True
            found = self._inner.put(key, found)
        return found

    def costing(self, row: float) -> Batched[P, R]:
        """The same function with the hint that a row of its blocks costs `row`; see `pcbatch.cost`."""
        return Batched(self.__wrapped__, self._options, replace(self._source, cost=row))

    @without_internals
    def ir(self, stage: Stage | Literal["adjoint", "llvm", "ptx", "loop"] = "cfg", *args: Any, **kwargs: Any) -> str:
        """The program's text at stage "cfg", "stack", "optimized" or "machine"; typed where arguments are given.

        At stage "machine", which needs them, it is what the machine executes for so many lanes; at "adjoint" what a run
        that a gradient tape watches keeps of each row, and how gradients come back through it; at "llvm" the native
        code of a program that runs as such, before LLVM's own passes; at "ptx" its kernel for a GPU; at "loop" the
        machine's loop under the schedule, as Python that a reader could run. It is a str, which prompts and notebooks
        show as text and not quoted.
        """
        if stage == "adjoint" or stage == "llvm" or stage == "ptx" or stage == "loop":
            if not (args or kwargs) and self.__signature__.parameters:
                raise UsageError("PCB506", f"{_DEPENDS}: give ir({stage!r}, ..) arguments")
            return Text(getattr(self.session, stage)(args, kwargs))
        _check_stage(stage, (*STAGES, "adjoint", "llvm", "ptx", "loop"))
        program = self.program(stage, *args, **kwargs)
        return Text(print_program(program) if isinstance(program, Program) else print_machine(program))

    @without_internals
    def program(self, stage: Stage = "cfg", *args: Any, **kwargs: Any) -> Program | machine.Program:
        """The program at one of the stages, as `ir` prints it."""
        _check_stage(stage, STAGES)
        if args or kwargs or not self.__signature__.parameters:
            return self.session.stage(stage, args, kwargs)
        if stage == "machine":
            raise UsageError("PCB506", f"{_DEPENDS}: give ir('machine', ..) arguments")
        cfg = self._untyped()
        if stage == "cfg":
            return cfg
        stack = lower_calls(optimize(cfg))
        return stack if stage == "stack" else optimize(stack)

    def _untyped(self) -> Program:
        """The program for arguments of any types."""
        return untyped_program(self, backend_named(self._options.backend))

    @without_internals
    def source(self, *args: Any, **kwargs: Any) -> str:
        """The generated Python of all blocks, for these arguments; without any, for the signature compiled last.

        The loop that runs them is the machine's, which `ir("loop", ..)` shows.
        """
        if args or kwargs or not self.__signature__.parameters:
            return Text(self.pipeline(*args, **kwargs).emitted.source)
        last = self.session.compiled.last
        if last is None:
            raise UsageError("PCB506", f"{self.__name__} has not run yet; give source() example arguments")
        return Text(last.emitted.source)

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
        """Pickled by name, as plain functions are, with the options that its namesake has not; see `naming.by_name`.

        By the plain function of its namesake, too, where there are picklers that take such apart; see
        `naming`. One that is bound is pickled with its object.
        """
        bound = None if self.receiver is None else of_receiver(self, self.receiver)
        if bound is not None:
            return restored_method, (self.receiver, *bound)
        name, namesake, changes = by_name(self)
        if not naming.is_by_value(self.function, self.__module__):
            return restored, (self.__module__, name, changes)
        return _arrived, (naming.named(namesake.carried_function, name), namesake.changed_options(), changes)

    @cached_property
    def carried_function(self) -> FunctionType:
        """A plain function like that of the user, which goes into pickles; found by name, it leads to this one."""
        copy = naming.made(self.function, self.__module__, self.__wrapped__)
        _origins[copy] = weakref.ref(self)
        return copy

    def __copy__(self) -> Batched[P, R]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Batched[P, R]:
        return self

    def is_relative(self, other: object) -> bool:
        """Return whether `other` is this function, perhaps under other options."""
        return isinstance(other, Batched) and other._family is self._family

    def all_options(self) -> dict[str, Any]:
        """Every option."""
        return dict(vars(self._options))

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
        """The values of default arguments, which a batched call without them passes."""
        return self.function.__defaults__

    @property
    def __kwdefaults__(self) -> dict[str, Any] | None:
        """The values of keyword-only default arguments, as functions have them."""
        return self.function.__kwdefaults__


_origins: weakref.WeakKeyDictionary[FunctionType, weakref.ref[Any]] = weakref.WeakKeyDictionary()
"""The batched functions that have given their plain ones to be pickled."""


def _arrived(function: FunctionType, options: Mapping[str, Any], changes: Mapping[str, Any]) -> Batched[..., Any]:
    """The batched function that was pickled by its plain one, in whatever process that is read."""
    origin = _origins.get(function, lambda: None)()
    if origin is not None:
        return origin.under(changes) if changes else origin

    def complete(it: Batched[..., Any], wrapped: Any) -> None:
        Batched.__init__(it, wrapped, Options(**options))

    first: Batched[..., Any] = naming.arrived(function, "", Batched.__new__(Batched), complete)
    if not changes:
        return first

    def change(it: Batched[..., Any], wrapped: Any) -> None:
        Batched.__init__(it, wrapped, first._options.changed(dict(changes)), first._source)
        it._joining(first)

    return naming.arrived(function, repr(sorted(changes.items())), Batched.__new__(Batched), change)
