"""Permute-and-flip compared with the exponential mechanism inside larger mechanisms: the paper's second open question.

The methods for the top k are compared with each other, too.

For research only: selections are simulated in floats with a seeded generator, on public or synthetic data.
Run `dpselect study --out DIR`, or call `dpselect.research.studies.study.study` from Python.
"""
