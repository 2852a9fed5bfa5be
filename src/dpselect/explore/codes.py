"""The scores of the page as code, and the files and options of commands."""

import csv
import io
import shlex
from decimal import Decimal
from textwrap import fill

from dpselect._numbers import exact_text
from dpselect.explore.score_set import ScoreSet
from dpselect.mechanisms import MechanismBase

_WIDTH = 72
_END = "END_OF_SCORES"


def scores_code(shown: ScoreSet, mechanism: MechanismBase) -> str:
    """A program that prints the expected error, the 95 % error, and the probabilities."""
    made = type(mechanism)
    kind, home = made.__name__, "dpselect" if made.__module__.startswith("dpselect.") else made.__module__
    imported = (
        f"from dpselect import {kind}, analysis"
        if home == "dpselect"
        else f"from {home} import {kind}\n\nfrom dpselect import analysis"
    )
    exact = [repr(score) for score in shown.exact]
    decimals = "from decimal import Decimal\n\n" if any(isinstance(score, Decimal) for score in shown.exact) else ""
    numbers = fill(", ".join(exact), _WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    claim = mechanism.claim
    parameters = [repr(exact_text(mechanism.epsilon)), f"sensitivity={exact_text(claim.sensitivity)!r}"]
    parameters += ["monotonic=True"] * claim.monotonic
    return f"""{decimals}{imported}

scores = [
{numbers}
]
mechanism = {kind}({", ".join(parameters)})
print("expected error:", analysis.expected_error(mechanism, scores))
print("95 times in 100 at most:", analysis.error_quantile(mechanism, scores, 0.95))
print("probabilities:", mechanism.pmf(scores).tolist())

# To release an answer from private scores, with randomness from the operating system:
# mechanism.select(private_scores)
"""


def scores_file(shown: ScoreSet) -> tuple[str, str]:
    """The file of the scores as a word of a shell, and lines that write it if it is not the reader's own."""
    if shown.file is not None:
        return shown.file, ""
    return "scores.csv", f"cat > scores.csv <<'{_END}'\n{scores_csv(shown)}{_END}\n"


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
