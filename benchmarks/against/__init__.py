"""Cheap, control-heavy tasks in pcbatch and in what people use for them today, side by side."""
