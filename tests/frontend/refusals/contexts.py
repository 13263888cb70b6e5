import pcbatch


@pcbatch.autobatch
def f(x, xs, lock):
    with lock as held:
        if x > 0:
            x += 1
    with lock, lock:
        xs[0] = x
        for x in xs:
            pass
    with lock as xs[0], lock as (x, (xs[1], *rest)):
        pass
    with lock:
        return x
    with lock:
        lock.notify()
        with lock:
            assert x, "none"
            del x
    return x
