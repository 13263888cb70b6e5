"""The reader is many classes on top of each other: none takes a private name of another by accident."""

from __future__ import annotations

import inspect

from pcbatch.reading.recovery import Recovery


def test_no_class_replaces_a_private_method_that_it_does_not_know():
    """A method that replaces one goes on to it by `super()`, or that one is a declaration without a body."""
    bodies: dict[str, str] = {}
    replaced = []
    for cls in reversed(Recovery.__mro__):
        for name, method in vars(cls).items():
            if not (name.startswith("_") and not name.startswith("__") and inspect.isfunction(method)):
                continue
            text = inspect.getsource(method)
            if name in bodies and "super()" not in text:
                replaced.append(f"{cls.__name__}.{name} replaces that of {bodies[name]}")
            if "raise NotImplementedError" not in text:
                bodies[name] = cls.__name__
    assert len(bodies) > 300
    assert not replaced
