"""The native form: a whole program as one native function, in which lanes run one after another.

Where a row is cheap, lockstep only costs: masks, guards, scatters, kernels of a microsecond each, and lanes that wait.
Here a lane runs alone, as scalar code with stacks of its own, and leaves them to the next. Nothing is computed for
others, and a lane's bits do not depend on any other lane.

A program that has expensive rows, too, is mixed: these stay in lockstep, and a region takes lanes from one to the next.
"""
