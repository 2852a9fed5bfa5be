"""What commands refuse: one line on standard error, the exit code 2, no charge, no file, and no field of a file.

What the records refuse is tested with them; here is the message of each refusal that only a command can give, and some
of the others. Files of scores are in `test_scores_file`.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

from dpselect import Ledger
from tests.cli.conftest import Run

PRIVATE = "48151623"
CHARGED = {"mode", "top", "values", "median", "quantile", "quantiles", "maximum", "select"}
THEIRS = """
import numpy

CALLS = []
NEIGHBOURS = {"one left": ([30, 40, 50], [30, 40])}


def best(scores):
    return numpy.argmax(scores)


class Uniform:
    sensitivity, monotonic = 1, False

    def pmf(self, scores):
        return [1 / len(scores)] * len(scores)
"""

MODE = "mode visits.csv --column code --epsilon 1"
LISTED = f"{MODE} --candidates a,b"
TOP = "top visits.csv --column ward --candidates 1,2,3 --epsilon 1"
RANGE = "--column cost --lower 0 --upper 9 --epsilon 1"
QUANTILES = f"quantiles visits.csv {RANGE} --levels"
PLAN = "plan mode --candidates 9"
PLAN_SELECT = "plan select --candidates 10 --epsilon 1"
SELECT = "select none.csv --epsilon 1"
SEVERAL = "select counts.csv --epsilon 1 -k"
COMPARE = "compare none.csv --epsilon"
METHODS = "compare counts.csv --epsilon 0.1 -k"
AUDIT = "audit --epsilon 1 --runs 100"
OURS = f"{AUDIT} --mechanism exponential"
YOURS = f"{AUDIT} --callable theirs"
CHECK = "check visits.csv --column cost --lower 0 --upper 9"
OF_COUNTS = "cannot be given with -k: scores must then be numbers of people"

# The message, or a part of it, by the command. Options are refused before a file is read: none.csv does not exist.
REFUSED = {
    # the table, its ledger and its groups
    "mode missing.csv --column ward --candidates 1 --epsilon 1": "there is no such file",
    f"{LISTED} --column Code": "column 'Code' is not in the table, which has 'who'",
    f"{LISTED} --person patient": "person: the column 'patient' is not in the table",
    f"{LISTED} --request-id x": "--request-id needs a ledger",
    f"{LISTED} --budget 1": "--budget needs a ledger: name its file with --ledger",
    f"{LISTED} --dataset x": "--dataset needs a ledger",
    f"{LISTED} --ledger no.ledger": "give --budget to create it",
    f"{LISTED} --max-groups 0": "--max-groups must be > 0",
    f"{LISTED} --group-by ward": "find the groups of a column with --groups found:0.5,1e-9",
    f"{LISTED} --groups 1": "--group-by and --groups belong together",
    f"{LISTED} --group-by who,code --groups 1,2": "--group-by names one column: repeat it",
    f"{LISTED} --group-by ward --groups 1-2": "--groups 1-2 is one group, not a range: list all groups, such as 1,2,3",
    f"{LISTED} --group-by ward --groups found:1": "found:0.5,1e-9",
    f"{LISTED} --group-by ward --groups found:1,1e-9 --group-by who --groups 1": "is for one column",
    f"{LISTED} --ledger new.ledger --budget zcdp:much": "rho must be a number",
    "mode latin.csv --column x --candidates 1,2 --epsilon 1": "save it as CSV in UTF-8",
    # lists and rules
    MODE: "give --candidates, the public list of possible answers",
    f"{MODE} --candidates ./codes_typo.txt": "no file './codes_typo.txt'",
    f"{MODE} --candidates a,a": "candidates must be different values",
    f"{MODE} --candidates visits.csv": "--candidates is a file of the table itself",
    f"{LISTED} --group-by ward --groups visits.csv": "--groups is a file of the table itself",
    "mode parts --column code --candidates parts/a.parquet --epsilon 1": "--candidates is a file of the table itself",
    f"{LISTED} --other a": "other must not be one of the candidates, but 'a' is listed",
    f"{LISTED} --every text:3": "--candidates and --every exclude each other: give a list or a rule",
    f"{LISTED} --delta 1e-9": "leave out either --delta or --candidates",
    f"{MODE} --every words": "kind must be one of int8",
    f"{MODE} --every text": "or --every text:8",
    f"{MODE} --every text:many": "max_bytes must be a number",
    f"{MODE} --every integer:0-9": "or --every integer:0..999",
    f"{MODE} --every decimal:9": "or --every decimal:9:2",
    f"{MODE} --every int64:0..9": "leave it out, or write every('integer'",
    f"{MODE} --every text:3 --other else": "other is for values that are not on a list",
    "values visits.csv --column code --epsilon 1": "values are found in the data, which needs --delta",
    # numbers
    f"{LISTED} --epsilon 0": "epsilon must be > 0",
    f"{LISTED} --epsilon 0,1": "'0,1': write 0.1 with a decimal point",
    f"{LISTED} --rho 1": "give exactly one of --epsilon and --rho",
    "mode visits.csv --column code --candidates a,b": "give exactly one of --epsilon and --rho",
    f"{TOP} -k 0": "k must be > 0",
    f"{TOP} -k 2:1": "k must be a pair (lo, hi) with 1 <= lo <= hi <= 2",
    f"{TOP} -k 1:2:3": "k must be a number or an interval LO:HI, got '1:2:3'",
    f"{TOP} -k 1:ten": "k must be a number, got the text 'ten': write it as 10, 0.1, 1e-3 or 1/3",
    f"{TOP} -k 4": "k must be from 1 to the number of candidates",
    f"{TOP} -k 2 --max-values 1/2": "--max-values must be a whole number from 1",
    f"{TOP} -k 2 --method best": "method must be one of auto, set, margin, one-shot, peel, noisy-counts",
    "top visits.csv -k 2 --column code --epsilon 8 --delta 1e-6 --method set --max-values 1": "method must be auto or",
    f"quantile visits.csv {RANGE} -q 90%": "got '90%': give for example 0.9",
    f"{QUANTILES} tenths": "levels must be a list of numbers such as",
    f"{QUANTILES} ,": "level must be a number between 0 and 1, got ''",
    f"{QUANTILES} deciles --people 9": "--people is for the bars of a plot",
    f"{QUANTILES} deciles --plot figure.png --people 0": "people must be > 0",
    f"{QUANTILES} 0.5,2 --plot figure.png": "level must be between 0 and 1",
    f"{QUANTILES} deciles --plot figure.bmp": "--plot must end in .png, .svg, .pdf: got 'figure.bmp'",
    f"{QUANTILES} deciles --plot no/such/a.png": "--plot 'no/such/a.png': there is no such folder",
    f"maximum visits.csv {RANGE} --level most": "level must be a number between 0 and 1",
    # plans
    "plan mode --epsilon 1": "give one of --candidates (a list), --every (a rule) and --delta (values are found in",
    f"{PLAN} --delta 1e-9 --epsilon 1": "not --candidates and --delta",
    "plan top -k 3 --every int64 --delta 1e-9 --epsilon 1": "not --every and --delta",
    "plan mode --delta 1e-9 --error 3": "--error needs --candidates",
    "plan top -k 3 --delta 1e-9 --method set --epsilon 1": "--method needs --candidates",
    PLAN: "give exactly one of --epsilon, --rho and --error",
    f"{PLAN} --budget 1,2,3,4": "budget must have a form such as 1, 10,cap:0.1",
    f"{PLAN} --budget 1 --questions 1/2": "questions must be a whole number from 1 to",
    f"{PLAN} --epsilon 1 --groups few": "groups must be a number, a list A,B,C or an existing file",
    f"{PLAN} --epsilon 1 --mechanism noisy-max": "mechanism must be one",
    "plan mode --candidates 1 --epsilon 1": "candidates must be a whole number from 2",
    "plan mode --candidates 1e16 --epsilon 1": "candidates must be a whole number from 1 to",
    "plan mode --candidates latin.csv --epsilon 1": "give a UTF-8 text file with one value per line",
    "plan select --epsilon 1": "give --candidates, the number of candidates, or public scores",
    f"{PLAN_SELECT} --sensitivity 1e400": "sensitivity must be between",
    f"{PLAN_SELECT} --column a": "--column and --label name columns of a file: give --scores too",
    "plan select --epsilon 1 --scores /no/such.csv": "/no/such.csv: there is no such file",
    "plan select --epsilon 1 --scores bad.csv": "bad.csv: the score on line 2 is not a number",
    "plan select --epsilon 1 --scores one.csv": "candidates must be a whole number from 2",
    # one of some scores
    SELECT: "none.csv: there is no such file: check the path",
    "select none.csv --epsilon much": "epsilon must be a number",
    "select none.csv": "give exactly one of --epsilon and --rho",
    f"{SELECT} --rho 1": "give exactly one of --epsilon and --rho",
    f"{SELECT} --sensitivity 0": "sensitivity must be > 0",
    f"{SELECT} --label a": "--label needs --column",
    f"{SELECT} --column a --label a": "--label and --column must name different columns",
    f"{SELECT} --budget 1": "--budget needs a ledger: name its file with --ledger",
    f"{SELECT} --request-id r": "--request-id needs a ledger",
    f"{SELECT} --dataset d": "--dataset needs a ledger",
    f"{SELECT} --what d": "--what needs a ledger",
    f"{SELECT} --ledger no.ledger": "there is no ledger no.ledger: give --budget to create",
    f"{SELECT} --mechanism best": "mechanism must be one of auto, permute-and-flip",
    # several of some counts
    f"{SEVERAL} 3 --sensitivity 2": f"--sensitivity {OF_COUNTS}",
    f"{SEVERAL} 3 --score-range 2": f"--score-range {OF_COUNTS}",
    f"{SELECT} --ordered": "--ordered is for several candidates: give -k too",
    f"{SELECT} --method set": "--method is for several candidates: give -k too",
    f"{SELECT} --max-values 1": "--max-values is for several candidates: give -k too",
    f"{SEVERAL} 0": "k must be > 0",
    f"{SEVERAL} 7": "k must be from 1 to the number of candidates, 6, got 7",
    f"{SEVERAL} 1.5": "k must be a whole number from 1",
    f"{SEVERAL} 4:3": "k must be a pair (lo, hi) with 1 <= lo <= hi <= 5",
    f"{SEVERAL} 2 --method set": "method set needs --max-values",
    f"{SEVERAL} 2 --method set --max-values 1 --ordered": "method set has no order to return",
    f"{SEVERAL} 2 --method set --max-values 1 --mechanism noisy-max": "noisy-max cannot draw with method set",
    f"{SEVERAL} 2 --max-values 1e10": "--max-values must be a whole number from 1 to 1,000,000,000",
    "select halves.csv --epsilon 1 -k 2 --method margin": "scores must be counts for the margin",
    # comparisons
    f"{COMPARE} 1:0.1": "epsilon must be a range A:B from a smaller to a larger number",
    f"{COMPARE} 1:1": "epsilon must be a range A:B from a smaller to a larger number",
    f"{COMPARE} 0:1": "epsilon must be > 0",
    f"{COMPARE} 0.1,,1": "epsilon must be a number",
    f"{COMPARE} 1e4000": "epsilon must be between 1e-50 and 1e50",
    f"{COMPARE} 0.1,1 --points 9": "--points needs a range of epsilons",
    f"{COMPARE} 0.1:1 --points 1": "points must be a whole number from 2 to 10,000",
    f"{COMPARE} 1 --plot a.jpg": "--plot must end in .png, .svg, .pdf: got 'a.jpg'",
    f"{COMPARE} 1 --plot /no/dir/a.png": "--plot '/no/dir/a.png': there is no such folder",
    f"{COMPARE} 1 --label a": "--label needs --column",
    f"{COMPARE} 1 --max-values 2": "--max-values needs -k",
    f"{COMPARE} 1 --ordered": "--ordered needs -k",
    f"{COMPARE} 1 --neighbours replace": "--neighbours needs -k",
    f"{COMPARE} 1 --runs 20": "--runs needs -k",
    f"{COMPARE} 1 --seed 2": "--seed needs -k",
    "compare counts.csv --epsilon 1 --plot folder.png": "--plot 'folder.png': the file cannot be written (",
    "compare far.csv --epsilon 1": "far.csv: the scores differ by more than a float can hold",
    "compare apart.csv --epsilon 1": "apart.csv: the scores differ by more than a float can hold",
    f"{METHODS} 7": "k must be from 1 to the number of candidates, 6, got 7",
    f"{METHODS} few": "k must be a number",
    f"{METHODS} 1:2:3": "k must be a number or an interval LO:HI",
    f"{METHODS} 4:2": "k must be a pair",
    f"{METHODS} 2 --sensitivity 2": "--sensitivity is not for -k",
    f"{METHODS} 2 --monotonic": "--monotonic is not for -k",
    f"{METHODS} 2 --score-range 2": "--score-range is not for -k",
    f"{METHODS} 2 --runs 1": "runs must be a whole number from 2",
    f"{METHODS} 2 --max-values 0": "--max-values must be > 0",
    f"{METHODS} 2 --neighbours friends": "neighbours must be",
    # score ranges, in every command that takes them
    **{
        f"{command} {options}": message
        for command in (SELECT, PLAN_SELECT, f"{COMPARE} 1", OURS)
        for options, message in (
            ("--score-range 0", "--score-range must be > 0"),
            ("--score-range 1 --sensitivity 1", "give either --score-range"),
            ("--score-range 1 --monotonic", "give either --score-range"),
        )
    },
    # audits
    AUDIT: "give either --mechanism or --callable MODULE:NAME, and not both",
    f"{OURS} --callable theirs:best": "give either --mechanism or --callable MODULE:NAME, and not both",
    f"{AUDIT} --mechanism best": "--mechanism must be one of permute-and-flip, exponential, noisy-max, got 'best'",
    f"{OURS} --epsilon 0": "epsilon must be > 0",
    f"{OURS} --epsilon 1e60": "epsilon must be between",
    f"{OURS} --sensitivity x": "sensitivity must be a number",
    f"{OURS} --runs 10": "runs must be a whole number from 100",
    f"{OURS} --false-alarm 2": "--false-alarm must be",
    f"{AUDIT} --callable no_such_module_here:f": "'no_such_module_here' cannot be imported (ModuleNotFoundError)",
    YOURS: "--callable must be MODULE:NAME, got 'theirs'",
    f"{YOURS}:nothing": "--callable: the module 'theirs' has no 'nothing'",
    f"{YOURS}:CALLS": "",
    f"{YOURS}:best --rows": "--rows needs --mechanism",
    f"{YOURS}:best --pmf": "",
    f"{OURS} --inputs theirs:NEIGHBOURS": "--inputs needs --callable: leave out --mechanism",
    f"{YOURS}:best --inputs theirs:NEIGHBOURS --sensitivity 1": "--inputs needs --callable: leave out --mechanism",
    f"{YOURS}:Uniform --inputs theirs:NEIGHBOURS --pmf": "--inputs needs --callable: leave out --mechanism",
    f"{YOURS}:best --inputs theirs:nothing": "--inputs: the module 'theirs' has no 'nothing'",
    f"{YOURS}:best --inputs theirs:best": "inputs must be",
    # checks, which are free
    f"{CHECK} --ledger x.ledger": "leave --ledger out",
    f"{CHECK} --ledger x.ledger --budget 1": "leave --ledger out",
    f"{CHECK} --epsilon 1": "leave --epsilon out",
    f"{CHECK} --engine spark": "runs on this machine only",
    f"{CHECK} --candidates 1,2": "exclude each other",
    f"{CHECK} --candidates 1,2 --every text:3": "exclude each other",
    f"{CHECK} --group-by ward": "belong together",
    f"{CHECK} --group-by ward --groups found:1,1e-9": "costs epsilon",
    # figures and the page
    "paper --out report --points 1": "points must be a whole number from 2 to 10,000",
    "paper --out report --points few": "points must be a number",
    "paper --out report --data /no/such/folder": "data: '/no/such/folder' is not a folder",
    "paper --out report --data parts": "data: HEPTH.n4096.npy is not in",
    "explore --no-browser missing.csv": "missing.csv: there is no such file",
    "explore --no-browser bad.csv": "bad.csv: the score on line 2 is not a number",
    "explore --no-browser far.csv": "far.csv: the scores differ by more than a float can hold",
    "explore --no-browser --port 70000": "port must be a whole number from 1 to 65,535",
    "demo --save visits": "--save visits: the name of the file must end with .csv or .parquet",
    "demo --save visits.csv.gz": "must end with .csv or .parquet",
    "demo --save .csv": "must end with .csv or .parquet",
    # ledgers that are not there, and receipts
    **{
        f"ledger {name} no.ledger": "there is no ledger no.ledger: create one with a question, for example "
        for name in ("show", "verify", "export", "receipt")
    },
    "ledger show old.ledger --delta 1": "delta must be between 0 and 1",
    "ledger verify old.ledger --receipt none.json": "receipt none.json cannot be read: No such file",
    "ledger verify old.ledger --receipt theirs.py": "receipt must be the JSON",
    "ledger verify old.ledger --receipt latin.csv": "cannot be read: it is not text",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ninety people have I10, forty have E11, and one has Z99; files of scores; a module; and a ledger."""
    folder = tmp_path_factory.mktemp("refused")
    codes = ["I10"] * 90 + ["E11"] * 40 + ["Z99"]
    rows = {"who": range(131), "code": codes, "ward": [who % 2 for who in range(131)], "cost": [7] * 131}
    write_csv(pa.table(rows), folder / "visits.csv")
    for name, text in {
        "counts.csv": f"label,people\nrare,0\nthird,{PRIVATE}\nfirst,90000000\nsecond,60000000\nrare,1\nnone,0\n",
        "halves.csv": f"a,{PRIVATE}.5\nb,{PRIVATE}\nc,3\n",
        "bad.csv": f"a,1\nb,{PRIVATE}x\n",
        "one.csv": f"{PRIVATE}\n",
        "far.csv": f"1\n{PRIVATE}e400\n",
        "apart.csv": f"1.{PRIVATE}e308\n-1.{PRIVATE}e308\n",
        "theirs.py": THEIRS,
    }.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes(b"f\xe4lle\n1\n")
    for name in ("parts", "folder.png"):
        (folder / name).mkdir()
    pq.write_table(pa.table({"code": [PRIVATE]}), folder / "parts" / "a.parquet")
    Ledger(folder / "old.ledger", budget=1).spend("0.1", "question")
    return folder


@pytest.mark.parametrize("command", REFUSED)
def test_a_refusal_is_one_line_and_costs_nothing(
    run: Run, made: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    monkeypatch.syspath_prepend(made)
    before = set(made.rglob("*"))
    result = run(*command.split())
    assert (result.code, result.out) == (2, "")
    assert REFUSED[command] in result.err
    assert (result.err[:7], result.err.count("\n")) == ("error: ", 1)
    assert PRIVATE not in result.err
    if "ledger" not in command + REFUSED[command] and command.split(maxsplit=1)[0] in CHARGED:
        assert run(*command.split(), "--ledger", "new.ledger", "--budget", "9").code == 2
    for path in set(made.rglob("*")) - before - {made / "__pycache__"}:
        assert path.parent.name == "__pycache__" or Ledger(path).entries() == []
        path.unlink()


def test_no_ledger_is_made_for_an_option_that_cannot_be_read(
    run: Run, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    assert run(*f"{TOP} -k 1 --max-values 0 --ledger new.ledger --budget 1".split()).code == 2
    assert not Path("new.ledger").exists()


@pytest.mark.parametrize("options", ["--epsilon 1 mode", "--json mode", "--candidates 9"])
def test_options_before_the_name_of_a_question_are_refused(run: Run, options: str) -> None:
    result = run("plan", *options.split())
    assert (result.code, result.out) == (2, "")
    assert f"No such option: {options.split(maxsplit=1)[0]}" in result.err
