import pcbatch


@pcbatch.autobatch
def f(n):
    if n > 0:
        sign = 1
    for i in range(n):
        last = i
    while n > 3:
        n -= 1
        m = n
    else:
        n = m + 1
    total += n
    return sign * last + i + total
