"""Float recursion that goes deeper where the integrand is steep; float64; an undecorated function for the integrand."""

import pcbatch

DTYPES = ("float64",)


def integrand(x):
    return 1.0 / (1.0 + 25.0 * x * x)


@pcbatch.autobatch
def refine(a, b, left, middle, right, whole, tolerance):
    center = 0.5 * (a + b)
    low = integrand(0.5 * (a + center))
    high = integrand(0.5 * (center + b))
    first = (center - a) / 6.0 * (left + 4.0 * low + middle)
    second = (b - center) / 6.0 * (middle + 4.0 * high + right)
    excess = first + second - whole
    if abs(excess) <= 15.0 * tolerance:
        return first + second + excess / 15.0
    return refine(a, center, left, low, middle, first, 0.5 * tolerance) + refine(
        center, b, middle, high, right, second, 0.5 * tolerance
    )


@pcbatch.autobatch
def adaptive_simpson(a, b):
    left, middle, right = integrand(a), integrand(0.5 * (a + b)), integrand(b)
    whole = (b - a) / 6.0 * (left + 4.0 * middle + right)
    return refine(a, b, left, middle, right, whole, 1e-4)


def batch(rng, lanes):
    return rng.uniform(-1, 0, lanes), rng.uniform(0, 1, lanes)


def twin(a, b):
    def simpson(low, high):
        return (high - low) / 6 * (integrand(low) + 4 * integrand((low + high) / 2) + integrand(high))

    total, work = 0.0, [(a, b, 1e-4)]
    while work:
        low, high, tolerance = work.pop()
        center = (low + high) / 2
        halves = simpson(low, center) + simpson(center, high)
        excess = halves - simpson(low, high)
        if abs(excess) > 15 * tolerance:
            work += [(low, center, tolerance / 2), (center, high, tolerance / 2)]
        else:
            total += halves + excess / 15
    return total
