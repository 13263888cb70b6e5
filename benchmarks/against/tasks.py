"""The tasks, as anyone would write them for one example: the same text is run by pcbatch, Numba and plain Python.

`task` is what compiles a function; whoever runs this file gives it (see `contestants`).
"""

# ruff: noqa: F821
# mypy: disable-error-code="name-defined"
import math


@task
def collatz(n):
    """Steps to 1: a loop of a few instructions, of very different lengths."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@task
def rejection(seed, radius):
    """Tries until a point of the square lies in the disc: a loop that ends by chance."""
    tries = 0
    while True:
        seed = (seed * 1103 + 12345) % 65536
        x = float(seed) / 65536.0
        seed = (seed * 1103 + 12345) % 65536
        y = float(seed) / 65536.0
        tries += 1
        if x * x + y * y < radius or tries > 200:
            return tries


@task
def bisection(target, tolerance):
    """The root of a cubic, as accurate as each lane asks."""
    low, high = 0.0, 4.0
    while high - low > tolerance:
        middle = (low + high) / 2.0
        if middle * middle * middle - middle < target:
            low = middle
        else:
            high = middle
    return low


@task
def rk45(y, end, k, tolerance):
    """Dormand and Prince's adaptive solver: every lane chooses its own steps."""
    t = 0.0 * end
    h = 0.1 * end
    while t < end:
        h = min(h, end - t)
        k1 = -k * (y - math.cos(t)) - math.sin(t)
        a = t + h / 5.0
        k2 = -k * (y + h * (k1 / 5.0) - math.cos(a)) - math.sin(a)
        a = t + h * 3.0 / 10.0
        k3 = -k * (y + h * (k1 * 3.0 / 40.0 + k2 * 9.0 / 40.0) - math.cos(a)) - math.sin(a)
        a = t + h * 4.0 / 5.0
        b = y + h * (k1 * 44.0 / 45.0 - k2 * 56.0 / 15.0 + k3 * 32.0 / 9.0)
        k4 = -k * (b - math.cos(a)) - math.sin(a)
        a = t + h * 8.0 / 9.0
        b = y + h * (k1 * 19372.0 / 6561.0 - k2 * 25360.0 / 2187.0 + k3 * 64448.0 / 6561.0 - k4 * 212.0 / 729.0)
        k5 = -k * (b - math.cos(a)) - math.sin(a)
        a = t + h
        b = k1 * 9017.0 / 3168.0 - k2 * 355.0 / 33.0 + k3 * 46732.0 / 5247.0 + k4 * 49.0 / 176.0
        k6 = -k * (y + h * (b - k5 * 5103.0 / 18656.0) - math.cos(a)) - math.sin(a)
        b = k1 * 35.0 / 384.0 + k3 * 500.0 / 1113.0 + k4 * 125.0 / 192.0 - k5 * 2187.0 / 6784.0
        new = y + h * (b + k6 * 11.0 / 84.0)
        k7 = -k * (new - math.cos(a)) - math.sin(a)
        b = k1 * 71.0 / 57600.0 - k3 * 71.0 / 16695.0 + k4 * 71.0 / 1920.0 - k5 * 17253.0 / 339200.0
        error = h * (b + k6 * 22.0 / 525.0 - k7 / 40.0)
        ratio = abs(error) / (tolerance * max(1.0, abs(y)))
        if ratio <= 1.0:
            t += h
            y = new
        h = h * min(5.0, max(0.2, 0.9 * max(ratio, 1e-10) ** -0.2))
    return y


@task
def placements(n, row, columns, rising, falling):
    """How many ways there are to place queens from this row on; what is attacked lies in bits."""
    if row == n:
        return 1
    total = 0
    for column in range(n):
        one, two, three = 1 << column, 1 << (row + column), 1 << (row - column + n)
        if columns & one == 0 and rising & two == 0 and falling & three == 0:
            total += placements(n, row + 1, columns | one, rising | two, falling | three)
    return total


@task
def queens(n):
    """Ways to place `n` queens: recursion in a loop."""
    return placements(n, 0, 0, 0, 0)


@task
def refined(a, b, fa, fm, fb, tolerance, depth):
    """Simpson's rule on two halves, and on each of them again where that differs."""
    m = (a + b) / 2.0
    x, y = (a + m) / 2.0, (m + b) / 2.0
    fx, fy = math.sin(x * x), math.sin(y * y)
    whole = (b - a) / 6.0 * (fa + 4.0 * fm + fb)
    left = (m - a) / 6.0 * (fa + 4.0 * fx + fm)
    right = (b - m) / 6.0 * (fm + 4.0 * fy + fb)
    if depth >= 20 or abs(left + right - whole) < tolerance:
        return left + right
    half = tolerance / 2.0
    return refined(a, m, fa, fx, fm, half, depth + 1) + refined(m, b, fm, fy, fb, half, depth + 1)


@task
def simpson(a, b, tolerance):
    """An integral by adaptive bisection: recursion twice, as deep as the function is curved."""
    m = (a + b) / 2.0
    return refined(a, b, math.sin(a * a), math.sin(m * m), math.sin(b * b), tolerance, 0)


@task
def edit_distance(a, b, m, n, row):
    """Levenshtein's distance of two words: a loop in a loop, elements of an array written one by one."""
    for i in range(m):
        before = row[0]
        row[0] = i + 1
        for j in range(n):
            above = row[j + 1]
            cost = 0 if a[i] == b[j] else 1
            row[j + 1] = min(row[j] + 1, above + 1, before + cost)
            before = above
    return row[n]


@task
def quicksort(a, low, high):
    """Hoare's sorting: recursion on an array."""
    if low >= high:
        return a
    pivot = a[high]
    middle = low
    for i in range(low, high):
        if a[i] < pivot:
            a[i], a[middle] = a[middle], a[i]
            middle += 1
    a[middle], a[high] = a[high], a[middle]
    a = quicksort(a, low, middle - 1)
    return quicksort(a, middle + 1, high)
