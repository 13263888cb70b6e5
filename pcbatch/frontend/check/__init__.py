"""The language of batched functions: the allow-list of syntax, and sources that keep to it."""
