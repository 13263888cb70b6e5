"""The IR and its types as text, printed and parsed back."""
