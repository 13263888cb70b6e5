"""What is copied has the name of a comprehension's variable, and the copy is read in it. In: graph, xla."""


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t0 = a
    a = sum([a * t0 for a in (b, b + 1)]) % 29
    result = x
    x = sum(x - result for x in (result, result + 1.0))
    b = tf.add_n([b * t0 for b in (n, n + 1)])
    return x, a + b
