"""The calls of a batched function: on a batch, on a batch with a report, or on one example as plain Python.

The overloads say it to type checkers. A function of one example, `def fib(n: int) -> int`, is called with numbers in
another function of one example, which gives a number, and with arrays from outside, which gives a tensor. No checker
can say of the user's signature that each of its parameters may be an array, too; so where one of the first three
arguments is an array, or arguments are passed by name, the others are not checked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from pcbatch.errors import PieceRefusalError, Span
from pcbatch.frontend import FunctionSource
from pcbatch.function.arguments import floats_beside, one_example
from pcbatch.function.batched_operation import BatchedOperation
from pcbatch.function.compilation_cache import Session
from pcbatch.function.examples import Examples, as_batch, asking, empty_map, running
from pcbatch.function.naming import Linkable
from pcbatch.function.pipeline import Pipeline
from pcbatch.function.reading_cache import ReadProgram
from pcbatch.function.user_code import OURS, compiling, not_for_autograph, noting, without_internals
from pcbatch.ir.machine import Program
from pcbatch.ir.types import Type
from pcbatch.ir.values import fields_of
from pcbatch.notice import announcing
from pcbatch.options import Options
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.interop import home_of, sent_home
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import faults
from pcbatch.runtime.report.results import as_numpy, require_numbers
from pcbatch.runtime.report.run import LaneError, Run
from pcbatch.single.running import as_tensor
from pcbatch.single.running import result as as_results
from pcbatch.single.surroundings import Surroundings

if TYPE_CHECKING:
    from pcbatch.runtime.backends.tensorflow.backend import Tensor

P = ParamSpec("P")
R = TypeVar("R")
Number = TypeVar("Number", bound=complex)
"""A type of numbers that a function of one example returns: `int`, `float`, `bool` or `complex`."""


class Array(Protocol):
    """The common interface of all libraries' arrays."""

    @property
    def shape(self) -> Any:
        """Its sizes."""

    @property
    def dtype(self) -> Any:
        """The type of its elements."""


Numbers = Sequence[complex]
Lists = Numbers | Sequence[Numbers] | Sequence[Sequence[Numbers]]
Batch = Array | Sequence[Array] | Lists | tuple[Any, ...] | dict[Any, Any]
"""An argument that has lanes: an array, lists of numbers, or a structure of these."""


class Calls(Linkable, Generic[P, R]):
    """The calls of `Batched`."""

    _options: Options
    _output: str
    _takes_slices: bool
    _source: FunctionSource
    is_inner = False
    """True for a loop or a helper on a gradient tape in the body of another one: what it changes would be lost."""
    session: Session
    """The session that compiles it: that of the same function under all options that matter to the compilation."""

    # -- running -------------------------------------------------------------------------------------------------------

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self: Calls[P, Number], batch: Batch, /, *args: Any, **kwargs: Any) -> Tensor: ...
    @overload
    def __call__(self: Calls[P, Number], _1: Any, batch: Batch, /, *args: Any, **kwargs: Any) -> Tensor: ...
    @overload
    def __call__(self: Calls[P, Number], _1: Any, _2: Any, batch: Batch, /, *args: Any, **kwargs: Any) -> Tensor: ...
    @overload
    def __call__(self: Calls[P, Number], *args: complex, **kwargs: Any) -> Tensor: ...
    @overload
    def __call__(self: Calls[P, Number], *args: Any, lanes: int, **kwargs: Any) -> Tensor: ...
    @overload
    def __call__(self, batch: Batch, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, _1: Any, batch: Batch, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, _1: Any, _2: Any, batch: Batch, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, *args: complex, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, *args: Any, lanes: int, **kwargs: Any) -> Any: ...

    @not_for_autograph
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a batch: arguments with a leading lane axis in, results with a leading lane axis out.

        If all arrays among the arguments are of JAX, or all of PyTorch, so are the results, by DLPack; not under a
        gradient tape that watches these, and inside of a `tf.function`.
        Raises LaneError if a lane failed; it carries the whole `Run`, so no finished lane is lost. Raises CompileError
        where the function is refused, UsageError where the arguments do not fit, and with the options `progress` or
        `resume` RunInterruptedError (a KeyboardInterrupt) after Ctrl-C; it carries the `Run` as well.
        """
        try:
            around = running.get()
            if around is not None:
                return around.called(self.function, self.receiver)(*args, **kwargs)
            if compiling() is not None:
                return self._called_inside_piece(args, kwargs)
            warm = None if kwargs or self._takes_slices else self.session.run_warm(args)
            if warm is not None and warm[1].values is not None and args and type(args[0]) is np.ndarray:
                return warm[0].packers[self._output](warm[1].values)  # one array is NumPy's: results have no home
            home = self.home(args, kwargs)
            if warm is not None:
                plan, finished = warm
                if finished.values is not None:
                    value = plan.packers[self._output](finished.values)
                else:
                    value = self._checked(plan.table, plan.outcome(finished), home)
            else:
                pipeline, outcome = self._execute(args, kwargs)
                value = self._checked(pipeline.outline, outcome, home)
            return self.sent(value, home) if home else value
        except OURS as error:  # as `without_internals`, for warm calls without one call more
            raise error.with_traceback(None) from None

    @overload
    def run(self, *args: P.args, **kwargs: P.kwargs) -> Run: ...
    @overload
    def run(self, batch: Batch, /, *args: Any, **kwargs: Any) -> Run: ...
    @overload
    def run(self, _1: Any, batch: Batch, /, *args: Any, **kwargs: Any) -> Run: ...
    @overload
    def run(self, _1: Any, _2: Any, batch: Batch, /, *args: Any, **kwargs: Any) -> Run: ...
    @overload
    def run(self, *args: complex, **kwargs: Any) -> Run: ...
    @overload
    def run(self, *args: Any, lanes: int, **kwargs: Any) -> Run: ...

    @without_internals
    def run(self, *args: Any, **kwargs: Any) -> Run:
        """Run a batch and report: a `Run`, which tells of each lane what became of it. Never raises for a lane.

        With the options `progress` or `resume`, Ctrl-C ends it early: lanes that are not done are UNFINISHED, and
        `run.save` keeps them.
        """
        self._refuse_inside_pieces()
        compiled, started = self.session.made(), time.perf_counter()
        warm = None if kwargs or self._takes_slices else self.session.run_warm(args)
        if warm is not None:
            plan, finished = warm
            program, outcome = plan.table, plan.outcome(finished)
        else:
            pipeline, outcome = self._execute(args, kwargs)
            program = pipeline.outline
        outcome.wait()
        seconds = time.perf_counter() - started
        run = Run.of(program, outcome, seconds if self.session.made() == compiled else None, self._output)
        home = self.home(args, kwargs)
        return run.with_value(self.sent(run.value, home)) if home else run

    def home(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """The library whose arrays the results are to be; None, or "", for the array library of the backend."""
        if self._output != "tensors":
            return None
        if not (kwargs or self.static_argnames):
            return home_of(args)
        bound = {**dict(zip(self.__signature__.parameters, args, strict=False)), **kwargs}
        return home_of(value for name, value in bound.items() if name not in self.static_argnames)

    def _checked(self, program: Program, outcome: Outcome, home: str | None) -> Any:
        """The value of a run; LaneError if a lane failed."""
        try:
            return Run.checked_value(program, outcome, self._output)
        except LaneError as error:
            if home:
                error.run = error.run.with_value(self.sent(error.run.value, home))
            raise

    def sent(self, value: Any, home: str) -> Any:
        """A run's value as arrays of another library; as it is where there are no numbers yet, or a tape watches it."""
        backend = backend_named(self._options.backend)
        leaves: list[Any] = []
        backend.mapped(leaves.append, value)
        if not backend.runs_now() or backend.is_watched(leaves):
            return value
        return backend.mapped(lambda leaf: sent_home(leaf, home), value)

    def _execute(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Pipeline, Outcome]:
        require_numbers(self.__name__, backend_named(self._options.backend), self._output)
        with announcing(self.__name__, self._options.notice):
            if self._takes_slices:
                pipeline, outcome = self.session.run_in_slices(args, kwargs, self._options)
            else:
                pipeline, outcome = self.session.run_at_once(args, kwargs)
        faults.show(pipeline.outline, outcome)
        return pipeline, outcome

    def as_operation(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """Call as one operation of a piece; also return whether the lane has not failed there."""
        from pcbatch.runtime.backends.tensorflow.opaque import call_batched

        return call_batched(BatchedOperation(self), args, kwargs)

    def _called_inside_piece(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call as one operation of the piece, where somebody heeds which lanes fail there."""
        noted = noting()
        if noted is None or fields_of(self.receiver) is not None:
            self._refuse_inside_pieces()
        from pcbatch.runtime.backends.tensorflow.opaque import call_batched

        value, fine = call_batched(BatchedOperation(self), args, kwargs)
        assert noted is not None
        noted += [] if fine is None else [fine]
        return value

    def _refuse_inside_pieces(self) -> None:
        """Refuse calls that the compiler does not see, as from a helper: they would run in every lane."""
        caller = compiling()
        if caller is not None and fields_of(self.receiver) is not None:
            owner = f"{type(self.receiver).__name__}.{self.__name__}"
            raise PieceRefusalError(
                "PCB405",
                f"the batched method `{owner}` is called on a value of `{caller}`",
                f"call it by its class: `{owner}(value, ..)`",
            )
        if caller is not None and noting() is not None:
            raise PieceRefusalError(
                "PCB405",
                f"`{self.__name__}.run` is called inside of a piece of `{caller}`",
                f"call `{self.__name__}(..)`, which gives the value",
            )
        if caller is not None:
            raise PieceRefusalError(
                "PCB405",
                f"the batched function `{self.__name__}` is called by a helper of `{caller}`",
                f"call the helper by its name in `{caller}`, or call `{self.__name__}` in `{caller}` itself",
            )

    # -- one example ---------------------------------------------------------------------------------------------------

    @without_internals
    def single(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The user's function as plain Python on one example; batched functions that it calls run singly too.

        Raises what the function raises, ZeroDivisionError and IndexError on tensors too; UsageError PCB511 for an
        argument that is no array.
        """
        backend = backend_named(self._options.backend)
        require_numbers(f"{self.__name__}.single", backend, self._output)
        bound = self.__signature__.bind(*args, **kwargs)
        bound.arguments = self._as_examples(bound.arguments)
        examples = dict(bound.arguments)
        try:
            with asking(lambda: self._maps(examples)):
                found = self.examples.run(self.receiver, bound.args, bound.kwargs, lambda: self._read(examples))
            found = as_results(found, as_tensor)
            if self._output == "numpy":
                found = backend.mapped(lambda leaf: as_numpy(self.__name__, backend, [leaf])[0], found)
            result: R = found
            return result
        except Exception as error:
            known = backend.as_python(error)
            if known is error:
                raise
            raise known.with_traceback(error.__traceback__) from None

    def as_example(self, parameter: str, value: Any, floats: str | None = None) -> Any:
        """One example's argument as `single` sees it: arrays, but static ones and shared numbers stay as they are.

        Python's own floats are of the dtype `floats`, if that is given.
        """
        if parameter in self.static_argnames:
            return value
        axes = self._options.axes(tuple(self.__signature__.parameters))[parameter]
        return one_example(backend_named(self._options.backend), value, axes, parameter, floats)

    def _as_examples(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as `single` sees them; Python's own floats are of the dtype of the float arrays among them."""
        found = {name: self.as_example(name, value) for name, value in given.items()}
        dynamic = [name for name in given if name not in self.static_argnames]
        backend = backend_named(self._options.backend)
        floats = floats_beside(backend, [given[name] for name in dynamic], [found[name] for name in dynamic])
        if floats is None:
            return found
        return {name: self.as_example(name, value, floats) for name, value in given.items()}

    def _read(self, examples: Mapping[str, Any]) -> ReadProgram:
        """The typed program that runs a batch of such examples."""
        axes = self._options.axes(tuple(self.__signature__.parameters))
        given = as_batch(
            backend_named(self._options.backend),
            examples,
            {name: each for name, each in axes.items() if name in examples},
        )
        return self.session.read((), given)

    def _maps(self, examples: Mapping[str, Any]) -> Mapping[Span, Type]:
        """Return the result types of maps in the program that runs a batch of such examples."""
        token = running.set(None)
        try:
            return self._read(examples).reading.maps
        finally:
            running.reset(token)

    @cached_property
    def examples(self) -> Examples:
        """The runner of one example."""
        return Examples(self.function, _plain_of, empty_map, backend_named(self._options.backend))


def _plain_of(value: Any) -> tuple[Any, Any] | None:
    """The plain function of a batched one, and the object that it is bound to."""
    return (value.function, value.receiver) if isinstance(value, Calls) else None


def running_singly() -> Surroundings | None:
    """Return the surroundings of a function of one example, while one runs."""
    return running.get()
