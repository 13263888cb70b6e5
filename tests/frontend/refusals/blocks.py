import pcbatch


@pcbatch.autobatch
def f(x, lock):
    with lock as held, held:
        x += 1
    match x:
        case 1:
            x = 2
        case _:
            x = 3
    return x
