"""Faults of checked operations while a piece is traced: which check fails first, and when it counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private


class Recorder:
    """The checks of one example, in the order in which Python evaluates them.

    `sites` are the fault sites that were checked.
    """

    def __init__(self) -> None:
        self.sites: set[int] = set()
        self.failures: list[tf.Tensor] = []
        """Scalar bools: whether each check in turn fails, if evaluation gets there."""
        self._checked: list[int] = []
        self._path: list[tf.Tensor] = []
        self._place = _place()

    def fault(self, bad: Any, site: int) -> None:
        """Note that the lane fails at `site` where the scalar `bad` holds, if evaluation gets here at all.

        A negative site is that of a check that holds whenever it is made.

        Raises TypeError inside a function that TensorFlow runs by itself, such as the body of a `tf.while_loop`.
        """
        if site < 0:
            return
        if not self.can_fault():
            raise TypeError(
                "a //, % or a[i] that can fail cannot be checked inside a function that TensorFlow calls (tf.cond, "
                "tf.while_loop, tf.map_fn, tf.vectorized_map, tf.function); write Python's if, while or for instead"
            )
        self.sites.add(site)
        bad = tf.convert_to_tensor(bad)
        for condition in self._path:
            bad = bad & condition
        self.failures.append(bad)
        self._checked.append(site)

    def can_fault(self) -> bool:
        """Return whether `fault` works here."""
        graph, scope = _place()
        return graph is self._place[0] and not private.in_vectorized_map(scope[len(self._place[1]) :])

    @contextlib.contextmanager
    def when(self, condition: tf.Tensor) -> Iterator[None]:
        """Faults noted inside count only where the scalar `condition` holds."""
        self._path.append(condition)
        try:
            yield
        finally:
            self._path.pop()

    def site(self) -> tf.Tensor:
        """int32 scalar: the first failed fault site plus one, or 0."""
        found = tf.constant(0)
        for bad, site in zip(reversed(self.failures), reversed(self._checked), strict=True):
            found = tf.where(bad, site + 1, found)
        return found


_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
_conversions: list[tuple[tuple[type, ...], Callable[..., Any]]] = []
"""The arguments of all calls of `convert_first`."""


def _place() -> tuple[Any, str]:
    """Return the destination of new operations: the graph (None if they run at once) and the name scope.

    TensorFlow traces `tf.vectorized_map` in the graph that it finds, but under a scope called "loop_body".
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    return graph, tf.get_current_name_scope()


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Collect the faults of the checked operations that are traced inside."""
    recorder = Recorder()
    with contextlib.ExitStack() as stack:
        for types, conversion in _conversions if _current.get() is None else ():
            stack.enter_context(private.asked_first(types, conversion))
        token = _current.set(recorder)
        try:
            yield recorder
        finally:
            _current.reset(token)


def convert_first(types: tuple[type, ...], conversion: Callable[..., Any]) -> None:
    """Ask `conversion` before TensorFlow makes tensors of values of `types`, while a piece is traced or run."""
    _conversions.append((types, conversion))


def is_recording() -> bool:
    """Return whether a piece is being traced, or run at once."""
    return _current.get() is not None


def can_fault() -> bool:
    """Return whether a piece is traced, and `fault` works here."""
    recorder = _current.get()
    return recorder is not None and recorder.can_fault()


def fault(bad: Any, site: int) -> None:
    """`Recorder.fault` of the piece that is being traced; RuntimeError outside of one."""
    recorder = _current.get()
    if recorder is None:
        raise RuntimeError("a checked operation outside of recording()")
    recorder.fault(bad, site)


def when(condition: tf.Tensor) -> contextlib.AbstractContextManager[None]:
    """`Recorder.when` of the piece that is being traced, if there is one."""
    recorder = _current.get()
    return contextlib.nullcontext() if recorder is None else recorder.when(condition)
