import pcbatch

EXAMPLES = [(4, 2), (1, 1), (3, 3)]
LIMIT = 2


@pcbatch.autobatch
def scaled(x, /, by=LIMIT + 1, *, pair=(LIMIT, 1), plus=-1):
    return x * by + pair[0] + plus


@pcbatch.autobatch
def structures(a, b):
    state = {"a": a, "b": [b, (1, None)]}
    while state["a"] > 0:
        state = {**state, "a": scaled(state["a"], 1, pair=(-3, 0)), "c": ()}
        state = {"a": state["a"], "b": [state["b"][0] + scaled(b), state["b"][1]]}
    return state["b"][0]
