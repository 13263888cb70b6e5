import pcbatch

EXAMPLES = [(0,), (3,)]


@pcbatch.autobatch
def unused(n):
    return n


@pcbatch.autobatch
def dead_code(n):
    """What cannot be reached leaves no trace."""
    if n > 2:
        pass
    else:
        ...
    while True:
        n += 1
        if n > 5:
            return n
        continue
        n = unused(n)
    return unused(n)
