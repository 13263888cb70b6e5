"""What pcbatch needs of an array library: the whole of it.

Arrays of the machine are laid out `[lanes, ...]`. Arrays support Python's arithmetic, comparison and bit operators.
Everything here works on whole batches; only `vectorize` ever turns single-example code into batched code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from pcbatch.ir.machine import Piece, Program
from pcbatch.ir.types import TensorType, Type

Array = Any
State = dict[str, Array]
"""The arrays of a machine's state, by key; see `runtime.machine.state`."""
Spec = tuple[str, tuple[int | None, ...]]
"""The dtype and shape of an argument; None for a length that is known only when a program runs."""


@dataclass(frozen=True)
class Explanation:
    """An array library's error: its gist, the scopes (`Backend.scope`) and frames `(file, line)` that it names."""

    gist: str
    scopes: tuple[str, ...]
    frames: tuple[tuple[str, int], ...]


class Ended(Protocol):
    """What is left of a run, as `Backend.assert_ok` needs it; see `runtime.machine.outcome`."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The results."""

    @property
    def status(self) -> Array:
        """What became of each lane."""

    @property
    def site(self) -> Array:
        """At which fault site each lane failed."""

    @property
    def place(self) -> Array:
        """In which block each lane failed."""

    @property
    def fault_values(self) -> Mapping[str, Any]:
        """The tops of the variables that fault messages show."""


class Backend(Protocol):
    """An array library as the machine and the type inference see it."""

    name: str
    ops_module: str
    """Full name of the module that generated code knows as `ops`."""
    plain_builtins: Mapping[str, Callable[..., Any]]
    """Built-in functions that do not know the library's values, as `single` needs them."""

    def twin(self, function: Any) -> str | None:
        """The path in `ops` of what stands for a function of Python, `math` or NumPy that takes no such arrays.

        It is "without_twin" where nothing does, None for every other function.
        """

    def is_array(self, value: Any) -> bool:
        """Whether a captured value is an array (a tensor, a NumPy array, a variable) and so a shared operand."""

    def is_variable(self, value: Any) -> bool:
        """Whether a captured array is one that can be changed, of which pieces must know which one it is."""

    def takes_gradients(self, value: Any) -> bool:
        """Whether a captured object is a gradient tape's class, or a function whose code names one."""

    def type_of(self, value: Any) -> Type:
        """The type of a value of one example (a structure of arrays and Python numbers); TypeError for any other."""

    def example_type(self, value: Any) -> Type:
        """The type of one example of a structure of `[lanes, ...]` arrays; TypeError where a leaf has no batch axis."""

    def as_arrays(self, value: Any, example: bool = False) -> Any:
        """An argument (arrays, numbers, lists of numbers, structures of these) with arrays of the library as leaves.

        It is a batch, or one `example`, in which a list of scalar arrays is a structure too.
        """

    def structure_of(self, value: Any) -> Type:
        """The structure of what `as_arrays` gave, its arrays standing for leaves of whatever shape."""

    def spread(self, value: Any, type_: Type, lanes: Any) -> Any:
        """A structure of `type_` repeated for every lane: `[lanes, ...]` arrays."""

    def as_python(self, error: Exception) -> Exception:
        """What Python calls an error that the array library raised on one example: ZeroDivisionError, IndexError."""

    def as_type(self, value: Any, type_: Type) -> Any:
        """One example's `value` with arrays of exactly `type_` as leaves."""

    def wrap(self, value: Any, type_: Type) -> Any:
        """One example's `value`, arrays of exactly `type_`, with its weak numbers marked so that they act as weak."""

    def evaluate(self, piece: Piece, reads: Sequence[Any], shared: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """Run `piece` on one example: its outputs, and the fault site plus one of its first failed check, or 0."""

    def store_element(self, array: Any, indices: Any, value: Any) -> Any:
        """One example's `array` with `array[indices] = value`; IndexError where Python would raise it."""

    def abstract_eval(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[Type, ...]:
        """The types of the piece's outputs, found by tracing it on abstract values; nothing is computed."""

    def checked_sites(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> frozenset[int]:
        """The fault sites that `piece` really checks on such types: float division, for one, never fails."""

    def cost(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> float:
        """The estimated work of `piece` for one example: multiply-adds or elements, see `runtime.costs`."""

    def line_costs(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[float, ...]:
        """What of the `cost` comes from each line of the piece's body, one number for each of its `spans`."""

    def vectorize(
        self,
        piece: Piece,
        reads: Sequence[Any],
        shared: Sequence[Any],
        types: Sequence[Type],
        read_types: Sequence[Type],
        lanes: Array | int,
    ) -> tuple[list[Any], Array | None]:
        """Run `piece` for every lane, `lanes` of them: `(outputs, site)`.

        `reads` are structures of `[lanes, ...]` arrays of `read_types`, `shared` structures of unbatched arrays;
        outputs come as structures of `[lanes, ...]` arrays of exactly `types`. `site` is an int32 `[lanes]` array,
        the fault site plus one of each lane's first failed check or 0, or None where the piece has no checks.
        """

    def zeros(self, lanes: Array | int, type_: TensorType, entries: Array | int | None = None) -> Array:
        """Zeros of shape `[lanes, *type_.shape]`, or, given `entries`, of `[lanes, entries, *type_.shape]`."""

    def constant(self, value: int) -> Array:
        """An int32 scalar."""

    def array(self, value: Any, dtype: str) -> Array:
        """`value` (an array, a NumPy array, a number) as an array of `dtype`; a variable is read."""

    def cast(self, array: Array, dtype: str) -> Array:
        """`array` with its elements converted to `dtype`."""

    def lanes_of(self, array: Array) -> Array | int:
        """The length of the first axis, an int where it is known."""

    def entries_of(self, stack: Array) -> Array | int:
        """The length of the second axis, an int where it is known."""

    def lengthen(self, stack: Array, entries: Array | int) -> Array:
        """`stack` with zeros after its end, so that its second axis has length `entries`."""

    def lane_numbers(self, lanes: Array | int) -> Array:
        """int32 `[0, 1, .., lanes - 1]`."""

    def where(self, mask: Array, new: Array, old: Array) -> Array:
        """`new` where the `[lanes]` bool `mask` holds, else `old`; the mask is broadcast over trailing axes.

        `new` and `old` are `[lanes, ...]` arrays or scalars.
        """

    def where_each(self, masks: Sequence[Array], new: Sequence[Array], old: Sequence[Array]) -> list[Array]:
        """`where(mask, new, old)` for each, maybe one after the other."""

    def take(self, array: Array, rows: Array) -> Array:
        """`array[rows]` along the first axis; rows are in range."""

    def compact(self, mask: Array, size: int) -> Array:
        """int32 `[size]`: the first lanes at which `mask` holds, in order, then the first of them again and again."""

    def load(self, array: Array, indices: Sequence[Array], lanes: Array | None = None) -> Array:
        """`array[lane, i, j, ..]` for every row: `[rows, rest..]`. Indices are int32 `[rows]`, of junk rows any.

        `lanes` is int32 `[rows]`, the lane of each row; where it is None, row i is lane i.
        """

    def masked_store(
        self, array: Array, indices: Sequence[Array], mask: Array, value: Array, lanes: Array | None = None
    ) -> Array:
        """`array` with `array[lane, i, j, ..] = value[row]` for the rows of `mask`; see `load`.

        It costs the elements written, not all. No two rows of `mask` are of the same lane. Indices are `[rows]`, or
        `[rows, n]`: distinct positions, of which every combination is written. Values are broadcast to what is written
        of a lane.
        """

    def with_row(self, array: Array, place: Array, row: Array) -> Array:
        """`array` with `array[place] = row`, for an int32 scalar within the array; in place where it can be."""

    def all_of_lane(self, mask: Array) -> Array:
        """`[lanes]` bool: whether all of a lane's `[lanes, ..]` bools hold."""

    def any(self, mask: Array) -> Array:
        """Whether any element of a bool array holds: a scalar."""

    def sum(self, array: Array) -> Array:
        """int32 scalar sum of a bool or integer array."""

    def tally(self, numbers: Array, labels: Sequence[int]) -> Array:
        """How many of `[lanes]` int32 `numbers` equal each label: int32 `[len(labels)]`."""

    def weighted(self, array: Array, weights: Sequence[float]) -> Array:
        """float32 scalar: the sum of a vector of bools or numbers, each times its weight."""

    def min(self, array: Array) -> Array:
        """Scalar minimum of an integer array."""

    def max(self, array: Array) -> Array:
        """Scalar maximum of an array that is not empty."""

    def stack(self, scalars: Sequence[Array]) -> Array:
        """A vector of scalars."""

    def joined(self, *vectors: Array) -> Array:
        """Vectors one behind the other, as one."""

    def unstack(self, vector: Array, count: int) -> list[Array]:
        """The `count` scalars of a vector."""

    def cond(self, predicate: Array, function: Callable[[], list[Array]], otherwise: list[Array]) -> list[Array]:
        """`function()` where the scalar `predicate` holds, else `otherwise`; only one is computed."""

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

    def repeated(
        self,
        predicate: Array,
        function: Callable[[Array, list[Array]], tuple[Array, list[Array]]],
        before: Sequence[Array],
    ) -> list[Array]:
        """`while predicate: predicate, before = function(predicate, before)`: what `before` is then.

        Shapes stay. `function` may read the predicate, which holds.
        """

    def in_turn(self, arrays: Sequence[Array]) -> bool:
        """Whether work on `arrays` is faster in a loop of its own than beside work on a large one."""

    def while_loop(self, condition: Callable[[Any], Array], body: Callable[[Any], Any], state: Any) -> Any:
        """A loop over a nested structure of arrays of constant shapes."""

    def scope(self, name: str) -> AbstractContextManager[Any]:
        """Operations made inside carry `name`, so that `explain` can say where a refused one comes from."""

    def compile(
        self, function: Callable[..., Any], jit: bool, specs: Sequence[Spec] | None = None
    ) -> Callable[..., Any]:
        """`function` compiled for repeated calls with arguments of equal shapes; by XLA if `jit`.

        Given `specs`, it is traced once for all arguments of such shapes, where a length may be None: known only when
        it runs. XLA compiles it anew for each length.
        """

    def lower(self, compiled: Callable[..., Any], specs: Sequence[Spec], jit: bool) -> None:
        """Trace what `compile` gave for arguments of these specs, and let XLA read it if `jit`, without running it."""

    def seal(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """`function(*arrays)`, for which asking a gradient raises GradientError; forward it runs under any tape."""

    def is_concrete(self, array: Array) -> bool:
        """Whether the array has its values now, rather than being traced as a part of a caller's own program."""

    def in_outer_xla(self) -> bool:
        """Whether this is being traced inside a caller's program that XLA compiles, where nothing can raise."""

    def assert_ok(self, program: Program, ended: Ended, texts: Sequence[Sequence[str]]) -> tuple[Any, ...]:
        """The results inside a caller's program, which when run raises if a lane failed, before it uses them.

        The error names the lane and shows the text of its fault with the values filled in. `texts[site]` is one text,
        or one for each block in which a lane may have failed.
        """

    def explain(self, error: Exception) -> Explanation | None:
        """What an error that compiling or running raised is about; None for errors that no operation caused."""
