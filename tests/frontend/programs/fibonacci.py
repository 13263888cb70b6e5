import pcbatch

EXAMPLES = [(0,), (1,), (7,)]


@pcbatch.autobatch
def fibonacci(n):
    """The worked case of the design: two calls that re-enter."""
    if n <= 1:
        return 1
    left = fibonacci(n - 2)
    right = fibonacci(n - 1)
    return left + right
