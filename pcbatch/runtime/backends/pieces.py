"""Pieces: a user's code for one example, of which a library finds the types and cost, and which it runs for all lanes.

Only here does single-example code become batched code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type
from pcbatch.runtime.backends.arrays import Array

Leaves = Sequence[Array]
"""The arrays of a structured value, in order: see `ir.types.leaves`."""


@dataclass(frozen=True)
class Apart:
    """Gradients by shared operands are to be of each lane apart: of which `lane` each row is, of so many `lanes`."""

    lane: Array | None
    lanes: Array | int


Note = Callable[[Span | None, str], None]
"""A callback for a place in the user's source, with a remark on how it runs."""


@dataclass(frozen=True)
class Signature:
    """The types of a piece's reads, of its shared operands, and of its writes, in the piece's order."""

    reads: Sequence[Type]
    shared: Sequence[Type]
    writes: Sequence[Type]


@dataclass(frozen=True)
class Kernels:
    """A piece by the library's own kernels: its `cost`, and its cost where the library's compiler makes the code.

    `obstacle` says why it had better be compiled, whatever it costs: an operation fails otherwise, for some values.
    """

    cost: float
    compiled: float
    obstacle: str | None = None


@dataclass(frozen=True)
class BatchSensitivity:
    """The ways in which a piece depends on the number of rows that are computed together.

    `rounds`: the last bits of a row's floats may depend on it. `shares`: rows are multiplied by something that all
    lanes share, which is cheaper for several at once. `most`: how many numbers the largest array has that is read or
    computed, as far as that is known. `componentwise`: every operation does the same to each element of its arrays.
    """

    rounds: bool
    shares: bool
    most: int = 0
    componentwise: bool = False


@dataclass(frozen=True)
class Wanted:
    """The gradients wanted of a piece: by which operands, and through which results, a bool for each."""

    reads: tuple[bool, ...]
    shared: tuple[bool, ...]
    writes: tuple[bool, ...]


@dataclass(frozen=True)
class Element:
    """An element that a piece takes of the array at place `read`; `depth` is the number of its indices."""

    read: int
    depth: int


@dataclass(frozen=True)
class Origin:
    """The origin of a residual: the value read at place `read`, or the result of an operation at `span`."""

    read: int | None
    operation: str
    span: Span | None


@dataclass(frozen=True)
class Backward:
    """The ingredients of gradients by a piece's results, all `[rows, ...]`.

    `reads` are the gradients by what is read, None for leaves to which none flows; then the deltas, and what is to be
    summed; of each element its indices, and the gradient by it.
    """

    reads: list[list[Array | None]]
    deltas: list[Array]
    parts: list[Array]
    elements: list[tuple[list[Array], Array]]


@dataclass(frozen=True)
class Hlo:
    """The text of an HLO module, and the values of the last parameters of its entry, which are always the same."""

    text: str
    captured: Sequence[np.ndarray]


class Linear(Protocol):
    """A piece and its derivative: the residuals of each row, and the backward pass from them.

    A gradient by a value that all lanes share is never made row by row where that can be helped. Where such a value
    meets one of a lane in a product, or is looked up in, a row gives a *delta*, and all rows of many runs are pulled
    back together (`pull_back`). Elsewhere a row gives what is to be *summed* over all rows.

    A piece is *late* if no gradient flows through it to what it reads: nobody waits for its `backward`, which may be
    done for all rows of many runs together.
    """

    is_late: bool
    seeds_of: Sequence[TensorType]
    """Types of the seeds, the inputs of `backward` for each row, in order."""

    residuals: Sequence[TensorType]
    """Types of the values that the backward pass needs of each row."""
    deltas: Sequence[TensorType]
    summed: Sequence[TensorType]
    lookups: Mapping[int, int]
    """The leaf of a shared operand in which rows are looked up directly, by the number of their delta."""
    dense: frozenset[int]
    """The leaves of shared operands to which gradients come in another way than by lookups."""

    reads_of: Sequence[int]
    """The leaves of the piece's reads, by number, to which gradients flow whole."""

    elements: Sequence[Element]
    """The arrays of which the piece reads elements alone: gradients go to these, not to the array."""

    @property
    def origins(self) -> Sequence[Origin]:
        """The origin of each residual."""

    def described(self) -> str | None:
        """A digest of the derivative, the same in every process; None where it has something of this one."""

    def forward(
        self,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        lanes: Array | int | None,
        taking_part: Array | None = None,
        note: Note | None = None,
    ) -> tuple[list[list[Array]], Array | None, list[Array]]:
        """Run forward as `Pieces.vectorize`, and return the residuals, too.

        Nothing has an axis of lanes where `lanes` is None.
        """

    def backward(
        self, residuals: Sequence[Array], shared: Sequence[Leaves], seeds: Sequence[Leaves], lanes: Array | int | None
    ) -> Backward:
        """Return the ingredients of gradients from the gradients by the results.

        `seeds` are for the leaves of each result that is wanted, of those alone that have gradients.
        """

    def pull_back(
        self,
        residuals: Sequence[Array],
        deltas: Sequence[Array],
        sums: Sequence[Array],
        shared: Sequence[Leaves],
        mask: Array,
        left_out: Collection[int] = (),
        apart: Apart | None = None,
    ) -> list[list[Array | None]]:
        """The gradients by the shared operands, of the rows of `mask` in all, and of the sums of what was summed.

        Deltas that are `left_out`, by number, have no part in it. `apart`: sums and gradients are `[lanes, ...]`.
        """

    def looked_up(self, number: int, residuals: Sequence[Array], shared: Sequence[Leaves], mask: Array) -> Array:
        """Return the table rows that a lookup, given by the number of its delta, read for each row: int `[rows, ...]`.

        What it is for the rows outside of `mask` is of no account.
        """


class Symbols(Protocol):
    """Operations on symbols, which have types and no numbers."""

    def symbol(self, type_: Type, *, own: bool = False) -> Any:
        """A value of this type: one for all that ask, or one of the caller's `own`."""

    def called(self, make: Callable[[], Any]) -> tuple[Any, bool]:
        """Call `make`, which applies operations to symbols; return its result and whether it may fail a lane."""

    def type_of(self, value: Any) -> Type | None:
        """The type of a number or an array that an operation has given; None for everything else."""

    def made_of(self, values: Sequence[Any], given: Sequence[Any]) -> Hashable:
        """A key that is the same for values that the same operations have made of symbols, each `given` in its turn."""

    def why_part(self, value: Any) -> Exception | None:
        """Return the reason why no variable can hold a result that may live in a piece; None for everything else."""

    def is_written(self, value: Any) -> bool:
        """Return whether the result of an operation is an object that later operations write to."""

    def entered(self, manager: Any) -> AbstractContextManager[Any]:
        """Enter a context manager of the library around operations on symbols."""


class Facts(Protocol):
    """The properties of a piece on some types, from a trace of it on abstract values: nothing is computed."""

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of its outputs."""

    @property
    def sites(self) -> frozenset[int]:
        """The fault sites that it really checks: float division, for one, never fails."""

    @property
    def cost(self) -> float:
        """The estimated work for one example: multiply-adds or elements, see `runtime.costs`."""

    @property
    def line_costs(self) -> tuple[float, ...]:
        """The `cost` split over the lines of its body: one number for each of its `spans`."""

    @property
    def together(self) -> BatchSensitivity:
        """The ways in which it depends on the number of rows that are computed together."""

    @property
    def kernels(self) -> Kernels:
        """A comparison of the library's own kernels for it with the code of its compiler."""

    @property
    def called(self) -> list[str]:
        """The names of batched functions that it calls as operations, each for all lanes at once.

        Such a run grows as it goes, so no compiled program can have it inside.
        """

    @property
    def captured(self) -> list[Any]:
        """The captured variables and arrays in helpers that have gradients and are no shared operands."""

    @property
    def has_loop(self) -> bool:
        """True if it contains a loop, which might never end on the junk values of an idle lane."""


class Pieces(Protocol):
    """The operations on a piece; `reads` and `shared` are its operands, or their types, in the piece's order."""

    ops_module: str
    """Full name of the module that generated code knows as `ops`."""

    def equivalent(self, function: Any) -> str | None:
        """Return the path in `ops` for a function of Python, `math` or NumPy that takes no such arrays.

        It is "without_equivalent" where nothing does, None for every other function.
        """

    def symbols(self, tapes: bool) -> Symbols:
        """Return a tracer of single operations' types; `tapes` tells whether the user's code may take gradients."""

    def failure(self, error: Exception, handed: bool = False) -> tuple[str, str, str]:
        """Return the code, the message and the advice for an error raised while an operation was tried.

        `handed` says that pcbatch's own code has called the user's, such as a density.
        """

    def is_size(self, error: Exception) -> bool:
        """Return whether an operation was refused because it needs one number for all lanes where each has its own."""

    # -- what it is ----------------------------------------------------------------------------------------------------

    def facts(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> Facts:
        """Return what is known of `piece` on such types, each fact found when it is asked for."""

    def tracing_once(self, known: dict[Any, Any] | None = None, jit: bool = False) -> AbstractContextManager[None]:
        """Answer all questions about a piece's inside from one trace of it.

        That may be one of those in `known`, to which those made inside are added: so a program can have the traces that
        something was found out by before. With `jit` they are such as a program has that is compiled.
        """

    def trace_ahead(self, given: Iterable[tuple[Piece, Signature, str]]) -> None:
        """Trace pieces, which are of blocks with these labels, inside `tracing_once`."""

    def described(self, piece: Piece, signature: Signature) -> str | None:
        """Return a digest of the computation of `piece` for such types, equal in every process.

        None where there is none, as where it runs code of the user's for all lanes at once.
        """

    # -- running it ----------------------------------------------------------------------------------------------------

    def vectorize(
        self,
        piece: Piece,
        signature: Signature,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        lanes: Array | int,
        taking_part: Array | None = None,
        note: Note | None = None,
    ) -> tuple[list[list[Array]], Array | None]:
        """Run `piece` for every lane, `lanes` of them: `(outputs, site)`.

        `reads` are the leaves of each value that it reads, `[lanes, ...]` arrays, `shared` those of its shared
        operands, unbatched; outputs come as leaves, `[lanes, ...]` arrays of exactly the types. `site` is an int32
        `[lanes]` array, the fault site plus one of each lane's first failed check or 0, or None where the piece has no
        checks. Only the rows that are `taking_part` (bool `[lanes]`; None: all) are of account. What can be run for
        one lane but not for all together is run for these, one after another, and `note` is told.
        """

    def tangent(self, piece: Piece, signature: Signature) -> Callable[..., tuple[Any, ...]]:
        """The function of a piece that also gives the tangents of what it writes, those of its float leaves.

        It takes what the piece reads, the tangents of that, the same of shared operands, and the tangents of captured
        values. Of a structure the tangent is the tuple of those of its float leaves.
        """

    def linearize(self, piece: Piece, signature: Signature, wanted: Wanted) -> Linear:
        """The piece and its derivative; GradientError PCB602 where an operation has none, at the user's line."""

    def native_obstacles(
        self, pieces: Sequence[tuple[Piece, Signature, str]]
    ) -> list[tuple[tuple[str, Span | None], ...]]:
        """Return for each piece its operations that do not run in a native function, and their places.

        Pieces come with the labels of their blocks; see `Control.natively`.
        """

    def hlo(self, pieces: Sequence[tuple[Piece, Signature]], linear: Sequence[Linear | None] = ()) -> Hlo | None:
        """An HLO module with the operations of `pieces`, as they are for one example.

        Its entry takes the leaves of what every piece reads and shares, one piece after another, and gives the leaves
        of what each writes, then the fault site plus one of its first failed check, or 0, where it has `sites`. None
        if the library has no HLO, or none of what a piece does for one example.

        With `linear`, the derivatives of pieces in their order, None where there is none, a piece gives its residuals
        last. Behind all pieces come the derivatives: each takes residuals, the leaves of what the piece shares, and
        seeds, and gives the gradients by its `reads_of`, the indices and the gradient of each element, and the parts.
        """

    def evaluate(self, piece: Piece, reads: Sequence[Any], shared: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """Run `piece` on one example: its outputs, and the fault site plus one of its first failed check, or 0."""

    def store_element(self, array: Any, indices: Any, value: Any) -> Any:
        """One example's `array` with `array[indices] = value`; IndexError where Python would raise it."""


# -- notes -------------------------------------------------------------------------------------------------------------
# Notes of the state that operations read while a program is made, beside the reads of the user's own code.


State = Callable[[], tuple[Any, ...]]
"""A function that returns a state's present value, to be compared."""

_note: ContextVar[Callable[[State], None] | None] = ContextVar("note", default=None)


@contextlib.contextmanager
def by(note: Callable[[State], None]) -> Iterator[None]:
    """Call `note` inside for each state on which the program depends."""
    token = _note.set(note)
    try:
        yield
    finally:
        _note.reset(token)


def note(state: State) -> None:
    """Note that the trace depends on this state."""
    told = _note.get()
    if told is not None:
        told(state)
