import math

from pcbatch import autobatch

EXAMPLES = [(n, x) for n in (-2, 0, 3) for x in (0.0, 2.0)]


@autobatch
def choices(n, x):
    small = n if n < 0 else -n
    y = math.sqrt(x) if x > 0 else 0.0
    y = (y if y > 1 else choices(n - 1, 0.0)) if n > 0 else small
    z = 1 + (math.sin(x) if x > 0 else n // 2) * 2
    return choices(n - 1, x) if n > 0 else (y if x > 0 else z)
