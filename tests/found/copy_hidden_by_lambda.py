"""What is copied has the name of a lambda's parameter, and the lambda reads the copy. In: reference, graph, xla."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t0 = a
    b = (lambda a: a * t0)(b) + sum(tf.vectorized_map(lambda a: a * t0, xs))
    result = x
    x = apply(lambda x: x - result, 2.0)
    return x, b
