"""Hypothesis without deadlines: speed is measured in `make bench`, never in a test."""

from hypothesis import settings

settings.register_profile("dpselect", deadline=None)
settings.load_profile("dpselect")
