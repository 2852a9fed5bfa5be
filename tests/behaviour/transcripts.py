"""What the command line prints, as readable files: `python -m tests.behaviour.transcripts` writes them again.

Each file of `transcripts/` holds commands with what they print and their exit codes. The tables are so large that every
answer is certain. Times, hashes and the folder are replaced by words, or left out.
"""

import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from dpselect.cli import main

FOLDER = Path(__file__).parent / "transcripts"
VISITS = "visits.csv --person patient"
CODES = "--column diagnosis --candidates I10,E11,J45,M54"
COST = "--column cost --lower 0 --upper 1000 --step 50"
WARDS = "--group-by ward --groups north,south"

TOPICS = {
    "help": ["--version", "--help", *[f"{name} --help" for name in (
        "check", "mode", "top", "values", "median", "quantile", "quantiles", "minimum", "maximum", "select", "compare",
        "explore", "paper", "audit", "demo", "plan", "plan mode", "plan top", "plan values", "plan median",
        "plan quantile", "plan quantiles", "plan minimum", "plan maximum", "plan select", "ledger", "ledger show",
        "ledger verify", "ledger receipt", "ledger export",
    )]],
    "questions": [
        f"mode {VISITS} {CODES} --epsilon 0.5",
        f"mode {VISITS} {CODES} --epsilon 0.5 --mechanism exponential --neighbours replace",
        f"mode {VISITS} --column diagnosis --candidates E11,J45 --other other --epsilon 0.5",
        f"mode {VISITS} --column diagnosis --every text:3 --epsilon 0.5",
        f"mode {VISITS} --column diagnosis --delta 1e-9 --epsilon 0.5",
        f"top {VISITS} -k 2 {CODES} --epsilon 1",
        f"top {VISITS} -k 2 {CODES} --epsilon 1 --method set --max-values 1",
        f"top {VISITS} -k 1:3 {CODES} --epsilon 1",
        f"top {VISITS} -k 2 --column diagnosis --delta 1e-9 --epsilon 1 --max-values 1",
        f"values {VISITS} --column diagnosis --epsilon 1 --delta 1e-9",
        f"median {VISITS} {COST} --epsilon 0.5",
        f"median {VISITS} {COST} --epsilon 0.5 --per-person rows --max-rows 2",
        f"quantile {VISITS} -q 0.95 {COST} --epsilon 0.5",
        f"quantiles {VISITS} --levels quartiles {COST} --epsilon 2",
        f"minimum {VISITS} {COST} --epsilon 1",
        f"maximum {VISITS} {COST} --epsilon 1",
        f"mode {VISITS} {CODES} {WARDS} --epsilon 1",
        f"median {VISITS} {COST} {WARDS} --epsilon 1",
        f"mode {VISITS} {CODES} --rho 0.1",
        f"mode {VISITS} --column diagnosis --delta 1e-12 --epsilon 0.001",
        f"mode {VISITS} {CODES} {WARDS} --max-groups 2 --epsilon 2",
        f"mode {VISITS} {CODES} {WARDS} --group-by diagnosis --groups I10,E11 --epsilon 1 --max-groups 2",
        f"mode {VISITS} {CODES} --group-by ward --groups found:1,1e-9 --epsilon 1",
        f"top {VISITS} -k 4 {CODES} --epsilon 1",
        f"top {VISITS} -k 2 {CODES} --epsilon 1 --ordered",
        f"top {VISITS} -k 2 {CODES} --epsilon 1 --method noisy-counts --max-values 1",
        f"top {VISITS} -k 2 --column diagnosis --candidates M54,E11,I10 {WARDS} --epsilon 2 --max-values 1",
        f"top {VISITS} -k 2 --column diagnosis --every text:3 --epsilon 2 --max-values 1",
        f"top {VISITS} -k 2 --column diagnosis --every text:3 --epsilon 2 --max-values 1 --ordered",
        f"top {VISITS} -k 2 --column diagnosis --candidates E11,J45 --other other --epsilon 1",
        f"values {VISITS} --column diagnosis --delta 1e-12 --epsilon 0.001",
        f"values {VISITS} --column diagnosis --epsilon 2 --delta 1e-9 --max-values 2",
        f"quantiles {VISITS} --levels 0.95,1/10,0.7 {COST} {WARDS} --epsilon 4",
        f"quantile {VISITS} -q 1/2 {COST} --range full --rho 0.5 --mechanism permute-and-flip",
        f"minimum {VISITS} {COST} --level 0.2 --epsilon 1",
        f"maximum {VISITS} {COST} --level 0.95 --epsilon 1 --per-person rows --max-rows 2",
        f"median {VISITS} --column cost --lower 0 --upper 1.500 --step 0.5 --epsilon 0.5",
    ],
    "questions as JSON": [
        f"mode {VISITS} {CODES} --epsilon 0.5 --json",
        f"top {VISITS} -k 2 {CODES} --epsilon 1 --json",
        f"values {VISITS} --column diagnosis --epsilon 1 --delta 1e-9 --json",
        f"quantiles {VISITS} --levels quartiles {COST} --epsilon 2 --json",
        f"median {VISITS} {COST} {WARDS} --epsilon 1 --json",
        f"mode {VISITS} --column diagnosis --delta 1e-12 --epsilon 0.001 --json",
        f"quantiles {VISITS} --levels 0.95,1/10 {COST} {WARDS} --epsilon 4 --json",
        f"maximum {VISITS} {COST} --level 0.95 --epsilon 1 --json",
    ],
    "checks": [
        f"check {VISITS} {CODES}",
        f"check {VISITS} {COST} --json",
        f"check {VISITS} {CODES} --group-by ward --groups north --json",
        f"check {VISITS} --column diagnosis --every text:2",
        f"check {VISITS} --column cost --range log",
    ],
    "plans": [
        "plan mode --candidates 30 --epsilon 0.1",
        "plan mode --candidates 30 --error 20 --groups 9 --max-groups 2 --neighbours replace",
        "plan top --candidates 30 -k 3 --epsilon 0.1",
        "plan values --epsilon 1 --delta 1e-9",
        "plan median --lower 0 --upper 50000 --budget zcdp:0.5 --questions 20",
        "plan quantiles --levels quartiles --lower 0 --upper 1000 --epsilon 1",
        "plan select --candidates 1000 --epsilon 0.5",
        "plan mode --candidates 30 --epsilon 0.1 --json",
        "plan mode --every int64 --epsilon 0.1",
        "plan mode --delta 1e-9 --epsilon 0.1 --groups A,B,C --groups 4 --max-groups 2",
        "plan mode --delta 1e-9 --max-values 1 --rho 0.05 --budget zcdp:0.5,1e-8 --questions 9 --json",
        "plan mode --candidates 30 --epsilon 1 --budget zcdp:0.5,1e-8 --questions 9 --mechanism permute-and-flip",
        "plan top --candidates 1000 -k 10 --max-values 1 --epsilon 0.1",
        "plan top --candidates 100 -k 5:15 --error 20",
        "plan top --candidates 100 -k 10 --max-values 2 --ordered --budget 1 --questions 4 --json",
        "plan top --candidates 30 -k 30 --budget 1",
        "plan top --delta 1e-6 -k 5 --rho 1 --max-values 1 --neighbours replace --mechanism exponential",
        "plan quantile -q 0.9 --lower 2020-01-01 --upper 2025-12-31 --epsilon 1 --max-rows 3",
        "plan quantiles --levels 0.1,1/2 --range log --rho 0.1 --json",
        "plan minimum --lower 0 --upper 9 --step 0.5 --error 20",
        "plan maximum --level 0.95 --epsilon 1",
        "plan select --candidates 1e6 --epsilon 1/3 --sensitivity 7.5 --monotonic --questions 4",
        "plan select --candidates 1000 --error 20 --score-range 1/2 --json",
        "plan select --scores scores.csv --epsilon 0.01 --questions 50 --delta 1e-6",
        "plan select --scores scores.csv --error 20 --candidates 700",
        "plan select --scores scores.csv --error 400 --monotonic --delta 1e-6 --json",
    ],
    "plans in words": [
        "plan top --candidates 30 -k 1 --epsilon 1 --mechanism exponential",
        "plan top --candidates 30 -k 29 --epsilon 1",
        "plan top --candidates 30 -k 28 --epsilon 1",
        "plan top --candidates 30 -k 10 --epsilon 1",
        "plan top --candidates 30 -k 10 --epsilon 1 --ordered",
        "plan top --candidates 30 -k 3 --epsilon 1 --ordered --max-values 1",
        "plan top --candidates 30 -k 3:8 --epsilon 1 --method margin --max-values 2",
        "plan top --candidates 30 -k 10 --rho 0.1",
        "plan top --candidates 30 -k 10 --rho 0.1 --max-values 1",
        "plan top --candidates 30 -k 10 --epsilon 1 --method noisy-counts --max-values 3",
        "plan top --candidates 30 -k 10 --epsilon 1 --method one-shot --mechanism exponential",
        "plan top --candidates 30 -k 3 --budget 1 --method peel --groups 12 --max-groups 2 --mechanism exponential",
        "plan top --candidates 30 -k 30 --rho 0.1",
        "plan top --delta 1e-9 -k 3 --epsilon 0.1 --groups 4 --max-values 2",
        "plan values --delta 1e-9 --epsilon 0.1 --budget 1",
        "plan mode --candidates 30 --epsilon 1 --budget 1",
        "plan mode --candidates 30 --epsilon 0.5 --budget 1,cap:0.1 --questions 3",
        "plan mode --candidates 30 --budget 1,1e-6",
        "plan quantiles --levels quartiles --lower 0 --upper 9 --groups 4 --max-groups 2 --epsilon 1",
        "plan quantile -q 1/3 --lower 3 --epsilon 1",
        "plan median --lower 5 --upper 5 --epsilon 1",
        "plan select --candidates 50 --budget 1,1e-6 --questions 3 --delta 1e-7 --json",
    ],
    "ledger": [
        f"mode {VISITS} {CODES} --epsilon 0.5 --ledger visits.ledger --budget 1 --request-id monday",
        f"mode {VISITS} {CODES} --epsilon 0.5 --ledger visits.ledger --request-id monday",
        f"median {VISITS} {COST} --epsilon 0.25 --ledger visits.ledger --json",
        f"median {VISITS} {COST} --epsilon 0.5 --ledger visits.ledger",
        f"mode visits.csv {CODES} --epsilon 0.1 --ledger visits.ledger",
        "ledger show visits.ledger",
        "ledger show visits.ledger --json",
        "ledger verify visits.ledger",
        "ledger receipt visits.ledger",
        "ledger export visits.ledger --format csv",
        f"values {VISITS} --column diagnosis --epsilon 0.2 --delta 1e-7 --ledger z.ledger --budget zcdp:0.5,1e-6",
        "ledger show z.ledger",
        "ledger verify missing.ledger",
    ],
    "scores": [
        "select scores.csv --epsilon 1",
        "select scores.csv --epsilon 1 --mechanism exponential --monotonic --json",
        "select scores.csv -k 2 --epsilon 2",
        "compare scores.csv --epsilon 0.01:1",
        "compare scores.csv --epsilon 0.1 --json",
        "audit --mechanism permute-and-flip --epsilon 1 --pmf",
    ],
    "problems": [
        f"check problems.csv {COST} --person patient",
        f"check problems.csv {COST} --person patient --show-values",
        f"check problems.csv {COST} --person patient --show-values --json",
        "check problems.csv --column diagnosis --candidates I10,E11 --json",
        "check problems.csv --column diagnosis --every text:9",
        "check problems.csv --column cost --step 1 --group-by ward --groups a,b --group-by diagnosis --groups I10,E11",
    ],
    "some scores": [
        "select scores.csv --epsilon 1 --mechanism noisy-max --sensitivity 1/3 --monotonic --json",
        "select scores.csv --epsilon 1 --score-range 1/2",
        "select scores.csv --epsilon 1 --score-range 1/2 --json",
        "select plain.csv --epsilon 1",
        "select plain.csv -k 2 --epsilon 1 --ordered",
        "select plain.csv -k 2 --epsilon 1 --max-values 1 --json",
        "select scores.csv -k 2 --epsilon 2 --monotonic",
        "select scores.csv -k 2 --epsilon 2 --max-values 1",
        "select scores.csv -k 2 --epsilon 2 --method set --max-values 2 --mechanism exponential",
        "select scores.csv -k 2 --epsilon 2 --method margin",
        "select scores.csv -k 1:3 --epsilon 2",
        "select scores.csv -k 2 --epsilon 2 --ordered",
        "select scores.csv -k 2 --epsilon 2 --ordered --max-values 1",
        "select scores.csv -k 2 --epsilon 2 --ordered --mechanism exponential",
        "select scores.csv -k 2 --epsilon 2 --method one-shot",
        "select scores.csv -k 2 --epsilon 2 --method peel --json",
        "select scores.csv -k 2 --epsilon 2 --method noisy-counts --max-values 3",
        "select scores.csv -k 4 --epsilon 1 --ledger all.ledger --budget 0.1",
        "ledger show all.ledger",
        "compare scores.csv --epsilon 0.01,0.3 --sensitivity 1/3 --monotonic",
        "compare scores.csv --epsilon 0.01:0.1 --points 3 --score-range 6 --json",
        "compare plain.csv --epsilon 1,2",
        "compare ties.csv --epsilon 1",
        "compare ties.csv --epsilon 1 --json",
    ],
    "budgets": [
        "select scores.csv --epsilon 0.6 --ledger s.ledger --budget 1 --dataset drinks --request-id a --monotonic",
        "select scores.csv --epsilon 0.6 --ledger s.ledger --dataset drinks --request-id a --monotonic",
        "select scores.csv --epsilon 0.6 --ledger s.ledger --dataset drinks",
        "select plain.csv --epsilon 0.1 --ledger s.ledger --dataset drinks --what drink --mechanism exponential",
        "select plain.csv -k 2 --epsilon 0.2 --ledger s.ledger --dataset drinks --method set --max-values 2",
        "select plain.csv -k 2 --epsilon 0.1 --ledger s.ledger --dataset tea --method margin --request-id a",
        "ledger show s.ledger --delta 1e-6",
        "ledger show s.ledger --delta 1e-6 --json",
        "ledger verify s.ledger --json",
        "ledger export s.ledger",
        f"mode {VISITS} {CODES} --rho 0.01 --neighbours replace --ledger both.ledger --budget 1,1e-6",
        "ledger show both.ledger",
        f"mode {VISITS} {CODES} --epsilon 1 --mechanism exponential --ledger capped.ledger --budget 2,cap:1",
        "ledger show capped.ledger",
        "ledger show capped.ledger --json",
        "select plain.csv --rho 0.01 --ledger z.ledger --budget zcdp:1",
        "select plain.csv -k 2 --rho 0.02 --method peel --ledger z.ledger",
        "ledger show z.ledger",
    ],
    "refusals": [
        "mode",
        "nothing",
        f"mode {VISITS} --column nothing --candidates a,b --epsilon 1",
        f"mode {VISITS} --column diagnosis --candidates I10,I10 --epsilon 1",
        f"mode {VISITS} --column diagnosis --candidates I10,E11 --epsilon 0",
        f"mode {VISITS} --column diagnosis --candidates I10,E11",
        f"mode {VISITS} --column diagnosis --epsilon 1",
        f"top {VISITS} -k 9 {CODES} --epsilon 1",
        f"median {VISITS} --column cost --lower 9 --upper 1 --epsilon 1",
        f"mode missing.csv {CODES} --epsilon 1",
        "select scores.csv --epsilon nan",
        "plan mode --candidates 30",
        f"mode {VISITS} {CODES} --epsilon 0.5 --budget 1",
    ],
}  # fmt: skip


def visits() -> str:
    """4,000 patients, every fourth of whom has two visits: six of ten have I10, three E11, one J45."""
    lines = ["patient,ward,diagnosis,cost"]
    for patient in range(4000):
        code, ward = "IIIIIIEEEJ"[patient % 10], ("north", "south")[patient % 2]
        row = f"{ward},{ {'I': 'I10', 'E': 'E11', 'J': 'J45'}[code] },{ {'I': 100, 'E': 50, 'J': 900}[code] }"
        lines += [f"{patient},{row}".replace(" ", "")] * (2 if patient % 4 == 0 else 1)
    return "\n".join(lines) + "\n"


PROBLEMS = """patient,ward,diagnosis,cost
1,a,I10,5
1,b,I10,7
2,a,E11,8
3,a,I10,
,a,I10,5
3,a
3,a,I10,"71,5"
3,a,I10,2000
 2,a,I10,5
4,c,i10,5
4,a,I10,\x1b[31mred
"""


@contextmanager
def workplace() -> Iterator[None]:
    """An empty folder with the tables, on a plain terminal of 80 columns."""
    plain = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8"}
    with tempfile.TemporaryDirectory() as name, chdir(name), patch.dict(os.environ, plain):
        Path("visits.csv").write_text(visits())
        Path("scores.csv").write_text("candidate,score\ntea,10\ncoffee,500\nwater,300\njuice,0\n")
        Path("plain.csv").write_text("0\n70000\n0\n80000\n")
        Path("ties.csv").write_text("7\n7\n")
        Path("problems.csv").write_text(PROBLEMS)
        yield


def run(command: str) -> str:
    """What a command prints on standard output, then on standard error, and its exit code if it is not zero."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["dpselect", *shlex.split(command)]),
        patch.object(sys, "stdin", io.StringIO()),
        patch.object(sys.modules["__main__"], "__package__", None),  # the name of the program is that of its file
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    shown = [out.getvalue().rstrip(), *(f"! {line}" for line in err.getvalue().rstrip().splitlines())]
    shown += [f"[exit code {code}]"] if code else []
    text = "\n".join(line.rstrip() for part in shown for line in part.splitlines())
    return f"$ dpselect {command}\n{_without_times(text)}\n"


def _without_times(text: str) -> str:
    """The text with words for whatever is different in every run."""
    text = text.replace(f"{Path.cwd()}{os.sep}", "")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?", "<time>", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "<sha256>", text)
    return re.sub(r"\b[0-9a-f]{32}\b", "<identity>", text)


def transcript(topic: str) -> str:
    """The text of a file."""
    with workplace():
        return "\n".join(map(run, TOPICS[topic]))


def path_of(topic: str) -> Path:
    """The file of a topic."""
    return FOLDER / f"{topic.replace(' ', '_')}.txt"


def write_all() -> None:
    """Write all files again."""
    FOLDER.mkdir(exist_ok=True)
    for topic in TOPICS:
        path_of(topic).write_text(transcript(topic), encoding="utf-8")


if __name__ == "__main__":
    write_all()
