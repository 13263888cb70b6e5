"""Step sizes and metrics, learned during warm-up."""
