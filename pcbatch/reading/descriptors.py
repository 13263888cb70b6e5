"""Attributes of objects that their classes look after: slots, properties, descriptors of the user's."""

from __future__ import annotations

from types import FunctionType, MemberDescriptorType

from pcbatch.reading.sources import is_users


def is_slot(cls: type, name: str) -> bool:
    """Tell whether objects of a class keep an attribute in a slot."""
    return isinstance(
        next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None), MemberDescriptorType
    )


def is_set_by_descriptor(cls: type | None, name: str) -> bool:
    """Tell whether an attribute of objects of a class is set by a descriptor of the user's."""
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None) if cls is not None else None
    setter = getattr(type(found), "__set__", None)
    return isinstance(setter, FunctionType) and is_users(setter)


def has_setter(cls: type | None, name: str) -> bool:
    """Tell whether setting an attribute of objects of a class runs code of the user's."""
    is_property = cls is not None and any(isinstance(vars(base).get(name), property) for base in cls.__mro__)
    return is_property or is_set_by_descriptor(cls, name)
