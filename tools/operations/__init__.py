"""`docs/operations.md`: what becomes of TensorFlow's operations in a batched function, found by trying each."""
