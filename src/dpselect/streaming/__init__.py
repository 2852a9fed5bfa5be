"""Selection from streams and parts: summaries that merge exactly."""
