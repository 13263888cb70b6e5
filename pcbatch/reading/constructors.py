"""Objects that are made: of the user's classes, dataclasses and named tuples."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from pcbatch.ir import records
from pcbatch.reading.functions import Functions
from pcbatch.reading.values import (
    Host,
    Ref,
    Tuple,
    Value,
)


class Constructors(Functions):
    """Constructors."""

    def opaque(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A call of what is not interpreted; see `libraries`."""
        raise NotImplementedError

    def _construct(self, function: Host, cls: type, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self._named_tuple(cls, arguments, keywords)
        is_own = dataclasses.is_dataclass(cls) or records.is_simple_class(cls)
        if not is_own:
            return self.opaque(function, arguments, keywords)
        ref = self.new("object", {}, cls)
        if dataclasses.is_dataclass(cls) and not _has_own_init(cls):
            self._filled(ref, cls, arguments, keywords)
            after = self.method_of(ref, "__post_init__")
            if after is not None:
                self.call_value(after, [], {})
            return ref
        owner, own_init = self.member(cls, "__init__")
        if owner is object:
            if arguments or keywords:
                raise self.refusal("PCB401", f"TypeError: {cls.__name__}() takes no arguments")
            return ref
        init = self.function_of(own_init, owner)
        if init is None:
            raise self.unreadable(vars(owner)["__init__"], f"the constructor of `{cls.__name__}`")
        self.call_user(init, [ref, *arguments], keywords)
        return ref

    def _filled(self, ref: Ref, cls: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> None:
        """The fields of a dataclass' object from the arguments of its constructor."""
        fields = [each for each in dataclasses.fields(cls) if each.init]
        names = [each.name for each in fields if not each.kw_only]
        if len(arguments) > len(names):
            raise self.refusal(
                "PCB401", f"TypeError: {cls.__name__}() takes {len(names)} arguments, not {len(arguments)}"
            )
        given = dict(zip(names, arguments, strict=False)) | keywords
        wrong = [name for name in keywords if name not in {each.name for each in fields}]
        if wrong:
            raise self.refusal("PCB401", f"TypeError: {cls.__name__}() has no parameter `{wrong[0]}`")
        items: dict[str, Value] = {}
        for each in dataclasses.fields(cls):
            if each.init and each.name in given:
                items[each.name] = given[each.name]
            elif each.default is not dataclasses.MISSING:
                items[each.name] = self.host(each.default)
            elif each.default_factory is not dataclasses.MISSING:
                items[each.name] = self.call_value(self.host(each.default_factory), [], {})
            elif each.init:
                raise self.refusal("PCB401", f"TypeError: {cls.__name__}() is called without `{each.name}`")
        self.state.set_cell(ref, items=items)

    def _named_tuple(self, cls: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        names = cls._fields
        if len(arguments) > len(names) or any(name not in names for name in keywords):
            raise self.refusal("PCB401", f"TypeError: {cls.__name__}() is called with other arguments than its fields")
        given = dict(zip(names, arguments, strict=False)) | keywords
        for name, value in cls._field_defaults.items():
            given.setdefault(name, self.host(value))
        missing = [name for name in names if name not in given]
        if missing:
            raise self.refusal("PCB401", f"TypeError: {cls.__name__}() is called without `{missing[0]}`")
        return Tuple(tuple(given[name] for name in names), cls)


def _has_own_init(cls: Any) -> bool:
    """Whether a dataclass' `__init__` is the user's own."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    code = getattr(vars(owner)["__init__"], "__code__", None)
    return code is not None and code.co_filename != "<string>"
