"""Properties of the graph that is traced now, such as a caller's `tf.function`; raising for failed lanes in it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from string import Formatter
from typing import Any, ParamSpec, TypeVar

import tensorflow as tf

from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import RunOutcome
from pcbatch.runtime.backends.tensorflow import private

P = ParamSpec("P")
T = TypeVar("T")


@contextlib.contextmanager
def keeping_scope() -> Iterator[None]:
    """Leave TensorFlow's variable scope as it was: all graphs share one, and an operation that fails forgets its own.

    `tf.map_fn` of a function that raises would make variables wrong everywhere, in eager code, too.
    """
    scope = tf.compat.v1.get_variable_scope()
    before = scope.caching_device
    try:
        yield
    finally:
        if scope.caching_device is not before:
            scope.set_caching_device(before)


def in_outer_xla() -> bool:
    """Return whether a function with `jit_compile=True` is being traced; False where TensorFlow cannot be asked."""
    return bool(_in_xla())


def may_be_in_xla() -> bool:
    """The same, but True where TensorFlow cannot be asked: for code that is right without XLA, too."""
    return _in_xla() is not False


def _in_xla() -> bool | None:
    return False if tf.executing_eagerly() else private.in_xla(tf.compat.v1.get_default_graph())


_targets: list[tuple[str, bool]] = []
"""The devices that programs are traced for, whatever there is here, and if they may have kernels; the last counts."""


@contextlib.contextmanager
def targeting(place: str, kernels: bool = False) -> Iterator[None]:
    """Programs that are traced inside, in any thread, are for a "CPU" or a "GPU", whatever there is here.

    Those for a GPU have `kernels` only if these may run on a CPU, too.
    """
    _targets.append((place, kernels))
    try:
        yield
    finally:
        _targets.pop()


def on_gpu() -> bool:
    """Return whether this thread now traces and calls for a GPU: there is one, and no `tf.device("/CPU:0")` around.

    Inside `targeting` that says it.
    """
    if _targets:
        return _targets[-1][0] == "GPU"
    return has_gpu() and "/device:CPU:" not in private.device_now()


def kernels_stand_in() -> bool | None:
    """Return whether kernels are to run on a CPU, inside `targeting`; None elsewhere."""
    return _targets[-1][1] if _targets else None


@functools.cache
def has_gpu() -> bool:
    """Return whether TensorFlow has a GPU to run on, not hidden by `tf.config.set_visible_devices`.

    To know that, TensorFlow has to begin; nothing can be hidden after that.
    """
    return bool(tf.config.list_logical_devices("GPU"))


def carried(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, for another thread: on the device that this one is told to use, which TensorFlow keeps by thread."""
    name = private.device_now()
    if not name:
        return function

    def there(*args: P.args, **kwargs: P.kwargs) -> T:
        with tf.device(name):
            return function(*args, **kwargs)

    return there


def source(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor of an outer graph that `tensor` is handed down from, of the outermost one; itself if it is not."""
    outer: tf.Tensor | None = tensor
    while outer is not None and tf.is_symbolic_tensor(outer):
        tensor = outer
        outer = next((outer for outer, inner in private.captures(tensor.graph) if inner is tensor), None)
    return tensor


def bytes_of(array: tf.Tensor) -> float:
    """Return the size of an array in bytes; infinity if its shape is not fully known."""
    elements = array.shape.num_elements()
    return float("inf") if elements is None else elements * array.dtype.size


def assert_ok(program: Program, outcome: RunOutcome, texts: Sequence[Sequence[str]]) -> tuple[Any, ...]:
    """The values of `outcome`, waiting for an assertion that no lane failed; see `control.Control.checked_values`."""
    failed = outcome.status != 0

    def report() -> tf.Operation:
        lane = tf.argmax(failed, output_type=tf.int32)
        count = tf.math.count_nonzero(failed)
        data = [count, f"lanes of {program.name} failed, first lane", lane, ":", _text(program, outcome, texts, lane)]
        with tf.control_dependencies([tf.debugging.Assert(False, data, summarize=100)]):
            return tf.constant(False)

    fine = tf.cond(tf.reduce_any(failed), report, lambda: tf.constant(True))
    with tf.control_dependencies([fine]):
        return tuple(map(tf.identity, outcome.values))


def _text(program: Program, outcome: RunOutcome, texts: Sequence[Sequence[str]], lane: tf.Tensor) -> tf.Tensor:
    """The text of the fault of `lane`, its fields filled in."""
    unfinished = tf.constant("the run was stopped before this lane ended")
    filled = []
    for site, choices in zip(program.faults, texts, strict=True):
        shown = iter(_shown(outcome, name, lane) for name in site.arguments)
        parts: list[Any] = []
        for literal, field, _, _ in Formatter().parse(site.message):
            parts += [literal] if field is None else [literal, next(shown)]
        header = choices[0].partition(site.message)[0]
        excerpts = [text.partition(site.message)[2] for text in choices]
        excerpt = excerpts[0] if len(excerpts) == 1 else tf.gather(excerpts, tf.maximum(outcome.place[lane], 0))
        filled.append(tf.strings.join([header, *parts, excerpt]))
    return tf.gather(tf.stack([unfinished, *filled]), outcome.site[lane] + 1)


def _shown(outcome: RunOutcome, name: str, lane: tf.Tensor) -> tf.Tensor:
    texts = [tf.strings.format("{}", leaf[lane], summarize=-1) for leaf in outcome.fault_values[name]]
    return texts[0] if len(texts) == 1 else tf.strings.join(["(", tf.strings.join(texts, ", "), ")"])
