"""Binomial(count, exp(-exponent)), exactly: count the coins U < p by comparing all the U with p bit by bit.

At each bit of p the coins that still agree with p split by fair bits: those with a 0 where p has a 1 are heads, those
with a 1 where p has a 0 are tails, the others go on. The fair split is a population count of random bits, so no float
takes part. Where p starts with many equal bits, those who share them form a sparse Bernoulli process, whose members
are found by their gaps: thinning many heads by a factor near one or near zero costs the few that change.
"""

from fractions import Fraction

from dpselect.sampling.bits import BitSource
from dpselect.sampling.enclosure import scaled_exp
from dpselect.sampling.geometric import successes

# How many equal bits are skipped at most: as many as leave a coin in about one of 2**_RARE cases, never above _DEPTH.
# Gaps of a sparser process would cost more to decide and save nothing, and so they fit 64 bits with room to spare: a
# gap is beyond 2**23 * 2**40 with probability exp(-2**23).
_RARE, _DEPTH = 6, 40
_BITS_AT_ONCE = 1 << 23
# Below this many equal bits, two random bits a coin are cheaper than gaps.
_SPARSE = 6


def fair_binomial(count: int, source: BitSource) -> int:
    """Binomial(count, 1/2)."""
    ones = sum(source.bits(_BITS_AT_ONCE).bit_count() for _ in range(count // _BITS_AT_ONCE))
    return ones + source.bits(count % _BITS_AT_ONCE).bit_count()


def binomial(count: int, exponent: Fraction, source: BitSource) -> int:
    """Binomial(count, exp(-exponent)) for a rational exponent >= 0."""
    if exponent == 0:
        return count
    heads, undecided, depth = _skip_equal_bits(count, exponent, source)
    while undecided:
        depth += 1
        zeros = fair_binomial(undecided, source)
        if scaled_exp(exponent, depth) & 1:
            heads += zeros
            undecided -= zeros
        else:
            undecided = zeros
    return heads


def _skip_equal_bits(count: int, exponent: Fraction, source: BitSource) -> tuple[int, int, int]:
    """Heads so far, coins that share the leading equal bits of p, and how many bits those are."""
    depth = min(count.bit_length() + _RARE, _DEPTH)
    start = scaled_exp(exponent, depth)
    near_one = bool(start >> (depth - 1))
    differing = start ^ ((1 << depth) - 1) if near_one else start
    equal = depth - differing.bit_length()
    if equal < _SPARSE or not count:
        return 0, count, 0
    alike = len(successes(count, equal, source))
    return (count - alike if near_one else 0), alike, equal
