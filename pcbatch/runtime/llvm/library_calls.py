"""Calls of functions that a module does not define."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir

PURE = ("nounwind", "readnone")
"""Attributes of functions that only compute."""


def call(builder: Any, name: str, result: ir.Type, *values: Any) -> Any:
    """The result of a pure function that is declared by this name."""
    module = builder.module
    declared = module.globals.get(name)
    if declared is None:
        declared = ir.Function(module, ir.FunctionType(result, [value.type for value in values]), name)
        for attribute in () if name.startswith("llvm.") else PURE:
            declared.attributes.add(attribute)
    return builder.call(declared, values)
