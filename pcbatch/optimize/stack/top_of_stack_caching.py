"""Tops are cached: a stack is touched on push and pop only, not on every read and write of its variable."""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.rewrite import map_variables


def cache_tops(program: ir.Program) -> ir.Program:
    """Keep the top of every stack apart from the stack."""
    return map_variables(program, lambda v: replace(v, storage="cached stack") if v.storage == "stack" else v)
