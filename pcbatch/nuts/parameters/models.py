"""Models of TensorFlow Probability as densities: parameters by name, and the bijectors that they bring with them.

Nothing is imported: a model is an object with the methods of its distributions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.nuts.parameters.parameters import Layout, arrays_of, layout_of, unravel

METHODS = ("unnormalized_log_prob", "experimental_default_event_space_bijector")


def is_model(density: Any) -> bool:
    """Tell whether a density is an object with the methods of a distribution of TensorFlow Probability."""
    return not isinstance(density, type) and all(callable(getattr(density, name, None)) for name in METHODS)


@dataclass(frozen=True, eq=False)
class Model:
    """A model in the terms of the sampler."""

    density: Callable[[Any], Any]
    """The log density of a structure as `named` makes it."""
    bijector: Joint
    """The bijector of all parameters together, since the support of one may depend on another."""
    initial: Any
    """The parameters at which all unconstrained ones are zero."""
    dtype: tf.DType
    named: Callable[[Any], Any]
    """Makes a dict by name of a value of the model, which may be a tuple."""


@functools.lru_cache(maxsize=32)
def read(model: Any) -> Model:
    """A model in the terms of the sampler, the same one each time.

    UsageError PCB551 for one with discrete parameters, with parameters of several dtypes, and for a batch of models.
    """
    names, dtypes = _names(model), {*tf.nest.flatten(model.dtype)}
    discrete = [name for name, dtype in _by_name(names, model.dtype) if not _is_floating(dtype)]
    if discrete:
        raise UsageError(
            "PCB551", f"the parameter {discrete[0]!r} of the model is discrete: pin it, or sum over its values"
        )
    if len(dtypes) > 1:
        listed = ", ".join(sorted(each.name for each in dtypes))
        raise UsageError("PCB551", f"the parameters of a model must be of one dtype, not {listed}")
    batches = tf.nest.flatten(model.batch_shape)
    if any(tf.TensorShape(each).rank for each in batches):
        raise UsageError(
            "PCB551",
            f"the model is a batch, of shape {model.batch_shape}, and a density is of one example: let its axes be "
            "in parameters by tfd.Independent, tfd.Sample or an AutoBatched class of joint distributions",
        )
    bijector = model.experimental_default_event_space_bijector()
    try:
        free = [tuple(shape) for shape in tf.nest.flatten(bijector.inverse_event_shape(model.event_shape))]
    except AttributeError:
        why = "has no bijector, as discrete ones have none: pin it, or sum over its values"
        raise UsageError("PCB551", f"one of the parameters {', '.join(names)} of the model {why}") from None
    origin = tf.nest.pack_sequence_as(model.dtype, [tf.zeros(shape, *dtypes) for shape in free])
    named = functools.partial(_named, names)
    start = tf.nest.pack_sequence_as(model.dtype, tf.nest.flatten(bijector.forward(origin)))
    initial = tf.nest.map_structure(np.asarray, named(start))
    joint = Joint(bijector, names, model.dtype, layout_of(initial), free)
    return Model(functools.partial(_density, model), joint, initial, next(iter(dtypes)), named)


class Joint:
    """The bijector of all parameters of a model, on vectors of their numbers."""

    def __init__(
        self, bijector: Any, names: Sequence[str], structure: Any, layout: Layout, free: Sequence[tuple[int, ...]]
    ):
        """`structure` is a value of the model with anything for arrays, `layout` that of its parameters by name.

        `free` are the shapes of the unconstrained arrays.
        """
        self._bijector, self._names, self._structure, self._layout = bijector, names, structure, layout
        self._free = layout_of([np.zeros(shape) for shape in free])

    def forward(self, y: Any) -> Any:
        value = tf.nest.flatten(self._bijector.forward(self._unconstrained(y)))
        return _vector(_named(self._names, tf.nest.pack_sequence_as(self._structure, value)))

    def inverse(self, x: Any) -> Any:
        return _vector(tf.nest.flatten(self._bijector.inverse(_value(self._structure, unravel(self._layout, x)))))

    def forward_log_det_jacobian(self, y: Any, event_ndims: int) -> Any:
        free = self._unconstrained(y)
        return self._bijector.forward_log_det_jacobian(free, tf.nest.map_structure(lambda part: part.shape.rank, free))

    def __repr__(self) -> str:
        return "the support of the model"

    def _unconstrained(self, y: Any) -> Any:
        return tf.nest.pack_sequence_as(self._structure, unravel(self._free, y))


def _density(model: Any, parameters: Any) -> Any:
    return model.unnormalized_log_prob(_value(model.dtype, parameters))


def _names(model: Any) -> tuple[str, ...]:
    """The names of a model's parameters, in the order of its values; none of a single array.

    Those of a list are the names of its distributions, which the graph of the unpinned model has.
    """
    match model.dtype:
        case dict() as parts:
            return tuple(parts)
        case tuple() as parts if hasattr(parts, "_fields"):
            return tuple(parts._fields)
        case list() | tuple() as parts:
            whole = getattr(model, "distribution", model)
            pins = getattr(model, "pins", {})
            names = [name for name, _ in whole.resolve_graph() if name not in pins]
            return tuple(names) if len(names) == len(parts) else tuple(map(str, range(len(parts))))
    return ()


def _by_name(names: Sequence[str], value: Any) -> list[tuple[str, Any]]:
    parts = _named(names, value)
    return [*parts.items()] if names else [("x", parts)]


def _is_floating(dtypes: Any) -> bool:
    return all(dtype.is_floating for dtype in tf.nest.flatten(dtypes))


def _named(names: Sequence[str], value: Any) -> Any:
    """A value of a model as a dict by name; a single array as is."""
    if not names:
        return value
    found = value if isinstance(value, dict) else dict(zip(names, value, strict=False))
    if found.keys() != {*names} or len(value) != len(names):
        raise UsageError("PCB551", f"the parameters of the model are {', '.join(names)}, not {', '.join(found)}")
    return {name: found[name] for name in names}


def _value(structure: Any, parameters: Any) -> Any:
    """The value of a model of this structure, from parameters as `_named` makes them."""
    if isinstance(structure, dict) or not tf.nest.is_nested(structure):
        return parameters
    parts = parameters.values()
    return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)


def _vector(structure: Any) -> Any:
    """The numbers of a structure as one tensor."""
    return tf.concat([tf.reshape(array, [-1]) for array in arrays_of(structure)], 0)
