"""Calls of objects, `o(x)`: which of a statement are meant, as type inference tells it to the frontend.

An object of the user's is called by its method: `o(x)` is `o.__call__(x)`, once it is known that it is one. Which call
is meant, and whose method it is, is said by the path that is called and the class: `t.a[]()module.Opt` for
`t.a[i](x)`, `()module.Opt` for what is no path.
"""

from __future__ import annotations

CALL = "__call__"
_END = "()"
