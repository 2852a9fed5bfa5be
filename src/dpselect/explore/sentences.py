"""The texts of the page: its results in plain words, and its settings as code that computes the same numbers.

Numbers in sentences are rounded to the safe side: errors up, probabilities down.
"""

import csv
import io
import shlex
from decimal import Decimal
from textwrap import fill
from typing import Any

from dpselect._numbers import DOWN, NEAREST, UP, exact_text, shown
from dpselect.explore.score_set import ScoreSet
from dpselect.explore.settings import Settings
from dpselect.mechanisms import MECHANISMS

_ALMOST = 0.9999
_LITTLE = 0.001
_EPSILON = "\N{GREEK SMALL LETTER EPSILON}"


def sentence(settings: Settings, unit: str, figures: dict[str, Any], differ: bool) -> str:
    """What to expect from the chosen mechanism."""
    if not differ:
        return f"All candidates have the same score, so every choice is a best one, at every {_EPSILON}."
    unit = unit or "points"
    start = f"With {_EPSILON} = {exact_text(settings.epsilon)} you get the best candidate"
    mean = figures["expected_error"]
    lost, most = shown(mean, UP, 2) if mean >= _LITTLE else f"less than {_LITTLE}", shown(figures["error_95"], UP, 4)
    return (
        f"{start} with probability {probability(figures['best'])} and lose {lost} {unit} on average; "
        f"95 times in 100 at most {most}."
    )


def probability(value: float) -> str:
    """A probability rounded down to two digits; near one, to as many as distinguish it from one.

    >>> probability(0.8389), probability(0.99996), probability(0.000123)
    ('0.83', 'above 0.9999', 'below 0.001')
    """
    if value < _LITTLE:
        return f"below {_LITTLE}"
    if value > _ALMOST:
        return f"above {_ALMOST}"
    return shown(value, DOWN, 2 if value < 0.99 else 4)


def factor_sentence(settings: Settings, factor: float | None) -> str:
    """What the exponential mechanism would need."""
    if factor is None:
        return "Permute-and-flip and the exponential mechanism do not differ measurably here."
    budget = f"{_EPSILON} = {shown(float(settings.epsilon) * factor, NEAREST, 3)}"
    return (
        f"The exponential mechanism (EM) would need {shown(factor, NEAREST, 3)} times the budget ({budget}) "
        "for the average error of permute-and-flip."
    )


_WIDTH = 72
_END = "END_OF_SCORES"


def python_code(shown: ScoreSet, settings: Settings) -> str:
    """A program that prints the expected error, the 95 % error, and the probabilities."""
    made = MECHANISMS[settings.mechanism]
    kind, home = made.__name__, "dpselect" if made.__module__.startswith("dpselect.") else made.__module__
    exact = [repr(score) for score in shown.exact]
    decimals = "from decimal import Decimal\n\n" if any(isinstance(score, Decimal) for score in shown.exact) else ""
    numbers = fill(", ".join(exact), _WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    parameters = [repr(exact_text(settings.epsilon)), f"sensitivity={exact_text(settings.claim.sensitivity)!r}"]
    parameters += ["monotonic=True"] * settings.claim.monotonic
    return f"""{decimals}from {home} import {kind}
from dpselect.analysis import error_quantile, expected_error

scores = [
{numbers}
]
mechanism = {kind}({", ".join(parameters)})
print("expected error:", expected_error(mechanism, scores))
print("95 times in 100 at most:", error_quantile(mechanism, scores, 0.95))
print("probabilities:", mechanism.pmf(scores).tolist())

# To release an answer from private scores, with randomness from the operating system:
# mechanism.select(private_scores)
"""


def command_line(shown: ScoreSet, settings: Settings) -> str:
    """Commands for a shell: the errors of all mechanisms, and one private selection."""
    if shown.file is None:
        file, start = "scores.csv", f"cat > scores.csv <<'{_END}'\n{scores_csv(shown)}{_END}\n"
    else:
        file, start = shown.file, ""
    options = f"--epsilon {exact_text(settings.epsilon)} --sensitivity {exact_text(settings.claim.sensitivity)}"
    options += " --monotonic" * settings.claim.monotonic
    return (
        f"{start}dpselect compare {file} {options}\ndpselect select {file} {options} --mechanism {settings.mechanism}\n"
    )


def scores_csv(shown: ScoreSet) -> str:
    """The scores as a file that the commands read."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    if shown.given_labels is None:
        writer.writerow(["score"])
        writer.writerows([str(score)] for score in shown.exact)
    else:
        writer.writerow(["label", "score"])
        writer.writerows(zip(shown.given_labels, map(str, shown.exact), strict=True))
    return lines.getvalue()


def file_words(path: str, column: str | None, label: str | None) -> str:
    """The file and its options as shell arguments."""
    words = [path if not path.startswith("-") else f"./{path}"]
    words += [] if column is None else [f"--column={column}"]
    words += [] if label is None else [f"--label={label}"]
    return shlex.join(words)
