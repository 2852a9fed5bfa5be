"""The options that several commands share."""

from typing import Annotated

import typer

# A flag has the metavar "": it takes no value, though newer versions of typer would show `<bool>`.
File = Annotated[str, typer.Argument(metavar="SCORES.csv", help="CSV file with the scores; - reads standard input.")]
Sensitivity = Annotated[
    str | None, typer.Option(metavar="D", help="How much one person can change any single score. Default: 1.")
]
Monotonic = Annotated[
    bool,
    typer.Option(
        "--monotonic", metavar="", help="One person moves all scores in the same direction, as in counts of people."
    ),
]
ScoreRange = Annotated[
    str | None,
    typer.Option(metavar="R", help="Instead of both: how much one person can change any difference of two scores."),
]
Column = Annotated[str | None, typer.Option(metavar="C", help="Name of the score column; the file needs a header.")]
Label = Annotated[str | None, typer.Option(metavar="L", help="Name of the label column, beside --column.")]
Epsilon = Annotated[
    str,
    typer.Option(metavar="E", help="Privacy of the answer, exactly as written: 0.1, 1e-3 or 1/3. Smaller is safer."),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print a JSON object, for programs.")]
Folder = Annotated[str, typer.Option("--out", metavar="DIR", help="The folder to write to; made if it is not there.")]
Benchmark = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder of the DPBench files; else $DPSELECT_DPBENCH, else they are fetched."),
]
