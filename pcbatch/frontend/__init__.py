"""Source capture, the allow-list of syntax, and the way from the user's functions to a "cfg" program."""

from __future__ import annotations

from pcbatch.frontend.check.codes import CODES
from pcbatch.frontend.check.reading import read_function, read_method
from pcbatch.frontend.source.calls import Resolve
from pcbatch.frontend.source.source import FunctionSource, Parameter
from pcbatch.frontend.translate.build import Built, build
from pcbatch.frontend.translate.module import ModuleSource, read_module

__all__ = [
    "CODES",
    "Built",
    "FunctionSource",
    "ModuleSource",
    "Parameter",
    "Resolve",
    "build",
    "read_function",
    "read_method",
    "read_module",
]
