"""Parts of TensorFlow by their whole names, and the error where a needed one is not there."""

from __future__ import annotations

import ctypes
import functools
import importlib
from pathlib import Path
from typing import Any

import tensorflow as tf

from pcbatch.errors import MissingError

FUNC_GRAPH = "tensorflow.python.framework.func_graph.FuncGraph"
CONTEXT = "tensorflow.python.eager.context.context"
EXECUTE = "tensorflow.python.eager.execute"
EXECUTE_NOW = "tensorflow.python._pywrap_tfe.TFE_Py_Execute"
CANCELLING = "tensorflow.python.eager.cancellation.context"
DETERMINISM = "tensorflow.python.framework.config.is_op_determinism_enabled"
CREATE = "tensorflow.python.framework.ops._create_c_op"
FUNCTION = "tensorflow.python.eager.polymorphic_function.atomic_function.from_func_graph"
PFOR = "tensorflow.python.ops.parallel_for.pfor"
IN_XLA = "tensorflow.python.ops.control_flow_util.GraphOrParentsInXlaContext"
RECORD = "tensorflow.python.eager.record"
HANDLE_DATA = "tensorflow.python.ops.handle_data_util.copy_handle_data"
TANGENTS = "tensorflow.python.eager.forwardprop_util.pack_tangents"
FROM_DLPACK = "tensorflow.python._pywrap_tfe.TFE_FromDlpackCapsule"
NO_TAPES = "tensorflow.python._pywrap_tfe.TFE_Py_TapeSetIsEmpty"
STACKS = "tensorflow.python.util.tf_stack"
DEFINITIONS = "tensorflow.python.framework.op_def_registry"
UPDATE_SLICE = "tensorflow.compiler.tf2xla.python.xla.dynamic_update_slice"
SLICE = "tensorflow.compiler.tf2xla.python.xla.dynamic_slice"
HLO = "tensorflow.compiler.xla.service.hlo_pb2.HloModuleProto"
MODULE = "tensorflow.compiler.tf2xla.ops.gen_xla_ops.xla_call_module"
NO_ORDER = "tensorflow.python.eager.polymorphic_function.attributes.DISABLE_ACD"
CONVERSIONS = "tensorflow.python.framework.tensor_conversion_registry"
FFI = "XLA_FFI_GetApi"
"""A function of C that TensorFlow's library exports."""

_HELP = "install a version of TensorFlow that this pcbatch was made for: pip install 'tensorflow>=2.20,<2.22'"


@functools.cache
def find(path: str) -> Any:
    """A module of TensorFlow's, or something in one, by its whole name; None where this version has none."""
    try:
        return importlib.import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        return getattr(find(module), name, None) if module else None


@functools.cache
def exported(name: str) -> Any:
    """A function of C that TensorFlow's library exports; None where it exports none of this name."""
    for path in sorted(Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework*")):
        try:
            return getattr(ctypes.CDLL(str(path)), name)
        except (OSError, AttributeError):
            continue
    return None


def needed(path: str) -> Any:
    """The same; MissingError PCB580 where this version has none."""
    found = find(path)
    if found is None:
        raise missing(path)
    return found


def missing(path: str) -> MissingError:
    """Return the error that names a missing internal, with the versions that have it."""
    return MissingError("PCB580", f"{gone(path)}\n  help: {_HELP}")


def gone(path: str) -> str:
    """Return a sentence that names a missing internal."""
    return f"pcbatch needs {path}, which TensorFlow {tf.__version__} does not have"
