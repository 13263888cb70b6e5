import pcbatch


@pcbatch.autobatch
def f(number):
    value = numbr + 1
    return value * factor + factor
