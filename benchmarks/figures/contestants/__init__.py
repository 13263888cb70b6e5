"""The samplers that are compared, each a small script run by an interpreter that has its library; see `worker.py`."""
