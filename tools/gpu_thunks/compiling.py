"""Compile programs for an H100 on a machine without one, by the plugin that brings XLA for CUDA to JAX.

    XLA_FLAGS="--xla_dump_to=FOLDER .." python -m tools.gpu_thunks.compiling FILE.hlo.pb ..

XLA dumps what it made into the folder. `h100.txtpb` describes the card, so no driver is asked.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.experimental import topologies
from jaxlib import _jax

CARD = Path(__file__).with_name("h100.txtpb")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of a protocol buffer, and where the next thing begins."""
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return found, at


def module_of(data: bytes) -> bytes:
    """The `HloModuleProto` of an `HloProto`: its first field."""
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        length, at = _number(data, at)
        if key & 7 == 2:
            if key >> 3 == 1:
                return data[at : at + length]
            at += length
    raise ValueError("there is no program in it")


def _without_copies(module: ir.Module) -> ir.Module:
    """`module` without the copies that TensorFlow asks for, which JAX has no way to say; XLA puts in what it needs."""
    found = []

    def looked(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "mhlo.copy":
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(looked)
    for each in found:
        each.results[0].replace_all_uses_with(each.operands[0])
        each.erase()
    return module


def compile_for_gpu(files: list[str]) -> None:
    """Compile each of these programs."""
    card = topologies.get_topology_desc(platform="cuda", target_config=CARD.read_text("utf-8"), topology="1x1x1")
    device = card.devices[0]
    for number, file in enumerate(files):
        text = xla_client._xla.mlir.hlo_to_stablehlo(module_of(Path(file).read_bytes()))
        with mlir.make_ir_context():
            module = _without_copies(ir.Module.parse(text))
            # TensorFlow's names are so long that no file could have the name of a dump.
            module.operation.attributes["sym_name"] = ir.StringAttr.get(f"program_{number}")
            device.client.compile(module, _jax.DeviceList((device,)), xla_client.CompileOptions())


if __name__ == "__main__":
    compile_for_gpu(sys.argv[1:])
