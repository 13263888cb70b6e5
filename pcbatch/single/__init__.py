"""One example of a batched function, by the user's own function, unchanged, on values that stand for its arrays."""
