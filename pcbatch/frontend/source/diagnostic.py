"""A refusal of something in the user's source, as data."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.errors import Diagnostic, Span


@dataclass(frozen=True)
class Refusal:
    """The fault of a construct, a label for its carets and the help."""

    code: str
    message: str
    label: str
    help: str

    def at(self, span: Span) -> Diagnostic:
        """The diagnostic that shows it at `span`."""
        return Diagnostic(self.code, self.message, span, self.label, self.help)
