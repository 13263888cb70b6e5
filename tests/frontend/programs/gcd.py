import pcbatch

EXAMPLES = [(12, 18), (7, 0), (1, 5)]


@pcbatch.autobatch
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a
