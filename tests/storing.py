"""A module that a test's function names: it changes an array that it is given."""


def store(a):
    """Change the first element."""
    a[0] = 100
