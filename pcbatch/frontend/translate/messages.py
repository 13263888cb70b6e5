"""Messages of `assert` and `raise`: a `str.format` template and the expressions that fill its fields."""

from __future__ import annotations

from typing import Any

import gast

_CONVERSIONS = {-1: "", ord("r"): "!r", ord("s"): "!s", ord("a"): "!a"}


def template(error: str, message: Any | None) -> tuple[str, list[Any]]:
    """The text of a fault and the expressions whose values go into it, in order.

    `error` is the exception's name; `message` the node of its message, if any: `f"bad {x:.3f}"` gives
    `"ValueError: bad {:.3f}"` and `[x]`.
    """
    match message:
        case None:
            return error, []
        case gast.Constant(value=value):
            return f"{error}: {_plain(value)}", []
        case gast.JoinedStr(values=parts):
            pieces = [_piece(part) for part in parts]
            fields = [part.value for part in parts if _is_field(part)]
            return f"{error}: {''.join(pieces)}", fields
    return f"{error}: {{}}", [message]


def _is_field(part: Any) -> bool:
    return isinstance(part, gast.FormattedValue) and not isinstance(part.value, gast.Constant)


def _piece(part: Any) -> str:
    if isinstance(part, gast.Constant):
        return _plain(part.value)
    spec = "".join(each.value for each in part.format_spec.values) if part.format_spec is not None else ""
    field = f"{{{_CONVERSIONS[part.conversion]}{':' + spec if spec else ''}}}"
    return field if _is_field(part) else _plain(field.format(part.value.value))


def _plain(value: object) -> str:
    """The text of a constant with its braces doubled, as `str.format` wants them."""
    return str(value).replace("{", "{{").replace("}", "}}")
