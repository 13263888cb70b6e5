"""The state's arrays as XLA's CPU compiler handles them best: counts and lists of lanes, order of writes, zeros."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import branches, graphs, private, raw_ops, stores, xla_cpu
from pcbatch.runtime.backends.tensorflow.handlers import type_of
from pcbatch.runtime.costs.device import CPU

# -- small calls -------------------------------------------------------------------------------------------------------
# Small loops that XLA's CPU compiler makes one function of LLVM's, in which they are jumps and a scalar is a register.
#
# XLA does so with what is called under the attribute `xla_cpu_small_call`. `XlaCallModule` lets a program ask for it: a
# module of a few lines calls a TensorFlow function under this attribute. `lane_lists` has the figures.

_numbers = itertools.count()

_MODULE = """module @pcbatch {{
  func.func public @main({parameters}) -> ({results}) {{
    {names} = func.call @native({arguments}) {{mhlo.frontend_attributes = {natively}}} : {signature}
    return {given} : {results}
  }}
  func.func private @native({parameters}) -> ({results}) {{
    {names} = stablehlo.custom_call @tf.call_tf_function({arguments}) {{tf.backend_config = {function}}} : {signature}
    return {given} : {results}
  }}
}}"""
_NATIVELY = '{xla_cpu_small_call = "true", inlineable = "false"}'
_FUNCTION = "{called_index = 0 : i64, has_token_input_output = false}"


def call(function: Callable[..., Sequence[tf.Tensor]], arrays: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """`function(*arrays)` as one function of LLVM's, where `are_made`. Its results depend on all arrays.

    XLA aborts the whole process if such a function has an argument that its results do not depend on.
    """
    graph = private.new_graph(f"pcbatch_native_{next(_numbers)}")
    with graph.as_default():
        given = [raw_ops.placeholder(array.dtype, tuple(array.shape)) for array in arrays]
        results = [private.capture(graph, result) for result in function(*given)]
        captured = private.captures(graph)
        graph.inputs = [*given, *(inner for _, inner in captured)]
        graph.outputs = results
    inputs, outputs = [*arrays, *(outer for outer, _ in captured)], graph.outputs
    return private.call_module(_module(inputs, outputs), inputs, outputs, private.function_of(graph))


def are_made() -> bool:
    """Return whether XLA compiles for a CPU and makes native functions when asked to."""
    return xla_cpu.is_on() and _has_parts() and _heeded()


def _has_parts() -> bool:
    """Return whether TensorFlow has all that this takes."""
    slices = private.dynamic_slice() is not None and private.update_slice() is not None
    return slices and private.makes_functions() and private.has_modules()


@functools.cache
def _heeded() -> bool:
    """Return whether XLA makes one function of a loop when asked to: its attribute may lose its meaning.

    A loop of one turn is compiled, in 0.1 s. What is a call to this attribute is one in the optimised program.
    """

    def twice(number: tf.Tensor) -> list[tf.Tensor]:
        with raw_ops.reusing():
            body = functools.partial(branches.loop, lambda x: x[0] < 10, lambda x: [x[0] + x[0]])
            return call(lambda x: body([x]), [number])

    with tf.init_scope():  # a graph may be under construction
        traced = tf.function(twice, jit_compile=True, autograph=False)
        text = traced.experimental_get_compiler_ir(tf.TensorSpec([], tf.int32))(stage="optimized_hlo")
    calls = [line for line in text.splitlines() if " call(" in line and 'xla_cpu_small_call="true"' in line]
    return bool(calls)


def _module(inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]) -> str:
    """The text of a module that calls the function number 0 natively."""
    types, results = [type_of(tensor) for tensor in inputs], ", ".join(map(type_of, outputs))
    names = [f"%r#{i}" for i, _ in enumerate(outputs)] if len(outputs) > 1 else ["%r"]
    return _MODULE.format(
        parameters=", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types)),
        arguments=", ".join(f"%a{i}" for i, _ in enumerate(types)),
        signature=f"({', '.join(types)}) -> ({results})",
        results=results,
        natively=_NATIVELY,
        function=_FUNCTION,
        names=f"%r:{len(outputs)}" if len(outputs) > 1 else "%r",
        given=", ".join(names),
    )


# -- lane arrays -------------------------------------------------------------------------------------------------------

# Counts of the lanes that wait at each label, such that XLA's CPU compiler makes the fewest kernels of them.
#
# A plain sum over lanes becomes three kernels, each some 15 ms to compile, for XLA sums in two stages; a product with a
# vector of ones becomes one, which is no slower. A sum by segments is five, but goes over many lanes once for all
# labels.

COUNTS = 8
"""Number of partial counts of each label, for the lanes in turn: to add to one, the CPU waits for the last addition."""


def tally(numbers: tf.Tensor, labels: Sequence[int]) -> tf.Tensor:
    """See `arrays.Arrays.tally`."""
    lanes, count = numbers.shape[0], len(labels)
    if labels == range(count) and (lanes is None or lanes * count > CPU.tallied or not xla_cpu.applies()):
        found = tf.where((numbers >= 0) & (numbers < count), numbers, count)
        if lanes is None or not xla_cpu.applies():
            return tf.math.unsorted_segment_sum(tf.ones_like(numbers), found, count + 1)[:count]
        rows = raw_ops.once(("row of a count", lanes, count), lambda: tf.range(lanes) % COUNTS * (count + 1))
        counts = tf.math.unsorted_segment_sum(tf.ones_like(numbers), found + rows, COUNTS * (count + 1))
        return tf.reduce_sum(tf.reshape(counts, [COUNTS, count + 1]), axis=0)[:count]
    hits = raw_ops.cast(raw_ops.equal(raw_ops.constant(tuple((label,) for label in labels)), numbers), tf.int32)
    if not xla_cpu.applies():
        return tf.reduce_sum(hits, axis=1)
    if lanes is None:
        return tf.linalg.matvec(hits, tf.ones_like(numbers))
    ones = raw_ops.once(("column of ones", lanes), lambda: tf.ones([lanes, 1], tf.int32))
    return raw_ops.reshape(raw_ops.product(hits, ones), (count,))


def ranks(numbers: tf.Tensor) -> tf.Tensor:
    """See `arrays.Arrays.ranks`."""
    count = numbers.shape[0]
    before = raw_ops.once(("before", count), lambda: tf.constant(np.tri(count, k=-1, dtype=np.int32)))
    same = tf.cast(numbers[:, tf.newaxis] == numbers, tf.int32) * before
    if not xla_cpu.applies():
        return tf.reduce_sum(same, axis=1)
    ones = raw_ops.once(("column of ones", count), lambda: tf.ones([count, 1], tf.int32))
    return raw_ops.reshape(raw_ops.product(same, ones), (count,))


# The list of lanes that take part, as XLA's CPU compiler makes one kernel of it.
#
# By sums and a scatter it is some fifteen small kernels, 3 us for 64 lanes and 46 for 4096, in each run of a block that
# gathers its lanes. One function (`call`) that goes through the lanes takes 0.1 and 5 us.


def listed(mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """See `arrays.Arrays.listed`."""
    lanes = mask.shape[0]
    if not lanes or not xla_cpu.applies() or not are_made():
        return stores.compacted(mask, tf.shape(mask)[0] if lanes is None else lanes), count(mask)
    (found,) = call(lambda given: [_in_turn(given)], [mask])
    return found[:lanes], found[lanes]


def count(mask: tf.Tensor) -> tf.Tensor:
    """Count the lanes at which `mask` holds."""
    return tf.reduce_sum(tf.cast(mask, tf.int32))


def _in_turn(mask: tf.Tensor) -> tf.Tensor:
    """int32 `[lanes + 1]`: the lanes of `mask`, and last how many these are."""
    lanes = mask.shape[0]

    def turn(carried: list[tf.Tensor]) -> list[tf.Tensor]:
        lane, so_far, found = carried
        found = branches.with_element(found, [so_far], lane)  # if it takes no part, the next one is written over it
        here = raw_ops.cast(branches.element(mask, [lane]), tf.int32)
        return [raw_ops.add(lane, raw_ops.constant(1)), raw_ops.add(so_far, here), found]

    nothing, room = raw_ops.constant(0), tf.zeros([lanes + 1], tf.int32)
    _, so_far, found = branches.loop(
        lambda carried: raw_ops.less(carried[0], raw_ops.constant(lanes)), turn, [nothing, nothing, room]
    )
    return branches.with_element(found, [raw_ops.constant(lanes)], so_far)


# The order imposed on XLA's CPU compiler: short work in one thread, and reads before writes.
#
# Of kernels that could run at once it hands half to another thread as soon as there are more than eight. The last
# kernels of a block, which write a variable each, all become ready together. Where they are short the other thread
# costs more than it helps: the arrays move from core to core, and a thread that looks for work slows down its neighbour
# (sampler, 64 lanes of 100 numbers: 1.4 s of CPU time instead of 0.9, 5% of the wall time). So of such writes every few
# wait for one before, by a condition that always holds, which XLA cannot know.


def in_succession(
    where: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
    masks: Sequence[tf.Tensor],
    new: Sequence[tf.Tensor],
    old: Sequence[tf.Tensor],
) -> list[tf.Tensor]:
    """`where(mask, new, old)` for each, one after the other where that is faster."""
    if not xla_cpu.applies() or len(old) <= CPU.written_at_once or not all(map(_is_short, old)):
        return [where(*each) for each in zip(masks, new, old, strict=True)]
    found: list[tf.Tensor] = []
    each = [*zip(masks, new, old, strict=True)]
    for first in range(0, len(each), CPU.written_at_once):
        some = each[first : first + CPU.written_at_once]
        if found:
            is_there = _always(found[-1])
            some = [(raw_ops.both(mask, is_there), value, before) for mask, value, before in some]
        found += [where(*one) for one in some]
    return found


def once_there(mask: tf.Tensor, arrays: Sequence[tf.Tensor]) -> tf.Tensor:
    """`mask`, bool `[rows]`, once all of `arrays`, `[rows, ..]`, are there.

    XLA writes rows of an array in place, if all that reads what was there before comes first for a reason: else it
    copies the whole array, twice for each run of a block (64 tokens of 256 numbers for each of 256 lanes: 0.9 ms).
    """
    if not xla_cpu.applies():
        return mask
    for array in arrays:
        if 0 not in array.shape:
            mask = raw_ops.both(mask, _always(array))
    return mask


def _is_short(array: tf.Tensor) -> bool:
    return 0 < graphs.bytes_of(array) <= CPU.short_write


def _always(array: tf.Tensor) -> tf.Tensor:
    """True for every lane, once `array` (`[lanes, ..]`) is there: no integer's minimum with 0 is above 0."""
    matrix = (-1, math.prod(array.shape[1:]))
    first = array if array.shape.rank == 1 else raw_ops.first_column(raw_ops.reshape(array, matrix))
    if first.dtype.is_floating:
        first = raw_ops.bitcast(first, {2: tf.int16, 4: tf.int32, 8: tf.int64}[first.dtype.size])
    nothing = raw_ops.constant(0)
    return raw_ops.at_most(raw_ops.minimum(raw_ops.cast(first, tf.int32), nothing), nothing)


# Scalars as one vector: XLA's CPU compiler fuses no concatenation of many arrays, each becomes a kernel of its own.
#
# A chain of selections, one for each scalar, is fused with what makes them and what reads the vector.

FUSED = 8
"""Number of arrays whose concatenation XLA's CPU compiler still fuses: a constant of its source."""


def stack(scalars: Sequence[tf.Tensor], axis: int = 0) -> tf.Tensor:
    """`scalars` as a vector; arrays along a new axis."""
    if len(scalars) <= FUSED or scalars[0].shape.rank or not xla_cpu.applies():
        return tf.stack(scalars, axis)
    places, (result, *others) = raw_ops.numbers(len(scalars)), scalars
    for place, scalar in enumerate(others, 1):
        result = raw_ops.select(raw_ops.less(places, raw_ops.constant(place)), result, scalar)
    return result


def with_rows(array: tf.Tensor, start: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """`array` with `array[start:start + n] = rows`."""
    if 0 in rows.shape[1:]:  # TensorFlow refuses to write nothing
        return array
    update = private.update_slice()
    if update is not None and xla_cpu.applies():
        return update(array, rows, tf.stack([start, *(0 for _ in rows.shape[1:])]))
    places = start + tf.range(tf.shape(rows)[0])
    return tf.tensor_scatter_nd_update(array, places[:, None], rows)


# Zeros that a program is to write on, each array made by itself.
#
# Of equal arrays XLA makes one, and copies it for each loop that writes on it: that reads and writes as many bytes as
# are made. So each array of some size is filled with a zero of its own, which hangs on a number that nobody knows
# before the program runs. (A taped run of 64 small TreeLSTMs begins with 16 such arrays, of up to a megabyte each: it
# takes 0.93 of the CPU time so, a training step 0.94.)


def made_apart(zeros: Sequence[tf.Tensor], count: tf.Tensor) -> list[tf.Tensor]:
    """Arrays that are all `zeros`, the larger ones not known to be equal; `count` is an int32 scalar, at least 0."""
    if not xla_cpu.applies():
        return [*zeros]
    found = []
    for number, array in enumerate(zeros):
        if graphs.bytes_of(array) < CPU.copied:
            found.append(array)
            continue
        never = raw_ops.less(count, raw_ops.constant(-1 - number))
        found.append(tf.fill(tf.shape(array), tf.cast(never, array.dtype)))
    return found
