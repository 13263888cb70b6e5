"""The programs that are counted, by name, as the page calls them: nothing here needs TensorFlow."""

TITLES = {
    "sampler-64": "sampler, 1,000 x 25, 64 chains",
    "sampler-1024": "sampler, 1,000 x 25, 1,024 chains",
    "fibonacci": "Fibonacci of 0 to 15, 10,000 lanes",
    "sort": "insertion sort of 32 numbers, 4,096 lanes",
    "tree": "TreeLSTM of 128 cells, 64 trees",
    "step": "its training step",
}

GRADIENTS = {"sampler-64": "gradient-64", "sampler-1024": "gradient-1024"}
"""The programs of the gradients that a trip computes, by the program; see `programs`."""
