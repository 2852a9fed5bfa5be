"""The law of the waiting sampler, followed event by event in Fractions.

After a wait that is exponential of rate C, the clock's x = exp(-y) is multiplied by V, whose powers have the means
C / (C + k). So a sum that is collected from event to event is a power series in the x at which the clock stands; its
coefficients are rational, and follow one another. The series of a race converges where p < 1/2 or p = 1.
"""

from collections.abc import Sequence
from fractions import Fraction

TERMS = 36
Series = list[Fraction]


def means(raw: Fraction) -> Series:
    """E[V ** k] for raw events at this rate."""
    return [raw / (raw + k) for k in range(TERMS)]


def turns(own: Fraction) -> Series:
    """The mean number of turns of a race at x: 1 / (1 - p (1 - x))."""
    return [(-own) ** k / (1 - own) ** (k + 1) for k in range(TERMS)]


def acceptance(own: Fraction) -> Series:
    """The probability to accept at x: one for the best, x / (1 - p (1 - x)) for others."""
    if own == 1:
        return [Fraction(1)] + [Fraction(0)] * (TERMS - 1)
    return [Fraction(0), *turns(own)[:-1]]


def collected(coins: Sequence[Fraction], raw: Fraction, reward: Series) -> Fraction:
    """The mean of the rewards of all raw events up to the accepted one, of a clock that starts at y = 0 and runs on."""
    wait = means(raw)
    accepted = [[own / raw * a for a in acceptance(own)] for own in coins]
    go_on = [-sum(column, Fraction(0)) for column in zip(*accepted, strict=True)]
    go_on[0] += 1  # nothing was accepted, or it was no event
    series: Series = []
    for k in range(TERMS):
        later = sum((go_on[j] * series[k - j] for j in range(1, k + 1)), Fraction(0))
        series.append(wait[k] * (reward[k] + later) / (1 - wait[k] * go_on[0]))
    return sum(series, Fraction(0))


def waiting_pmf(coins: Sequence[Fraction], raw: Fraction) -> list[Fraction]:
    """Raw events at a rate of at least the sum of the coins: candidate r with probability p_r / raw, or no event."""
    return [collected(coins, raw, [own / raw * a for a in acceptance(own)]) for own in coins]


def mean_events(coins: Sequence[Fraction], raw: Fraction) -> Fraction:
    return collected(coins, raw, [Fraction(1)] + [Fraction(0)] * (TERMS - 1))


def mean_turns(coins: Sequence[Fraction], raw: Fraction, own: Fraction) -> Fraction:
    """The turns of all races of one candidate."""
    return collected(coins, raw, [own / raw * t for t in turns(own)])


# Wrong on purpose.


def reset_pmf(coins: Sequence[Fraction], raw: Fraction) -> list[Fraction]:
    """The clock starts anew at each raw event, so that y is the last wait only."""
    wait = means(raw)
    weights = [own / raw * sum(a * b for a, b in zip(acceptance(own), wait, strict=True)) for own in coins]
    return [weight / sum(weights) for weight in weights]


def fresh_pmf(coins: Sequence[Fraction], raw: Fraction) -> list[Fraction]:
    """The last wait is drawn anew in each turn of a race; the clock runs on from the last one drawn."""
    wait = means(raw)
    rivals = [s for s, own in enumerate(coins) if own < 1]
    passing = 1 - sum(coins) / raw + sum(coins[s] / raw for s in rivals)
    pmf = []
    for winner, share in enumerate(coins):
        series = [Fraction(0)]  # that the winner is accepted, from the clock's x on; one element ahead
        races = {s: [Fraction(0)] for s in rivals}  # the same, from a turn of a race with s on
        for k in range(TERMS):
            fixed = {
                s: (wait[1] * ((k == 1 and s == winner) - coins[s] * races[s][-1])) / (1 - coins[s])
                - wait[k] * series[-1]
                for s in rivals
            }
            gained = sum((coins[s] / raw * fixed[s] for s in rivals), Fraction(0))
            gained += share / raw if share == 1 and k == 0 else 0
            series.append(gained / (1 - wait[k] * passing))
            for s in rivals:
                races[s].append(fixed[s] + wait[k] * series[-1])
        pmf.append(sum(series, Fraction(0)))
    return pmf
