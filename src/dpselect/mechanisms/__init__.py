"""The selection mechanisms: one algorithm a file."""
