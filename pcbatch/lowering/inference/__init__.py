"""Type and shape inference."""
