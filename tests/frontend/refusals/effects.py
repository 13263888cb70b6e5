import logging
import time

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def printing(x):
    print(x)
    return x


@pcbatch.autobatch
def printing_tensors(x):
    tf.print(x)
    return x


def helper(x):
    logging.info("here")
    return x


@pcbatch.autobatch
def logging_in_a_helper(x):
    return helper(x) + 1


@pcbatch.autobatch
def checking(x):
    tf.debugging.assert_positive(x)
    return x


@pcbatch.autobatch
def opening(x):
    return x + len(open("file").read())


@pcbatch.autobatch
def asking(x):
    return x + float(input())


@pcbatch.autobatch
def timing(x):
    return x + time.perf_counter()


@pcbatch.autobatch
def calling_back(x):
    return tf.numpy_function(np.sin, [x], tf.float32)


@pcbatch.autobatch
def reading_numbers(x):
    return x.numpy() + 1


@pcbatch.autobatch
def evaluating(x):
    return eval("x")


@pcbatch.autobatch
def naming(x):
    return x + len(locals())


@pcbatch.autobatch
def hashing(x):
    return hash(x)


@pcbatch.autobatch
def identifying(x):
    return id(x)


X = (np.ones(2, np.float32),)
ARGUMENTS = {
    "printing": X,
    "printing_tensors": X,
    "logging_in_a_helper": X,
    "checking": X,
    "opening": X,
    "asking": X,
    "timing": X,
    "calling_back": X,
    "reading_numbers": X,
    "evaluating": X,
    "naming": X,
    "hashing": X,
    "identifying": X,
}
