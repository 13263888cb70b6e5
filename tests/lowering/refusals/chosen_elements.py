"""A list of the elements that a lane leaves in has no one length."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def chosen_elements(v):
    return [a for a in v if a > 1.5]


ARGUMENTS = {"chosen_elements": (np.array([[1.0, 2.0], [3.0, 4.0]], np.float32),)}
