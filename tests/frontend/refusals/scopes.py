import pcbatch

count = 0


@pcbatch.autobatch
def of_the_module(x):
    global count
    count += 1
    return x


def around():
    total = 0.0

    @pcbatch.autobatch
    def of_a_function_around(x):
        nonlocal total
        total += x
        return total

    @pcbatch.autobatch
    def of_a_function_inside(x):
        def add(v):
            nonlocal total
            total += v

        add(x)
        return total

    return of_a_function_around, of_a_function_inside


around()
