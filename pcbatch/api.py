"""The decorator `autobatch`; what it returns is in `function/batched.py`, the stages in `function/pipeline.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from pcbatch.function.batched import Batched
from pcbatch.function.boundary import without_internals
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
        fn: a plain Python function of one example; docs/language.md says what it may contain.
        **options: as follows.
        in_axes: 0 (the default) if every argument has a leading lane axis, None for arguments that all lanes share;
            one for all, a tuple by position or a dict by name. A Python number beside a batch is shared in any case.
        schedule: which waiting block runs next: "auto" (the best we have, now "adaptive": cheap blocks are swept, lanes
            gather at expensive ones), "earliest" (the paper's), "busiest" (most lanes), "sweep" (all in order).
        form: "lockstep": a block runs for all lanes that wait at it, at once. "native": a lane runs after another, in
            one native function, which is many times as fast where a row costs little; on a CPU, for programs without
            products of matrices, sorts and scatters. "auto": native where that is possible and rows are cheap; mixed
            where some are: expensive blocks in lockstep, a lane's code from one to the next native; and what is one
            block, without loops, calls and branches, runs straight, without the machine's loop. Runs in slices are in
            lockstep, and so are native and mixed programs in a caller's `tf.function`.
        backend: "tensorflow", or "reference" (lane by lane with Python lists for stacks: slow, for debugging).
        jit: compile with XLA (True, the default), or run TensorFlow's own kernels (False), for debugging and for
            programs of one block of convolutions, which XLA runs slowly on a CPU. "auto" chooses for programs of one
            block, by the operations in them, and takes XLA for all others; `stats().forms` says which and why.
        max_depth: the most live calls of a lane, tail calls apart (default 8192); a lane beyond fails with MAX_DEPTH.
            It is a limit against recursion without end, not a size: stacks grow as lanes need them. In a function
            compiled with `jit_compile=True` they cannot, so there it must be given, and is their size.
        max_steps: the most loop turns plus calls of a lane (default: no limit); a lane beyond fails with MAX_STEPS.
        max_lanes: the most lanes that there are at a time (default: one for each example). However many examples there
            are, lanes that become free take the next ones; the machine's stacks and variables take the memory of so
            many lanes, and one program serves all numbers of examples up to it, and one each power of two beyond.
            Where lanes run one after another (form "native", backend "reference") it changes nothing. A run that a
            gradient tape watches keeps what all examples need for the way back: all have lanes at once then, unless
            calls are forked outside of a `tf.function`.
        fork: False (the default), or True: calls that follow each other, none of which needs what another gives, are
            run at the same time, by lanes of their own; or "auto": where the callee recurses or loops and comes to an
            expensive block. Results are the same but for rounding, faults and steps are those of calls in sequence.
            A caller's graph makes all calls in sequence, unless a gradient tape watches there.
        deterministic: a lane gives the same bits in every batch, alone or beside any others: every block that rounds
            runs in chunks of one size (default: in chunks, or for all lanes at once, as is faster). Cheap blocks in
            lockstep take 2 to 3 times as long; expensive ones and the native form are as fast.
        tape: what a run that a gradient tape watches keeps for the way back: "keep" (the default), what every row of
            it needs; or "replay", only where each segment of the run begins, which is run again when its turn comes:
            memory for one segment, for one forward run more. Gradients are the same to the bit.
        max_tape: how many rows of each block there is room for in the record of a run whose gradient is asked for in a
            caller's function with `jit_compile=True`: of the lines of a loop, how many turns all lanes make together.
            Memory for so many is always taken, and the run is made twice. Where a run has more, all its gradients are
            NaN. The default, None, refuses it there (PCB607). Anywhere else records are as long as runs are.
        trace: of how many trips of the machine's loop, from the first, to record which blocks ran for how many lanes;
            `Run.trace` then has them. The default, 0, records nothing and costs nothing.
        name: a name for messages.
        progress: show a bar with the lanes that have ended, trips and utilisation. The run goes in slices of about a
            quarter of a second, so that Ctrl-C can end it early with nothing lost: the `Run` can be saved.
        notice: whether a line on standard error says that a first call is compiling, once that takes two seconds. The
            line goes away again; where XLA compiles in the first run, when that has ended. "auto" (the default) shows
            it at a terminal and in a notebook, for calls from the main thread.
        resume: the path of a saved run, which a call then goes on with; it takes no arguments but static ones.
        static_argnames: parameters whose arguments are Python values when the program is compiled: hashable, and part
            of the cache key. Sizes, names and functions can be such; a branch on one has only one arm.
        output: "tensors" (the default), or "numpy": results are NumPy's arrays, which is faster for small batches of
            native code. Refused inside a `tf.function` and for results that a gradient tape watches (PCB538).
        strategy: "pc", program-counter autobatching. For comparison there are "local", local static autobatching (Radul
            et al., 2020, Algorithm 1: the host recurses, lanes share a block only within a call that they made
            together; blocks run by TensorFlow's kernels), and "hybrid", the same with blocks compiled by XLA.

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
