"""Permute-and-flip inside larger mechanisms, beside the exponential mechanism: the paper's second open question.

For research: selections are simulated in floats, from a seeded generator, on public or synthetic data.
`dpselect study --out DIR` is the way in; from Python it is `dpselect.research.studies.study.study`.
"""
