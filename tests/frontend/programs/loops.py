import pcbatch

EXAMPLES = [(0,), (1,), (4,), (9,), (30,)]


@pcbatch.autobatch
def loops(n):
    total = 0
    while n > 20:
        n -= 3
        if n % 2:
            continue
        total += 1
    else:
        total += 100
    while True:
        if total > 110:
            break
        total += n + 1
        while n > 0:
            n -= 1
            if n == 5:
                break
        else:
            total += 1000
    for i in range(n):
        if i == 3:
            break
    else:
        i = -1
    return total, i
