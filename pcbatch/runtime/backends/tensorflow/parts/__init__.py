"""The parts of the TensorFlow backend, cut as the protocol is."""
