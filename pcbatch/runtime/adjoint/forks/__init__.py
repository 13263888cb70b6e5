"""Gradients through runs whose calls are forked: lanes of their own are undone as they have run."""
