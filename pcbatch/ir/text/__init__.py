"""The IR and its types as text, printed; types and expressions are parsed back."""
