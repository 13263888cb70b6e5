"""`match`: the subject is evaluated once; each case is a condition, then its captures, then its guard.

Tuples written out, as in `match a % 3, a % 5:`, are taken apart here and never made. Other sequences are taken apart at
compile time, since a structure has a fixed number of parts: a pattern of another length is refused when types are
known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast

from pcbatch.errors import Span
from pcbatch.frontend.source.calls import is_literal
from pcbatch.frontend.source.nodes import call, constant, dotted, load, store
from pcbatch.frontend.translate.expressions import Expressions

PARTS = "__parts__"
"""The pseudo-builtin that gives a sequence of a certain length as it is."""
FLAG = "__flag__"
"""The pseudo-builtin for `value is True` and `value is False`."""

Capture = tuple[str, Any, Span]
"""A name that a pattern captures, the expression of its value, and the pattern's place."""


class Match:
    """One `match` statement, emitted through `code`, the statements of its cases by `body`."""

    def __init__(self, code: Expressions, node: Any, body: Callable[[Sequence[Any]], None]):
        self.code = code
        self.body = body
        self.node = node
        self.later = [part for case in node.cases for part in (case.pattern, case.guard) if part is not None]
        self.apart: dict[tuple[str, int], list[Any]] = {}
        """The parts of the sequences that have been taken apart, by their text and number of parts."""

    def translate(self) -> None:
        """Emit the cases, one after the other."""
        leave = self.code.draft.label()
        subject = self._evaluated(self.node.subject, self.later)
        for case in self.node.cases:
            following = self.code.draft.label()
            self._enter(case, subject, following)
            self.body(case.body)
            self.code.jump(leave, self.code.span(self.node))
            self.code.draft.open(following)
        self.code.jump(leave, self.code.span(self.node))
        self.code.draft.open(leave)

    def _evaluated(self, node: Any, later: list[Any]) -> Any:
        """The subject's value: an expression that may be read again, or a tuple of such."""
        match node:
            case gast.Tuple(elts=parts) | gast.List(elts=parts) if not any(isinstance(p, gast.Starred) for p in parts):
                settled = [self._evaluated(part, [*parts[at + 1 :], *later]) for at, part in enumerate(parts)]
                return gast.copy_location(gast.Tuple(settled, gast.Load()), node)
        path = dotted(node)
        if is_literal(node) or (path is not None and path.partition(".")[0] not in self.code.source.locals):
            return node
        return load(self.code.operand(node, later), node)

    def _enter(self, case: Any, subject: Any, following: str) -> None:
        """Go on in the block of the case's body, or to `following` where the case does not match."""
        tests, captures = self._pattern(case.pattern, subject)
        if tests:
            matched = self.code.draft.label()
            self.code.condition(_all(gast.And(), tests), matched, following)
            self.code.draft.open(matched)
        for name, value, span in captures:
            self.code.primitive([store(name)], value, span)
        if case.guard is not None:
            passed = self.code.draft.label()
            self.code.condition(case.guard, passed, following)
            self.code.draft.open(passed)

    def _pattern(self, pattern: Any, value: Any) -> tuple[list[Any], list[Capture]]:
        """The conditions under which `value` matches, and what is captured then."""
        match pattern:
            case gast.MatchValue(value=expected):
                return [self._placed(gast.Compare(value, [gast.Eq()], [expected]), pattern)], []
            case gast.MatchSingleton(value=None):
                return [self._placed(gast.Compare(value, [gast.Is()], [constant(None)]), pattern)], []
            case gast.MatchSingleton(value=flag):
                return [self._placed(call(FLAG, value, constant(flag)), pattern)], []
            case gast.MatchAs(pattern=inner, name=name):
                tests, captures = self._pattern(inner, value) if inner is not None else ([], [])
                own = [(name, value, self.code.span(pattern))] if name is not None else []
                return tests, captures + own
            case gast.MatchOr(patterns=patterns):
                choices = [self._pattern(each, value)[0] for each in patterns]
                if not all(choices):
                    return [], []
                return [_all(gast.Or(), [_all(gast.And(), tests) for tests in choices])], []
            case gast.MatchSequence(patterns=patterns):
                parts = self._parts(value, len(patterns), pattern)
                found = [self._pattern(each, part) for each, part in zip(patterns, parts, strict=False)]
                if len(parts) != len(patterns):
                    return [self._placed(constant(False), pattern)], []
                return [test for tests, _ in found for test in tests], [each for _, own in found for each in own]
        raise TypeError(f"the syntax check lets pass a pattern that is not translated: {pattern!r}")

    def _parts(self, value: Any, count: int, pattern: Any) -> list[Any]:
        """The parts of a sequence; of one that is not written out there are `count`, or it is refused later."""
        if isinstance(value, gast.Tuple):
            return list(value.elts)
        key = (dotted(value) or "", count)
        if key not in self.apart:
            names = [self.code.temporary() for _ in range(count)]
            target = gast.Tuple([store(name) for name in names], gast.Store())
            whole = self._placed(call(PARTS, value, constant(count)), pattern)
            if count:
                self.code.primitive([target], whole, self.code.span(pattern))
            self.apart[key] = [load(name, pattern) for name in names]
        return self.apart[key]

    def _placed(self, node: Any, pattern: Any) -> Any:
        return gast.copy_location(node, pattern)


def _all(op: Any, tests: list[Any]) -> Any:
    """`tests` joined by `and` or `or`; there is at least one."""
    return tests[0] if len(tests) == 1 else gast.copy_location(gast.BoolOp(op, tests), tests[0])
