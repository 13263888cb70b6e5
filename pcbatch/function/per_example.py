"""`pcbatch.per_example_gradients`: the gradient of each example by variables, from one run of the batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pcbatch.errors import UsageError
from pcbatch.function.batched import Batched
from pcbatch.function.executing import arrays_of
from pcbatch.function.user_code import pieces_of, without_internals
from pcbatch.ir.analysis.activity import has_gradient
from pcbatch.ir.types import leaves
from pcbatch.lowering.captures.captured import objects
from pcbatch.runtime.adjoint.custom_gradient import gradients_by_example
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.protocol import Backend

CODE = "PCB569"


@without_internals
def per_example_gradients(function: Batched[..., Any], variables: Any) -> Callable[..., Any]:
    """The gradients of each example of a batch by variables: `per_example_gradients(f, variables)(*args)`.

    One run of the batch is recorded and undone once, as under a `tf.GradientTape`; what it adds to a gradient by a
    variable is kept apart by lane instead of being summed. So it costs about what a gradient costs, and the memory of
    its results, `batch` times that of the variables, once more while they are made.

    Arguments:
        function: a batched function. What is differentiated is the sum of all floats that it returns for an example, as
            `tf.GradientTape.gradient` does; a loss is one number.
        variables: a float `tf.Variable` or Keras variable, or a list or tuple of such, which the function reads: in its
            body, in helpers, or in layers that it calls.

    Returns:
        A function of a batch, in ordinary code or in a `tf.function`. It gives for each variable a tensor
        `[batch, *variable.shape]` of the variable's dtype, whose row i is `tape.gradient(f.single(example i),
        variable)`; None for a variable that no result depends on. The rows of lanes that fail are zeros, and nothing is
        raised for them. One tensor for one variable, else a list.

    Raises:
        UsageError: PCB569 for what is no batched function or no float variable, for a variable that is passed as an
            argument, and under `backend="reference"`; else as a call.
        GradientError: PCB602, PCB603, PCB606, PCB607 as for gradients through a call (docs/gradients.md); PCB604 where
            a gradient through the result is asked for.
        CompileError: as a call.

    >>> import pcbatch, tensorflow as tf
    >>> w = tf.Variable(3.0)
    >>> @pcbatch.autobatch
    ... def power(n):
    ...     y = 1.0
    ...     while n > 0:
    ...         y = y * w
    ...         n = n - 1
    ...     return y
    >>> print(pcbatch.per_example_gradients(power, w)(tf.constant([1, 2, 0])).numpy())
    [1. 6. 0.]
    """
    if not isinstance(function, Batched):
        raise UsageError(
            CODE, f"per_example_gradients takes a batched function and variables, not {type(function).__name__}"
        )
    backend = backend_named("tensorflow")
    is_one = not isinstance(variables, (list, tuple))
    every = [variables] if is_one else list(variables)
    for each in every:
        if not backend.is_variable(each) or not all(map(has_gradient, leaves(backend.type_of(each)))):
            kind = type(each).__name__
            raise UsageError(CODE, f"per_example_gradients takes gradients by variables of floats, not by {kind}")

    @without_internals
    def gradients(*args: Any, **kwargs: Any) -> Any:
        found = _gradients(function, every, args, kwargs)
        return found[0] if is_one else found

    return gradients


def _gradients(function: Batched[..., Any], variables: Sequence[Any], args: Any, kwargs: Any) -> list[Any]:
    """The gradients of one batch."""
    arguments, pipeline, captured = function.options(trace=0).session.pipeline(args, kwargs)
    name, backend = function.__name__, pipeline.environment.backend
    if pipeline.options.backend == "reference":
        raise UsageError(CODE, f"the reference backend runs {name} lane after lane: take a tape over {name}.single")
    passed = {id(each) for each in objects([*args, *kwargs.values()])}
    for each in variables:
        if _identities(each) & passed:
            raise UsageError(
                CODE,
                f"a variable by which gradients are wanted is an argument of {name}: let {name} read it from around it",
            )
    with pieces_of(name), pipeline.first_time(None):
        given, shared = arrays_of(pipeline.machine, pipeline.parameters(), arguments, captured.leaves)
        shared += pipeline.reverse.hidden
        places = [[n for n, leaf in enumerate(shared) if id(leaf) in _identities(each)] for each in variables]
        wanted = {place for every in places for place in every}
        found = gradients_by_example(pipeline.reverse, given, shared, arguments.lanes, wanted) if wanted else {}
    return [_sum([found[place] for place in every], backend) for every in places]


def _identities(variable: Any) -> set[int]:
    """Return the identities by which a variable is known: Keras' have one of TensorFlow's inside."""
    return {id(variable), id(getattr(variable, "value", None))}


def _sum(parts: Sequence[Any], backend: Backend) -> Any:
    """The sum of the gradients that there are, None if there are none."""
    known = [each for each in parts if each is not None]
    return functools.reduce(backend.add, known) if known else None
