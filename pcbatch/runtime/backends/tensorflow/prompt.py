"""Programs called so that Ctrl-C comes through within a second; see `pcbatch.interrupts`.

A loop that may go on for long reads a number before each turn, in an array that the program captures. XLA hands on the
memory of an argument that a loop only reads, so what is written there is read in the next turn. The main thread's calls
read `_Main`'s, which is the one that was captured; all others are handed an array of their own in its place, so that
nobody stops them. What is stopped is of no use, but for a leg of a run in slices, which has come as far as it has.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.interrupts import Interrupts, Watcher, is_main, waited
from pcbatch.runtime.backends.tensorflow import graphs, private

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
        """Whether they are."""
        return self._first.value != 0

    def set(self) -> None:
        """They are."""
        ctypes.memset(self._place, 1, 4 * LENGTH)

    def reset(self) -> None:
        """They are not."""
        ctypes.memset(self._place, 0, 4 * LENGTH)


@functools.cache
def _main() -> Mark:
    """That of the main thread's calls, which programs capture."""
    return Mark()


@functools.cache
def _never() -> Mark:
    """That of calls that nobody stops."""
    return Mark()


@functools.cache
def _watcher() -> Watcher:
    return Watcher(_main().set)


if hasattr(os, "register_at_fork"):  # threads do not live on in a child
    os.register_at_fork(after_in_child=_watcher.cache_clear)


class _Acting(threading.local):
    mark: Mark | None = None


_acting = _Acting()
"""The mark of what a thread does for another one."""


def reader() -> Callable[[tf.Tensor], tf.Tensor] | None:
    """In the present graph, from the number of a turn to whether those who read the mark are to stop: a scalar bool.

    None where nobody could tell them: outside of graphs, and on a GPU, whose programs read copies.
    """
    graph = tf.compat.v1.get_default_graph()
    if tf.executing_eagerly() or graphs.on_gpu() or not hasattr(graph, "capture"):
        return None
    array = private.capture(graph, _main().array)
    return functools.partial(read, array)


def read(array: tf.Tensor, turn: tf.Tensor) -> tf.Tensor:
    """Whether a mark is set: another element in each turn, or a compiler would read it once for a whole loop."""
    return tf.not_equal(tf.gather(array, tf.bitwise.bitwise_and(turn, LENGTH - 1)), 0)


def is_mark(array: Any) -> bool:
    """Whether a captured array is that that `reader` reads."""
    return array is _main().array


def mark() -> tf.Tensor:
    """The array that `reader` reads."""
    return _main().array


def unstopped(captured: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """What a program is to be given in the place of what it captures, so that nobody stops it."""
    return _with(captured, _never())


def _with(captured: Sequence[tf.Tensor], mark: Mark) -> list[tf.Tensor]:
    return [mark.array if is_mark(each) else each for each in captured]


def prompt(call: Call, captured: Sequence[tf.Tensor]) -> Callable[[Sequence[tf.Tensor]], Sequence[tf.Tensor]]:
    """`call`, through which Ctrl-C comes; it compiles when it is called first."""
    may_stop = any(map(is_mark, captured))
    given = [*captured]
    main = threading.main_thread().ident
    is_long = True

    def elsewhere(arrays: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        """In another thread, which cannot be interrupted."""
        if not may_stop:
            return call(arrays, given)
        mark = _acting.mark or _never()
        found = call(arrays, _with(given, mark))
        if mark.is_set:
            raise KeyboardInterrupt
        return found

    def slowly(arrays: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        mark = Mark() if may_stop else _never()
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
        started = perf_counter()
        found = slowly(arrays) if is_long else watched(arrays) if may_stop else call(arrays, given)
        is_long = perf_counter() - started > LONG
        return found

    return run


def off_thread(call: Callable[[], Any]) -> Any:
    """`call()`, which compiles, through which Ctrl-C comes."""
    return waited(graphs.carried(call), lambda: None) if is_main() else call()
