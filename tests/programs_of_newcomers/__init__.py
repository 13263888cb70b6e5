"""Programs that were written from the pages of the documentation alone; `test_newcomers.py` runs them."""
