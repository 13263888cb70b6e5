"""The allow-list of syntax."""
