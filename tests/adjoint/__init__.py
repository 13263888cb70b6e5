"""Gradients through batched calls."""
