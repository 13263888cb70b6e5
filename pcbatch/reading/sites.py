"""Places where containers are made, by which a program that needs another form is read anew; see `lengths`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pcbatch.reading.core import Core, NeedsConstantError
from pcbatch.reading.state import Cell, CellKind
from pcbatch.reading.values import Ref, Value


class Sites(Core):
    """Containers that the user's code makes."""

    def new_container(self, kind: CellKind, items: Any) -> Ref:
        """A new list, set or dict that the user's code makes here; see `lengths`."""
        ref = self.new(kind, items)
        self.state.set_cell(ref, site=self.site())
        return ref

    def new_like(self, cell: Cell) -> Ref:
        """A new object with what another one has in it."""
        ref = self.new(cell.kind, cell.items, cell.cls)
        self.state.set_cell(ref, site=cell.site)
        return ref

    @contextmanager
    def wanting(self, container: Value | None = None) -> Iterator[None]:
        """Note that a number need not be known if `container`, or one made here, were one of `lengths`."""
        cell = None if container is None else self.cell(container)
        site = self.site() if container is None else None if cell is None else cell.site
        try:
            yield
        except NeedsConstantError as error:
            if site is not None:
                error.wants = (*error.wants, site)
            raise

    def site(self) -> Any:
        """The place at which something is made: in the source, and in which calls that are interpreted in place."""
        node = self.node
        place = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        return self.file, *place, tuple(frame.span for frame in self.frames[1:])
