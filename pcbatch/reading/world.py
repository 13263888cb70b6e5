"""The reads of the world around a function: values that the program depends on, and captured arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.lowering.captures.guards import Guards


@dataclass(eq=False)
class Operand:
    """A captured array: its value now, and all places where it is read; none where nothing else can ever be there."""

    value: Any
    places: list[Place]

    def kept(self) -> Operand:
        """The same for a program that is kept: it lets go of an array that each call reads again."""
        return Operand(None if self.places else self.value, self.places)


@dataclass(eq=False)
class World:
    """The reads of the world around the function, in their order."""

    guards: Guards = field(default_factory=Guards)
    """The places of the program's dependences, with their values."""
    operands: dict[str, Operand] = field(default_factory=dict)
    """Captured arrays by the name of the shared operand."""
