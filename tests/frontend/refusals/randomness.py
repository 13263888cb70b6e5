import random
import time
from random import gauss as draw

import numpy as np
import tensorflow as tf
from pcbatch import autobatch

from pcbatch import random as good


@autobatch
def f(key, x):
    a = random.random()
    b = np.random.normal(0, 1)
    c = tf.random.normal([3])
    d = tf.random.stateless_normal([3], key)
    e = tf.nn.dropout(x, 0.5)
    g = draw(0, 1)
    return a, b, c, d, e, g, time.time(), good.normal(key)
