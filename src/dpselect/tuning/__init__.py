"""The best of many private runs, such as a model trained with each of many settings, as one private release.

Reporting the epsilon of the one run that is kept would be wrong: the choice depends on the results of all runs.
With a random and secret number of runs, the whole procedure costs less than two or three times that epsilon.
"""

from dpselect.accounting.composition import best_event
from dpselect.accounting.run_counts import NegativeBinomial, Poisson, Repeated, Repeats, geometric, logarithmic
from dpselect.tuning.best import Tuned, tune

__all__ = [
    "NegativeBinomial",
    "Poisson",
    "Repeated",
    "Repeats",
    "Tuned",
    "best_event",
    "geometric",
    "logarithmic",
    "tune",
]
