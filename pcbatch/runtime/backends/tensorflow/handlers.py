"""Machine code of this process as an operation in a caller's graph: XLA calls a handler, its foreign function.

`XlaCallModule` takes a module of StableHLO, in which one custom call names the handler. Outside of XLA it lies in a
function with `jit_compile=True`, which XLA compiles for each number of lanes. On a GPU the call has a kernel's text in
its place: XLA launches that as one of its own.

Another process has no such handler: one that loads a SavedModel, a worker of `tf.data`'s service or of `tf.distribute`.
So `here` asks, whenever the graph runs, for a variable that only this process has; XLA has no such question.
"""

from __future__ import annotations

import ctypes
import functools
import os
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends import interop
from pcbatch.runtime.backends.protocol import Launch, Spec
from pcbatch.runtime.backends.tensorflow import graphs, private, xla_cpu

_MODULE = """module @pcbatch attributes {{jax.uses_shape_polymorphism = true}} {{
  func.func public @main({parameters}) -> ({results}) {{{lengths}
    {names} = stablehlo.custom_call @"{target}"({arguments}) {{{attributes}}} : ({types}) -> ({results})
    return {given} : {results}
  }}
}}"""


def call(
    made: str | Launch, arrays: Sequence[tf.Tensor], specs: Sequence[Spec], changed: Sequence[int] = ()
) -> list[tf.Tensor]:
    """The arrays that the handler of this name writes, or a kernel: arrays of these dtypes and shapes. See `Control`.

    To be traced for XLA, which copies arrays that may be `changed` before if it needs them afterwards.
    """
    results = [tf.TensorSpec(shape, dtype) for dtype, shape in specs]
    platform = "CPU" if isinstance(made, str) else "CUDA"
    return private.call_module(_module(made, arrays, results, changed), arrays, results, platform=platform)


def _module(
    made: str | Launch, arrays: Sequence[tf.Tensor], results: Sequence[tf.TensorSpec], changed: Sequence[int]
) -> str:
    """The text of a module that calls a handler or a kernel.

    Before XLA compiles it makes all lengths known. The shape of each result is an operand more for that, which the
    handler does not see.
    """
    types, given = [type_of(each) for each in arrays], [type_of(each) for each in results]
    arguments = [f"%a{place}" for place in range(len(arrays))]
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in zip(arguments, types, strict=True))
    layouts, lengths = [layout_of(each) for each in arrays], ""
    attributes = ["api_version = 4 : i32"] if isinstance(made, str) else _launching(made)
    if any(None in tuple(each.shape) for each in results):
        shapes, lines = _shapes(types[0], results)
        lengths = "".join(f"\n    {line}" for line in lines)
        places = range(len(arguments), len(arguments) + len(shapes))
        attributes.append(f"indices_of_shape_operands = dense<{[*places]}> : tensor<{len(shapes)}xi64>")
        arguments += shapes
        layouts += [layout_of(tf.TensorSpec([each.shape.rank])) for each in results]
        types += [f"tensor<{each.shape.rank}xi32>" for each in results]
    attributes.append(f"operand_layouts = [{', '.join(layouts)}]")
    attributes.append(f"result_layouts = [{', '.join(map(layout_of, results))}]")
    count = len(results)
    if changed:
        same = ", ".join(_same(number, place, count) for number, place in enumerate(changed))
        attributes.append(f"output_operand_aliases = [{same}]")
    return _MODULE.format(
        parameters=parameters,
        results=", ".join(given),
        lengths=lengths,
        names=f"%r:{count}" if count > 1 else "%r",
        target=made if isinstance(made, str) else KERNEL,
        arguments=", ".join(arguments),
        attributes=", ".join(attributes),
        types=", ".join(types),
        given=", ".join(f"%r#{place}" for place in range(count)) if count > 1 else "%r",
    )


def _same(number: int, operand: int, count: int) -> str:
    """Result and operand of these numbers lie at the same address."""
    of_result = number if count > 1 else ""
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{of_result}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
    )


KERNEL = "__gpu$xla.gpu.ptx"
"""XLA's name for a call of a kernel."""


def _launching(launch: Launch) -> list[str]:
    """The attributes of a call of a kernel: its text is a string in the text of a dictionary, which is a string."""
    sizes = {"grid": launch.blocks, "block": launch.threads}
    shape = ", ".join(f"{name}_{axis} = {size if axis == 'x' else 1}" for name, size in sizes.items() for axis in "xyz")
    said = f"name = {_quoted(launch.name)}, kernel_type = {_quoted('ptx')}, kernel_data = {_quoted(launch.text)}"
    return ["api_version = 2 : i32", f"backend_config = {_quoted(f'{{{said}, {shape}, shared_mem_bytes = 0}}')}"]


def _quoted(text: str) -> str:
    """A string as MLIR writes it."""
    known = {"\\": "\\\\", '"': "\\22", "\n": "\\0A", "\t": "\\09"}
    return '"' + "".join(known.get(each, each) for each in text) + '"'


def _shapes(first: str, results: Sequence[tf.TensorSpec]) -> tuple[list[str], list[str]]:
    """The names of vectors with the shapes of results, and the lines that make them; `first` is the first type."""
    lines = [
        f"%n = stablehlo.get_dimension_size %a0, dim = 0 : ({first}) -> tensor<i32>",
        "%lanes = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>",
    ]
    names = []
    for place, rest in enumerate(tuple(each.shape)[1:] for each in results):
        names.append(f"%shape{place}" if rest else "%lanes")
        if rest:
            count = len(rest)
            types = f"(tensor<1xi32>, tensor<{count}xi32>) -> tensor<{count + 1}xi32>"
            lines.append(f"%rest{place} = stablehlo.constant dense<{[*rest]}> : tensor<{count}xi32>")
            lines.append(f"%shape{place} = stablehlo.concatenate %lanes, %rest{place}, dim = 0 : {types}")
    return names, lines


# -- handlers ----------------------------------------------------------------------------------------------------------


def version() -> tuple[int, int] | None:
    """The version of XLA's interface that a handler has to tell; None where XLA calls none here."""
    return private.handler_version() if xla_cpu.is_on() and _are_called() else None


def kernels_on() -> str | None:
    """The place that runs kernels in programs for a GPU; see `Control`."""
    stand_in = graphs.kernels_stand_in()
    if not graphs.on_gpu() or stand_in is False or os.environ.get("PCBATCH_KERNELS") == "0":
        return None
    if stand_in:
        return "CPU" if _are_called() else None
    return "GPU" if _kernels_are_called() else None


@functools.cache
def _kernels_are_called() -> bool:
    """Return whether XLA launches kernels with the memory of their inputs and outputs; tried once."""
    if not private.has_modules():
        return False
    try:
        with tf.init_scope():
            return kernels_are_called()
    except Exception:  # a version that does not, or a card of another maker
        return False


_TRIED_KERNEL = """.version 7.0
.target sm_70
.address_size 64
.visible .entry tried(.param .u64 a, .param .u64 b, .param .u64 c) {
    .reg .b64 %a<4>;
    .reg .b32 %n<4>;
    ld.param.u64 %a1, [a];
    ld.param.u64 %a2, [b];
    ld.param.u64 %a3, [c];
    ld.u32 %n1, [%a1];
    ld.u32 %n2, [%a2];
    add.s32 %n3, %n1, %n2;
    st.u32 [%a3], %n3;
    ret;
}
"""


def kernels_are_called() -> bool:
    """Return whether XLA launches a kernel, also one that is given an array twice."""
    launch = Launch("tried", _TRIED_KERNEL, 1, 1)
    traced = tf.function(
        lambda x: call(launch, [x, x], [("int32", (1,))])[0],
        jit_compile=True,
        autograph=False,
        input_signature=[tf.TensorSpec([1], tf.int32)],
    )
    with tf.device("/GPU:0"):
        return bool(traced(tf.constant([21])).numpy().tolist() == [42])


def register(name: str, address: int) -> None:
    """Let `call` know the handler at `address` by a name, for good."""
    if not private.register_handler(name, address):
        raise ValueError(f"XLA takes no handler of the name {name}")


@functools.cache
def _are_called() -> bool:
    """Return whether XLA calls handlers with the memory of their inputs and outputs; tried once, in 0.05 s."""
    if private.handler_version() is None or not private.has_modules():
        return False
    try:
        with tf.init_scope():
            return are_called(f"pcbatch.tried.{uuid.uuid4().hex}")
    except Exception:  # a version that does not may raise anything
        return False


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_TRIED: list[Any] = []
"""Handlers that were tried: XLA keeps them for good."""


def are_called(name: str) -> bool:
    """Return whether XLA calls a handler of this name, of Python's, with the memory of its inputs and outputs."""
    told = private.handler_version()
    if told is None:
        return False
    major, minor = told

    def handler(frame: int) -> None:
        """Add 1 to numbers."""
        extension = _word(frame + interop.EXTENSION)
        if extension and _number(extension + interop.KIND).value == interop.ABOUT:
            about = _word(extension + interop.METADATA)
            _number(about + interop.ABOUT_MAJOR).value = major
            _number(about + interop.ABOUT_MINOR).value = minor
        elif _number(frame + interop.STAGE).value == interop.EXECUTE:
            given, found = (_word(_word(frame + each)) for each in (interop.ARGUMENTS, interop.RESULTS))
            count = _word(_word(found + interop.SIZES))
            numbers = (ctypes.c_int32 * count).from_address(_word(given + interop.DATA))
            results = (ctypes.c_int32 * count).from_address(_word(found + interop.DATA))
            results[:] = [number + 1 for number in numbers]

    made = _HANDLER(handler)
    _TRIED.append(made)
    register(name, ctypes.cast(made, ctypes.c_void_p).value or 0)
    traced = tf.function(
        lambda x: call(name, [x], [("int32", (None,))])[0],
        jit_compile=True,
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.int32)],
    )
    return bool(traced(tf.constant([1, 2, 4])).numpy().tolist() == [2, 3, 5])


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _number(address: int) -> ctypes.c_int32:
    return ctypes.c_int32.from_address(address)


# -- this process ------------------------------------------------------------------------------------------------------


NOT_SAVED = (
    "pcbatch: under jit_compile=True native code of this process is part of a function, which cannot be saved; leave "
    "jit_compile=True away, as what is batched is compiled by itself, or set the option form to lockstep"
)
"""Name of a variable that the function needs: TensorFlow shows it where such a function is saved."""


def _handle(name: str) -> tf.Tensor:
    with tf.device("/CPU:0"):
        return tf.raw_ops.VarHandleOp(dtype=tf.bool, shape=[], shared_name=name)


def _made(name: str) -> tf.Tensor:
    """The handle of a variable that only this process has."""
    with tf.init_scope():
        handle = _handle(name)
        tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(True))
    return handle


@functools.cache
def _never_saved() -> tf.Tensor:
    """A variable with which no function that captures it can be saved."""
    return _made(f"{NOT_SAVED} ({uuid.uuid4().hex})")


@functools.cache
def _is_here() -> Any:
    """A traced function: whether it runs in the process that it was traced in."""
    name = f"pcbatch.{uuid.uuid4().hex}"
    _made(name)
    with tf.init_scope():
        asked = tf.function(lambda: tf.raw_ops.VarIsInitializedOp(resource=_handle(name)), autograph=False)
        return asked.get_concrete_function()


def here(function: Callable[[], list[tf.Tensor]], otherwise: Callable[[], list[tf.Tensor]]) -> list[tf.Tensor]:
    """`function()` where the graph runs in the process that it was traced in, else `otherwise()`.

    XLA cannot ask, so a caller's XLA program is `function()`, and cannot be saved.
    """
    if graphs.in_outer_xla():
        private.capture(tf.compat.v1.get_default_graph(), _never_saved())
        return function()
    # It is called as a function without state: all rows of what a caller vectorises go the same way then.
    (is_here,) = tf.raw_ops.PartitionedCall(args=[], Tout=[tf.bool], f=_is_here())
    return list(tf.cond(is_here, function, otherwise))


_ELEMENTS = {
    "bool": "i1",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}


def type_of(tensor: tf.Tensor | tf.TensorSpec) -> str:
    """The type of a tensor as StableHLO writes it."""
    sizes = "".join("?x" if size is None else f"{size}x" for size in tensor.shape)
    return f"tensor<{sizes}{_ELEMENTS[tensor.dtype.name]}>"


def layout_of(array: tf.Tensor | tf.TensorSpec) -> str:
    """The layout of an array that lies row by row."""
    rank = array.shape.rank
    return f"dense<{[*range(rank)][::-1] if rank else ''}> : tensor<{rank}xindex>"
