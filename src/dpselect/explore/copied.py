"""The settings of the page as code: a Python program and commands that give the same numbers."""

import csv
import io
import shlex
from decimal import Decimal
from textwrap import fill

from dpselect.explore.score_set import ScoreSet
from dpselect.explore.settings import Settings
from dpselect.explore.words import plain
from dpselect.mechanisms.names import KINDS

_WIDTH = 72
_END = "END_OF_SCORES"


def python_code(shown: ScoreSet, settings: Settings) -> str:
    """A program that prints the expected error, the error of 95 in 100, and the probabilities."""
    kind = KINDS[settings.mechanism].__name__
    exact = [repr(score) for score in shown.exact]
    decimals = "from decimal import Decimal\n\n" if any(isinstance(score, Decimal) for score in shown.exact) else ""
    numbers = fill(", ".join(exact), _WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    parameters = [repr(plain(settings.epsilon)), f"sensitivity={plain(settings.claim.sensitivity)!r}"]
    parameters += ["monotonic=True"] * settings.claim.monotonic
    return f"""{decimals}from dpselect import {kind}
from dpselect.analysis import error_quantile, expected_error

scores = [
{numbers}
]
mechanism = {kind}({", ".join(parameters)})
print("expected error:", expected_error(mechanism, scores))
print("95 times in 100 at most:", error_quantile(mechanism, scores, 0.95))
print("probabilities:", mechanism.pmf(scores).tolist())

# To release an answer from private scores, with randomness of the operating system:
# mechanism.select(private_scores)
"""


def command_line(shown: ScoreSet, settings: Settings) -> str:
    """Commands for a shell: the errors of the three mechanisms, and one private selection."""
    if shown.file is None:
        file, start = "scores.csv", f"cat > scores.csv <<'{_END}'\n{scores_csv(shown)}{_END}\n"
    else:
        file, start = shown.file, ""
    options = f"--epsilon {plain(settings.epsilon)} --sensitivity {plain(settings.claim.sensitivity)}"
    options += " --monotonic" * settings.claim.monotonic
    return (
        f"{start}dpselect compare {file} {options}\n"
        f"dpselect select {file} {options} --mechanism {settings.mechanism.value}\n"
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
    """The file of the command line with its options, as a shell reads it."""
    words = [path if not path.startswith("-") else f"./{path}"]
    words += [] if column is None else [f"--column={column}"]
    words += [] if label is None else [f"--label={label}"]
    return shlex.join(words)
