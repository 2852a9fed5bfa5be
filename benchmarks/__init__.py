"""The performance of dpselect beside NumPy, OpenDP and diffprivlib, measured here and now: `python -m benchmarks`."""
