"""Compare permute-and-flip with the exponential mechanism inside larger mechanisms, and the methods for the top k.

The larger mechanisms are MWEM, peeled top-k and stepwise feature selection. They are compared at equal pure epsilon,
equal (epsilon, delta) and equal zCDP: study.csv. Which one wins for how many selections: winners.csv. The methods for
the top k are set, margin, one-shot, peel and noisy-counts: top_k.csv. Also writes figures (PNG, PDF). Takes about four
minutes. Needs the extra 'paper' (matplotlib and pooch).
"""

import argparse
import sys

from benchmarks.studies.study import Study, study, top_k_summaries
from dpselect._numbers import NEAREST, shown
from dpselect.cli.commands import print_figures, print_line, print_paragraph
from dpselect.errors import DPSelectError


def main() -> None:
    """Run the studies, and print their summaries."""
    options = _options()
    try:
        made = study(options.out, options.data, runs=options.runs, seed=options.seed)
    except DPSelectError as error:
        sys.exit(f"error: {error}")
    print_study(made)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies", description=__doc__)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write to; created if missing")
    parser.add_argument("--data", metavar="DIR", help="DPBench files; default: $DPSELECT_DPBENCH, or download")
    parser.add_argument("--runs", type=int, default=100, metavar="R", help="runs of each mechanism on each case")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the same seed gives the same numbers")
    return parser.parse_args()


def print_study(made: Study) -> None:
    """Print the summaries."""
    print_paragraph(
        f"{made.runs:,} runs per case.",
        "A mechanism counts as better if the 95 % interval of the difference excludes zero. By chance alone, this"
        " happens in one case of twenty.",
    )
    columns = ("cases", "permute-and-flip\nbetter", "exponential\nbetter", "median ratio of\nerrors, exp. / p&f")
    rows = [
        (
            one.study,
            one.currency,
            *map(str, (one.cases, one.permute_and_flip, one.exponential)),
            shown(one.ratio, NEAREST),
        )
        for one in made.summaries
    ]
    print_figures(["study", "equal", *columns], rows)
    if made.top_k:
        print_paragraph("The methods for the top k:", "errors in people per item; below 0.001 they count as equal.")
        methods = [
            (one.people, one.method, f"{one.cases}", f"{one.best}", shown(one.median_error, NEAREST))
            for one in top_k_summaries(made.top_k)
        ]
        print_figures(["", "method", "cases", "smallest\nerror", "median\nerror"], methods)
    if made.why_missing:
        print_paragraph("Missing:", f"the cases that need data: {made.why_missing}. Give --data DIR.")
    print_line(f"All numbers: {made.folder}", "bold")


if __name__ == "__main__":
    main()
