"""The decorator `autobatch`; what it returns is in `function/batched.py`, the stages in `function/pipeline.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from pcbatch.function.batched import Batched
from pcbatch.function.user_code import without_internals
from pcbatch.options import Options, OptionValues

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")


@overload
def autobatch(fn: Callable[P, R]) -> Batched[P, R]: ...
@overload
def autobatch(fn: None = None, **options: Unpack[OptionValues]) -> Callable[[Callable[P, R]], Batched[P, R]]: ...
@overload
def autobatch(fn: Callable[P, R], **options: Unpack[OptionValues]) -> Batched[P, R]: ...


@without_internals
def autobatch(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Batch a function of one example: a decorator, bare or with options, or a call.

    Arguments:
        fn: A plain Python function of one example. `docs/language.md` says what it may contain.
        **options: The following.
        in_axes: Which arguments have a leading lane axis. 0 if all have one, None if all lanes share the argument; one
            for all, a tuple by position, or a dict by name. A Python number beside a batch is shared in any case.
        static_argnames: Names of parameters whose arguments are Python values when the program is compiled. They must
            be hashable; each value has a program of its own. Sizes, names and functions can be static; only one arm of
            a branch on a static value is compiled.
        output: The type of the results: TensorFlow's "tensors", or "numpy" arrays. NumPy's arrays are faster for small
            batches of native code. Refused inside a `tf.function` and for results that a gradient tape watches
            (PCB538).
        form: How lanes run. "lockstep": a block runs at once for all lanes that wait at it. "native": one lane after
            another, in one native function, which is many times as fast where a row costs little; on a CPU only, for
            the operations that `docs/operations.md` calls native. "auto": native if that is possible and rows are
            cheap, and mixed if some blocks are expensive: those in lockstep, the code between them native. A program of
            one block, without loops, calls and branches, runs as that block. Runs in slices are in lockstep, and so are
            native and mixed programs in a caller's `tf.function`.
        jit: Whether to compile with XLA. False runs TensorFlow's own kernels, for debugging. "auto" chooses for
            programs of one block, by their operations, and takes XLA for all others; `stats().forms` says which, and
            why. XLA is slow for convolutions on a CPU.
        schedule: The rule by which the next block is chosen. "auto" is "adaptive" at present: cheap blocks are swept,
            and lanes gather before expensive ones. "earliest" is the paper's, "busiest" takes the block with most
            lanes, "sweep" takes all in order, "switch" one in each turn.
        deterministic: Whether a lane gives the same bits in every batch. Then every block that rounds runs in chunks
            of one size. Cheap blocks in lockstep take 2 to 3 times as long; expensive ones and native code do not.
        max_depth: The most live calls of a lane, tail calls apart. By default 8192. A lane beyond it fails with
            MAX_DEPTH. It limits endless recursion and is no size: stacks grow as lanes need them. In a function
            compiled with `jit_compile=True` they cannot grow, so there it must be given, and is their size.
        max_steps: The most loop turns plus calls of a lane. By default there is no limit. A lane beyond it fails with
            MAX_STEPS.
        max_lanes: The most lanes at a time. By default there is one for each example. Lanes that become free take the
            next examples. Stacks and variables take the memory of so many lanes, and one program serves all numbers of
            examples up to it, and one each power of two beyond. It changes nothing where lanes run one after another.
            A run that a gradient tape watches has lanes for all examples, unless calls are forked outside of a
            `tf.function`.
        fork: Whether independent calls run at the same time, on lanes of their own. "auto" does so where the callee
            recurses or loops and reaches an expensive block. Results are the same but for rounding; faults and steps
            are those of calls in sequence. In a caller's graph calls are made in sequence, unless a gradient tape
            watches there.
        tape: The record of a run that a gradient tape watches. "keep" keeps what every row of the backward pass needs.
            "replay" keeps the state at the start of each segment only, and runs the segment again: less memory, for
            one more forward run. Gradients are the same to the bit.
        max_tape: The most rows of each block in the record of a run that is differentiated inside a caller's
            `jit_compile=True`. Memory for so many is always taken, and the run is made twice. If a run has more, all
            its gradients are NaN. None refuses such gradients (PCB607). Elsewhere records grow with the run.
        progress: Whether to show a bar with finished lanes, trips and utilisation. The run then goes in slices of about
            a quarter of a second, so that Ctrl-C can end it with nothing lost: the `Run` can be saved.
        notice: Whether a line on standard error says that a first call is compiling, once that takes two seconds. The
            line is removed again. "auto" shows it at a terminal and in a notebook, for calls from the main thread.
        resume: The path of a saved run, with which a call goes on. It takes no arguments but static ones.
        trace: The number of trips to record in `Run.trace`: which blocks ran, for how many lanes. 0 records nothing and
            costs nothing.
        name: A name for messages.
        backend: The library that computes: "tensorflow" or "reference". The reference runs lane by lane, with Python
            lists for stacks: slow, for debugging.
        strategy: The paper's strategy: "pc", program-counter autobatching. For comparison there are "local", local
            static autobatching (Radul et al., 2020, Algorithm 1: the host recurses, and lanes share a block only within
            a call that they made together; blocks run by TensorFlow's kernels), and "hybrid", the same with blocks
            compiled by XLA. "depth" and "agenda" batch on the fly, as Fold (Looks et al., 2017) and DyNet (Neubig et
            al., 2017) do: every lane builds a graph of its blocks, which are run together where they are alike.

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


@without_internals
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
