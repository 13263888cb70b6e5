import pcbatch

EXAMPLES = [(7, 2), (5, 3)]


class Matrix:
    def __matmul__(self, other):
        return 6


unit = Matrix()


@pcbatch.autobatch
def operators(a, b):
    """Expressions stay as they were written."""
    x = (a + b) * (a - b) ** 2 / b // 1 % 5
    y = (a << b) | (a >> 1) & ~b ^ +a
    z = -2147483648 < a <= 7 and (a != b or a == 1) and not a >= 9
    xs = [a, b, 1, 2, 3, 4]
    w = xs[1:3], xs[::2], xs[-1]
    divided = divmod(a, b)
    return x, y, z, w, divided, max(a, b), min(xs, key=lambda v: (v - 3, v)), True, 1.5, unit @ unit, "text"[0] == "t"
