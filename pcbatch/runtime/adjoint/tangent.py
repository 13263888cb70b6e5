"""The tangent program: a program that also computes how its results change as its inputs do.

Every variable of floats gets a partner, its tangent, of the same storage; what is done to the one is done to the other,
and a piece computes the tangents of what it writes from those of what it reads. Control flow stays as it is. So its
results are `f(x)` and `J(x) s` for inputs `x` with tangents `s`.

Second derivatives are first derivatives of it. The backward pass of `f` gives `J(x)^T u` for gradients `u` that come
back. Its derivative in a direction `s` is `J(x) s` with respect to `u`, and with respect to `x` the gradient of
`u^T J(x) s`: the backward pass of the tangent program. That has a tangent program, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pcbatch.ir.machine import (
    Block,
    Branch,
    Fork,
    ForkedCall,
    Item,
    Piece,
    Program,
    Push,
    PushJump,
    fork_of,
)
from pcbatch.ir.types import StructType, TensorType, Type, leaves
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.protocol import Backend


def tangent_type(type_: Type) -> Type | None:
    """The type of a value's tangent: its float leaves; None where there are none."""
    floats = [leaf for leaf in leaves(type_) if is_float(leaf)]
    if not floats:
        return None
    return floats[0] if isinstance(type_, TensorType) else StructType("tuple", tuple(floats))


def is_float(type_: TensorType) -> bool:
    """Return whether such numbers have tangents."""
    return type_.dtype.startswith(("float", "bfloat"))


def tangent_program(program: Program, backend: Backend) -> Program:
    """The tangent program of one whose pieces have code: parameters, results and shared operands, then tangents."""
    return _Tangents(program, backend).program()


class _Tangents:
    """The names of the tangents of a program's variables and shared operands."""

    def __init__(self, program: Program, backend: Backend):
        self.original, self.backend = program, backend
        self.types = {name: each for name, type_ in program.types.items() if (each := tangent_type(type_))}
        self.shared = {name: each for name, type_ in program.shared_types.items() if (each := tangent_type(type_))}
        taken = {*program.types, *program.shared_types}
        self.names: dict[str, str] = {}
        for name in (*self.types, *self.shared):
            new = f"{name}'"
            while new in taken:
                new += "'"
            taken.add(new)
            self.names[name] = new

    def program(self) -> Program:
        program = self.original
        with self.backend.tracing_once():
            blocks = tuple(map(self.block, program.blocks))
        return replace(
            program,
            name=f"{program.name}'",
            parameters=self.both(program.parameters),
            results=self.both(program.results),
            types=self._renamed(program.types, self.types),
            storage=self._renamed(program.storage, program.storage),
            blocks=blocks,
            shared=(*program.shared, *self.of(program.shared)),
            shared_types=self._renamed(program.shared_types, self.shared),
            pointers={
                **program.pointers,
                **{new: program.pointers.get(name, name) for name, new in self.names.items() if self._is_stacked(name)},
            },
            structure=None,
        )

    def _is_stacked(self, name: str) -> bool:
        return "stack" in self.original.storage.get(name, "")

    def of(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names of the tangents of those that have one."""
        return tuple(self.names[name] for name in names if name in self.names)

    def both(self, names: Iterable[str]) -> tuple[str, ...]:
        names = tuple(names)
        return (*names, *self.of(names))

    def _renamed(self, known: Mapping[str, Any], tangents: Mapping[str, Any]) -> dict[str, Any]:
        more = {self.names[name]: each for name, each in tangents.items() if name in self.names and name in known}
        return {**known, **more}

    def block(self, block: Block) -> Block:
        """A block that does to tangents what it does to values."""
        body: list[Item] = []
        for item in block.body:
            if isinstance(item, Piece):
                body.append(self.piece(item))
                continue
            body.append(item)
            if item.array in self.names:
                body.append(replace(item, array=self.names[item.array], value=self.names[item.value]))
        terminator: Any = block.terminator
        fork = fork_of(terminator)
        if fork is not None:
            assert isinstance(terminator, Branch | PushJump)
            terminator = replace(terminator, fork=Fork(tuple(map(self.call, fork.calls)), fork.join))
        pushes = [
            Push(self.names[each.variable], None if each.saved is None else self.names[each.saved])
            for each in block.pushes
            if each.variable in self.names
        ]
        return replace(
            block,
            body=tuple(body),
            terminator=terminator,
            pops=self.both(block.pops),
            pushes=(*block.pushes, *pushes),
            dead=self.both(block.dead),
        )

    def call(self, call: ForkedCall) -> ForkedCall:
        def pairs(known: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
            return (*known, *((self.names[a], self.names[b]) for a, b in known if a in self.names))

        return replace(call, given=pairs(call.given), results=pairs(call.results))

    def piece(self, piece: Piece) -> Piece:
        """The piece that writes tangents, too; it reads those of what it reads and of what all lanes share."""
        types, shared_types = self.original.types, self.original.shared_types
        signature = Signature(
            [types[name] for name in piece.reads],
            [shared_types[name] for name in piece.shared],
            [types[name] for name in piece.writes],
        )
        named = len(piece.shared) - piece.unnamed
        return replace(
            piece,
            function=self.backend.tangent(piece, signature),
            reads=self.both(piece.reads),
            writes=self.both(piece.writes),
            shared=(*piece.shared[:named], *self.of(piece.shared), *piece.shared[named:]),
        )
