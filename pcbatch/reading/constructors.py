"""Objects that are made: of the user's classes, dataclasses and named tuples."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pcbatch.ir import values
from pcbatch.reading.core import RefusedError
from pcbatch.reading.functions import Functions
from pcbatch.reading.sources import is_users
from pcbatch.reading.values import Host, Lane, Ref, Tuple, Value

READ_CONSTRUCTORS = (
    "compute before what the object is given, `Account(capped(x))`; a constructor may branch and loop if its class has "
    "no `__new__`, no metaclass and no base class of a library"
)


class Constructors(Functions):
    """Constructors."""

    # of parts above
    opaque: Callable[[Host, Sequence[Value], dict[str, Value]], Value]

    def _construct(self, function: Host, cls: type, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self._named_tuple(cls, arguments, keywords)
        if issubclass(cls, enum.Enum) and len(arguments) == 1 and not keywords:
            member = self._member(cls, arguments[0])
            if member is not None:
                return member
        is_own = dataclasses.is_dataclass(cls) or values.is_simple_class(cls)
        if not is_own:
            return self._made_elsewhere(function, cls, arguments, keywords)
        ref = self.new("object", {}, cls)
        if dataclasses.is_dataclass(cls) and not _has_own_init(cls):
            others = self._filled(ref, cls, arguments, keywords)
            after = self.method_of(ref, "__post_init__")
            if after is not None:
                self.call_value(after, others, {})
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

    def _member(self, cls: type[enum.Enum], value: Value) -> Value | None:
        """The member of an enum whose value a lane's number is; None where another thing is asked for."""
        number, members = self.read(self.known(value)), {each.value: self.host(each) for each in cls}
        is_plain = all(type(each) is int for each in members) and not issubclass(cls, enum.Flag)
        if not isinstance(number, Lane) or not is_plain or vars(cls).get("_missing_") is not None:
            return None
        inside = self.is_key(members, number)
        assert inside is not None
        self.require(inside, f"ValueError: {{}} is not a valid {cls.__name__}", (number.name,))
        return self._at(members, number)

    def _made_elsewhere(
        self, function: Host, cls: type, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        """An object of a class whose constructor is not read: it has a `__new__`, say, or is a library's."""
        try:
            return self.opaque(function, arguments, keywords)
        except RefusedError as error:
            own = next(vars(base).get("__init__") for base in cls.__mro__ if "__init__" in vars(base))
            if error.diagnostic.code == "PCB401" and is_users(own):
                error = type(error)(dataclasses.replace(error.diagnostic, help=READ_CONSTRUCTORS))
            raise error from None

    def _filled(self, ref: Ref, cls: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> list[Value]:
        """Give a dataclass' object its fields from the arguments of its constructor; those that are no fields."""
        parameters = inspect.signature(cls).parameters
        is_by_name = {name: each.kind is each.KEYWORD_ONLY for name, each in parameters.items()}
        names = [name for name in parameters if not is_by_name[name]]
        if len(arguments) > len(names):
            raise self.refusal(
                "PCB401", f"TypeError: {cls.__name__}() takes {len(names)} arguments, not {len(arguments)}"
            )
        given = dict(zip(names, arguments, strict=False)) | keywords
        wrong = [name for name in keywords if name not in parameters]
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
        others = []
        of_fields = {each.name for each in dataclasses.fields(cls)}
        for name in (each for each in parameters if each not in of_fields):
            if name not in given and parameters[name].default is inspect.Parameter.empty:
                raise self.refusal("PCB401", f"TypeError: {cls.__name__}() is called without `{name}`")
            others.append(given[name] if name in given else self.host(parameters[name].default))
        return others

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
    """Return whether a dataclass' `__init__` is the user's own."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    code = getattr(vars(owner)["__init__"], "__code__", None)
    return code is not None and code.co_filename != "<string>"
