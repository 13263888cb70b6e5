"""Source capture, the allow-list of syntax, and the way from the user's functions to a "cfg" program."""

from __future__ import annotations

from pcbatch.frontend.build import Built, build
from pcbatch.frontend.calls import Resolve
from pcbatch.frontend.codes import CODES
from pcbatch.frontend.module import ModuleSource, read_module
from pcbatch.frontend.source import FunctionSource, Parameter, read_function

__all__ = [
    "CODES",
    "Built",
    "FunctionSource",
    "ModuleSource",
    "Parameter",
    "Resolve",
    "build",
    "read_function",
    "read_module",
]
