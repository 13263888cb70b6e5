"""Programs called so that Ctrl-C comes through within a second; see `pcbatch.threads`.

A loop that may go on for long reads a number before each turn, in an array that the program captures. XLA hands on the
memory of an argument that a loop only reads, so what is written there is read in the next turn. The main thread's calls
read `_main`'s, which is the one that was captured; all others are handed an array of their own in its place, so that
nobody stops them but who has begun them (`stoppable`). What is stopped is of no use, but for a leg of a run in slices,
which has come as far as it has.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private
from pcbatch.threads import Interrupts, Watcher, is_main, waited

P = ParamSpec("P")
T = TypeVar("T")
Call = Callable[..., Sequence[tf.Tensor]]
"""A program on arguments, and perhaps on others than those that it has captured."""

LENGTH = 256
"""A power of two; TensorFlow makes constants of arrays of up to 128 elements that are captured."""
LONG = 0.05
"""Seconds from which on a call is a long one, which the next one may be, too."""


class Mark:
    """An array in memory, of ones where those who read it are to stop, else of zeros."""

    def __init__(self) -> None:
        with tf.init_scope(), tf.device("/CPU:0"):
            self.array = tf.zeros([LENGTH], tf.int32)
        self._place = np.asarray(memoryview(self.array)).__array_interface__["data"][0]
        self._first = ctypes.c_int32.from_address(self._place)

    @property
    def is_set(self) -> bool:
        """True if readers are told to stop."""
        return self._first.value != 0

    def set(self) -> None:
        """Tell readers to stop."""
        ctypes.memset(self._place, 1, 4 * LENGTH)

    def reset(self) -> None:
        """Let readers go on."""
        ctypes.memset(self._place, 0, 4 * LENGTH)


@functools.cache
def _main() -> Mark:
    """The mark of the main thread's calls, which programs capture."""
    return Mark()


@functools.cache
def _never() -> Mark:
    """The mark of calls that nobody stops."""
    return Mark()


@functools.cache
def _watcher() -> Watcher:
    return Watcher(_main().set)


if hasattr(os, "register_at_fork"):  # threads do not live on in a child
    os.register_at_fork(after_in_child=_watcher.cache_clear)


class _Acting(threading.local):
    mark: Mark | None = None
    """Stops this thread's work for another one; see `stoppable`."""
    helpers: Mark | None = None
    """Stops others' work for this thread; used again, since to make one takes 60 us."""


_acting = _Acting()


def reader() -> Callable[[tf.Tensor], tf.Tensor] | None:
    """Return a function, in the present graph, from a turn's number to a scalar bool: whether Ctrl-C asks to stop.

    None where nobody could tell them: outside of graphs, and on a GPU, whose programs read copies.
    """
    graph = tf.compat.v1.get_default_graph()
    if tf.executing_eagerly() or graphs.on_gpu() or not hasattr(graph, "capture"):
        return None
    array = private.capture(graph, _main().array)
    return functools.partial(read, array)


def read(array: tf.Tensor, turn: tf.Tensor) -> tf.Tensor:
    """True if a mark is set. Each turn reads another element, or a compiler would read it once for a whole loop."""
    return tf.not_equal(tf.gather(array, tf.bitwise.bitwise_and(turn, LENGTH - 1)), 0)


def is_mark(array: Any) -> bool:
    """Return whether a captured array is the one that `reader` reads."""
    return array is _main().array


def mark() -> tf.Tensor:
    """The array that `reader` reads."""
    return _main().array


def unstopped(captured: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The arrays that a program captures, with a mark in place of the main thread's that nobody sets."""
    return _with(captured, _never())


def _with(captured: Sequence[tf.Tensor], mark: Mark) -> list[tf.Tensor]:
    return [mark.array if is_mark(each) else each for each in captured]


def prompt(
    call: Call, captured: Sequence[tf.Tensor], size_of: Callable[[Sequence[tf.Tensor]], Hashable] = lambda arrays: ()
) -> Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]]:
    """`call`, through which Ctrl-C comes. It compiles in the first call on arrays of a size, of None in any call."""
    may_stop = any(map(is_mark, captured))
    given = [*captured]
    main = threading.main_thread().ident
    compiled: set[Hashable] = set()
    is_long = False
    own: Mark | None = None

    def elsewhere(arrays: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        """Call it in another thread, which can be stopped only by who has begun it."""
        if not may_stop:
            return call(arrays, given)
        mark = _acting.mark or _never()
        found = call(arrays, _with(given, mark))
        if mark.is_set:
            raise KeyboardInterrupt
        return found

    def slowly(arrays: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        nonlocal own
        if may_stop and (own is None or own.is_set):  # one that is set stops what nobody waits for any more
            own = Mark()
        mark = own or _never()
        with_mark = _with(given, mark)
        return waited(graphs.carried(lambda: call(arrays, with_mark)), mark.set if may_stop else lambda: None)

    def watched(arrays: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        mark = _main()
        if mark.is_set:
            mark.reset()
        while True:
            found = _watcher().call(call, arrays, given)
            if not mark.is_set or Interrupts.are_pending():
                return found
            mark.reset()  # by a signal of which Python has raised nothing, or had before

    def run(arrays: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        nonlocal is_long
        if threading.get_ident() != main:
            return elsewhere(arrays)
        started, size = perf_counter(), size_of(arrays)
        waits = is_long or size not in compiled
        found = slowly(arrays) if waits else watched(arrays) if may_stop else call(arrays, given)
        is_long = perf_counter() - started > LONG
        if size is not None:
            compiled.add(size)
        return found

    return run


def stoppable(function: Callable[P, T]) -> tuple[Callable[P, T], Callable[[], None]]:
    """`function`, for another thread, and a function that ends its runs there early, by KeyboardInterrupt."""
    if _acting.helpers is None or _acting.helpers.is_set:  # one that is set stops what may still be going on
        _acting.helpers = Mark()
    mark, carried = _acting.helpers, graphs.carried(function)

    def there(*args: P.args, **kwargs: P.kwargs) -> T:
        before, _acting.mark = _acting.mark, mark
        try:
            return carried(*args, **kwargs)
        finally:
            _acting.mark = before

    return there, mark.set


def off_thread(call: Callable[[], Any]) -> Any:
    """`call()`, which compiles, through which Ctrl-C comes."""
    return waited(graphs.carried(call), lambda: None) if is_main() else call()
