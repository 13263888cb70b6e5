"""The interface to an array library, in four parts: arrays, the user's values, pieces, and control.

`arrays` has what the machine's state is made of, and how a user's values come in and go out; `pieces` has what a
library does with a user's code. Control is here: conditionals, loops, compilation, and the caller's program around a
run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.arrays import Array, Arrays, Host, State
from pcbatch.runtime.backends.pieces import Pieces
from pcbatch.runtime.store.cache_session import Name

# -- control -----------------------------------------------------------------------------------------------------------


PullBack = Callable[[Sequence[Array | None]], Sequence[Array | None]]
"""A function from gradients by a function's results to those by its arguments."""
Many = Callable[[Sequence[Array], Any], list[Array | None]]
"""Several runs in one, of `[runs * lanes, ...]` arrays and shared ones, and their number: results of all lanes."""
Surroundings = Literal["fixed program", "vectorised function", "saved gradient"]
"""A caller's compiled program, where nothing can raise or grow; a function that the caller vectorises, along an axis of
its own; a gradient that is traced only to be saved, which sees its run's arrays, but not its records."""


@dataclass(frozen=True)
class Further:
    """Derivatives of a run beyond its first pull back.

    `tangents`, from the arrays and the directions in which they change, are the changes of the results. `pull_back` are
    many pull backs in one, of the arrays and the gradients that come: all gradients by lane. The first `count` of the
    arrays are of lanes. If the run itself may be one of many, that is `run`.
    """

    tangents: Callable[[Sequence[Array], Sequence[Any]], Sequence[Array | None]]
    pull_back: Callable[[Sequence[Array], Sequence[Array | None], Any], list[Array | None]]
    count: int
    run: Many | None = None


Spec = tuple[str, tuple[int | None, ...]]
"""The dtype and shape of an argument; None for a length that is known only when a program runs."""


@dataclass(frozen=True)
class Explanation:
    """An array library's error: its gist, the scopes (`Control.scope`) and frames `(file, line)` that it names."""

    gist: str
    scopes: tuple[str, ...]
    frames: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Launch:
    """The launch of a kernel: its name, its text in PTX, the number of blocks, and the threads of each."""

    name: str
    text: str
    blocks: int
    threads: int


class RunOutcome(Protocol):
    """The end of a run, as `Control.checked_values` needs it; see `runtime.machine.outcome`."""

    @property
    def values(self) -> tuple[Array, ...]:
        """The leaves of the results."""

    @property
    def status(self) -> Array:
        """The status of each lane."""

    @property
    def site(self) -> Array:
        """The fault site at which each lane failed."""

    @property
    def place(self) -> Array:
        """The block in which each lane failed."""

    @property
    def fault_values(self) -> Mapping[str, Sequence[Array]]:
        """The leaves of the variables that fault messages show."""


class Lowering(Protocol):
    """A traced function as StableHLO, whose lengths may be unknown while it is traced."""

    @property
    def captured(self) -> Sequence[Any]:
        """NumPy's arrays that the text takes behind the function's own."""

    def text(self, shapes: Sequence[tuple[int, ...]], place: str) -> str:
        """The text of the module for arrays of these shapes on a "CPU" or a "GPU"."""


class Records(Protocol):
    """Lists of arrays that grow as a program runs, one list for each array of a record."""

    def none(self, specs: Sequence[Spec]) -> list[Array]:
        """Lists without entries, whose entries are to have these dtypes and shapes."""

    def added(self, records: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
        """The lists with an array more at the end of each."""

    def without_last(self, records: Sequence[Array], specs: Sequence[Spec]) -> tuple[list[Array], list[Array]]:
        """The lists without their last entries, and these."""

    def joined(self, records: Sequence[Array], specs: Sequence[Spec]) -> list[Array]:
        """The entries of each list, arrays whose first lengths differ, one after the other as one array."""


class Handlers(Protocol):
    """Handlers, functions of machine code that a caller's program calls: see `interop`; and kernels of GPUs."""

    def version(self) -> tuple[int, int] | None:
        """The version of the interface by which a caller's program calls handlers; None where it cannot."""

    def register(self, name: str, address: int) -> None:
        """Let `call` know the handler at an address by a name that no other has, for good."""

    def call(
        self, made: str | Launch, arrays: Sequence[Array], specs: Sequence[Spec], changed: Sequence[int] = ()
    ) -> list[Array]:
        """Arrays of these dtypes and shapes, which a handler makes of `arrays`, or a kernel; within a compiled program.

        A handler is known by its name. A first length that is None is that of the first of `arrays`. The first results
        lie where the arrays of the numbers `changed` have lain, if nobody needs these as they were.
        """

    def kernels_on(self) -> str | None:
        """The place that runs kernels in programs for a GPU: "GPU"; "CPU", which tests have in its stead; or None."""

    def here(self, function: Callable[[], list[Array]], otherwise: Callable[[], list[Array]]) -> list[Array]:
        """`function()` where a caller's program runs in the process that it was traced in, else `otherwise()`."""


class Control(Protocol):
    """Conditions and loops over arrays, and programs made of them.

    A library may run them at once, or trace and compile them: then they may also become part of a program that the
    caller is tracing, in which arrays have no values yet.
    """

    records: Records
    handlers: Handlers

    # -- conditions and loops ------------------------------------------------------------------------------------------

    def cond(
        self,
        predicate: Array,
        function: Callable[[], list[Array]],
        otherwise: list[Array] | Callable[[], list[Array]],
        *,
        seldom: bool = False,
    ) -> list[Array]:
        """`function()` where the scalar `predicate` holds, else `otherwise`; only one is computed.

        Where it holds `seldom`, what is not computed is to cost nothing, in a plain graph either. So it is where
        `otherwise` is a function, too, of the same dtypes; lengths that differ are not known then.
        """

    def switch(
        self, number: Array, functions: Sequence[Callable[[], list[Array]]], before: Sequence[Array]
    ) -> list[Array]:
        """`functions[number]()`, of the dtypes and shapes of `before`; only that one is computed."""

    def guarded(
        self,
        predicate: Array,
        function: Callable[..., list[Array]],
        before: Sequence[Array],
        in_place: Sequence[bool],
    ) -> list[Array]:
        """`function(predicate, *before)` where the scalar `predicate` holds, else `before`; only one is computed.

        Shapes stay. Of arrays that are `in_place` the function writes elements at most, the others it computes anew.
        """

    def while_loop(
        self,
        condition: Callable[[Any], Array],
        body: Callable[[Any], Any],
        state: Any,
        *,
        seldom: bool = False,
        stops: bool = False,
    ) -> Any:
        """`while condition(state): state = body(state)`: a nested structure of arrays.

        Their shapes stay, but for lengths that are not known before it runs. `seldom`: there are few turns, or
        none; see `cond`. `stops`: it may take long, and ends early where Ctrl-C has ended the run, of which nothing is
        used then.
        """

    def place(self) -> str:
        """Return the kind of device that this thread compiles for, "CPU" or "GPU"; programs are made for one kind."""

    # -- programs ------------------------------------------------------------------------------------------------------

    def scope(self, name: str) -> AbstractContextManager[Any]:
        """Operations made inside carry `name`, so that `explain` can say which one was refused."""

    def compile(
        self, function: Callable[..., Any], jit: bool, specs: Sequence[Spec] | None = None, name: Name | None = None
    ) -> Callable[..., Any]:
        """`function` made ready for repeated calls with arguments of equal shapes; by the library's compiler if `jit`.

        Given `specs`, it is traced once for all arguments of such shapes, where a length may be None: known only when
        it runs. A compiler may compile it anew for each length.
        What has a `name` may be kept on disk (`runtime.store`), and be found there by another process.
        """

    def direct(
        self, compiled: Callable[..., Any], arrays: Sequence[Array]
    ) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """Return `compiled` specialised to arrays like these: called with all of them, it does not inspect them.

        To be called only where what runs is `runs_unseen`.
        """

    def lower(self, compiled: Callable[..., Any], specs: Sequence[Spec], jit: bool) -> None:
        """Raise the errors of a first run: trace the result of `compile`, and have it compiled if `jit`."""

    def targeting(self, place: str) -> AbstractContextManager[None]:
        """Trace programs inside for a "CPU" or a "GPU", whatever the machine has."""

    def lowering(self, function: Callable[..., Any], specs: Sequence[Spec]) -> Lowering:
        """A function of arrays of such dtypes and shapes, traced, to be written as StableHLO."""

    def explain(self, error: Exception) -> Explanation | None:
        """Translate an error raised while compiling or running; return None if no operation caused it."""

    # -- inside a caller's program -------------------------------------------------------------------------------------

    def runs_now(self, *, unwatched: bool = False) -> bool:
        """Return whether a call runs at once instead of becoming part of a caller's program.

        If it is to be `unwatched`, also whether nobody watches it who might ask for a gradient.
        """

    def inside(self, what: Surroundings) -> bool:
        """Return whether this is traced into one of a caller's things; see `Surroundings`."""

    def is_concrete(self, array: Array) -> bool:
        """Return whether the array has its values now, not only when a caller's traced program runs."""

    def checked_values(self, program: Program, ended: RunOutcome, texts: Sequence[Sequence[str]]) -> tuple[Any, ...]:
        """The results inside a caller's program, which when run raises if a lane failed, before it uses them.

        The error names the lane and shows the text of its fault with the values filled in. `texts[site]` is one text,
        or one for each block in which a lane may have failed.
        """

    def version(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The library's version and devices, and the settings of the process: what traced and compiled programs are of.

        Another version may trace and compile otherwise.
        """

    def forbid_gradients(self, function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
        """`function(*arrays)`, through which nobody can take a gradient: GradientError, naming `name`, if one is asked.

        That a caller could ask for one disturbs nothing. Without a name no tape sees calls of a compiled function,
        whatever is made of its results; the first call still traces as usual.
        """

    def is_watched(self, arrays: Sequence[Array]) -> bool:
        """Return whether a tape watches operations on `arrays`, so that a gradient is likely."""

    def differentiable(
        self,
        function: Callable[[list[Array]], tuple[Sequence[Array], PullBack]],
        arrays: Sequence[Array],
        name: str,
        further: Further | None = None,
    ) -> list[Array]:
        """Return the results of `function(arrays)`, hidden from tapes inside; it defines their gradients.

        It gives its results and how to come from gradients by these to those by `arrays`; None stands for none. That
        is differentiated in turn by `further`, if it is given; else GradientError PCB604, naming `name`, if somebody
        asks for it. A GradientError of a gradient that is only saved is raised by what uses the gradient.
        """


Turn = Callable[[Array, list[Array]], tuple[Array, list[Array]]]
"""A function from a bool scalar, which holds, and arrays to whether there is another turn, and the arrays then."""


def repeated(backend: Control, predicate: Array, function: Turn, before: Sequence[Array]) -> list[Array]:
    """Run `while predicate: predicate, before = function(predicate, before)`; return the last `before`.

    Shapes stay. `function` may read the predicate, which holds.
    """
    start = predicate, list(before)
    _, after = backend.while_loop(lambda carried: carried[0], lambda carried: function(*carried), start)
    return list(cast(Sequence[Array], after))


# -- protocol ----------------------------------------------------------------------------------------------------------


__all__ = [
    "Array",
    "Arrays",
    "Backend",
    "Control",
    "Explanation",
    "Further",
    "Host",
    "Launch",
    "Lowering",
    "Pieces",
    "PullBack",
    "RunOutcome",
    "Spec",
    "State",
]


class Backend(Arrays, Control, Pieces, Host, Protocol):
    """An array library as the machine and the type inference see it."""
