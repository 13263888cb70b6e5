"""Recursions that TensorFlow Probability's machine runs, too; `task` is what compiles a function, as in `tasks.py`."""

# ruff: noqa: F821
# mypy: disable-error-code="name-defined"


@task
def fibonacci(n):
    """Recursion twice: the paper's own example."""
    if n <= 1:
        return 1
    return fibonacci(n - 2) + fibonacci(n - 1)


@task
def even_odd_tail(n):
    """Even or not, by two functions that call each other and do nothing afterwards."""
    if n == 0:
        return 1
    return odd_even_tail(n - 1)


@task
def odd_even_tail(n):
    """The other of the two."""
    if n == 0:
        return 0
    return even_odd_tail(n - 1)


@task
def even_odd(n):
    """Two functions that call each other, with a sum left to do afterwards."""
    if n == 0:
        return 0
    return n - odd_even(n - 1)


@task
def odd_even(n):
    """The other of the two."""
    if n == 0:
        return 0
    return n + even_odd(n - 1)


@task
def total(n):
    """1 + 2 + .. + n: recursion once, `n` deep."""
    if n == 0:
        return 0
    return n + total(n - 1)
