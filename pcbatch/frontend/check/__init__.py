"""What a batched function may say: the allow-list of syntax, and sources that keep to it."""
