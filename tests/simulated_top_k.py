"""Simulations of the ways to choose the top k with noise, by the noise of the mechanisms."""

from functools import partial

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.analysis.top_k import simulate_once, simulate_rounds


def one_shot(scores, k, rate, runs, generator, waits=True):
    return simulate_once(scores, k, rate, runs, partial(PermuteAndFlip.noise, generator))


def noisy_counts(scores, k, rate, runs, generator):
    return simulate_once(scores, k, rate, runs, partial(ReportNoisyMax.noise, generator))


def peeling(scores, k, rate, runs, generator, waits):
    if waits:
        return simulate_rounds(scores, k, rate, runs, partial(PermuteAndFlip.noise, generator))
    return simulate_once(scores, k, rate, runs, partial(ExponentialMechanism.noise, generator))
