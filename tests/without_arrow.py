"""A program that asks every question where PyArrow, pandas and polars cannot be imported; `test_without_arrow` runs it.

The answers are certain: everybody has the same value, and epsilon is large.
"""

import contextlib
import datetime
import importlib.abc
import io
import json
import sys
import warnings
from decimal import Decimal
from pathlib import Path

import duckdb

ABSENT = ("pyarrow", "pandas", "polars")
PEOPLE = 500
DAY, MOMENT = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999)
VALUES = {
    "text": 'ü "q", \U0001f600',
    "whole": 2**40 + 1,
    "huge": 2**100,
    "tiny": Decimal("1.25"),
    "float": 0.1,
    "day": DAY,
    "time": MOMENT,
    "zoned": MOMENT.replace(tzinfo=datetime.UTC),
    "flag": True,
}
# Almost the same: a value that was rounded or cut would be taken for another one.
OTHERS = {
    "text": 'ü "q", \U0001f601',
    "whole": 2**40,
    "huge": 2**100 + 1,
    "tiny": Decimal("1.26"),
    "float": 0.1 + 2**-50,
    "day": DAY - datetime.timedelta(1),
    "time": MOMENT - datetime.timedelta(microseconds=1),
    "zoned": VALUES["zoned"] - datetime.timedelta(microseconds=1),
    "flag": False,
}
ORDERED = [name for name in VALUES if name not in ("text", "flag", "huge")]


class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def ask_in_python(source, columns, **how):
    import dpselect  # noqa: PLC0415 - after the imports are blocked

    table = dpselect.open_table(source, person="who", **how)
    once = {"epsilon": 100}
    for column in columns:
        value, listed = VALUES[column], [OTHERS[column], VALUES[column]]
        assert table.mode(column, candidates=listed, **once).value == value, column
        assert table.mode(column, candidates=listed[:1], other="other", **once).value == "other"
        assert table.top_k(column, 1, candidates=listed, **once).value == [value]
        grouped = table.group_by(column, groups=listed)
        assert grouped.mode("whole", candidates=[1, VALUES["whole"]], **once).value[value] == VALUES["whole"]
        second = "flag" if column == "text" else "text"
        both = table.group_by([column, second], groups={column: listed, second: [VALUES[second]]})
        assert both.mode("whole", candidates=[1, VALUES["whole"]], **once).value[value, VALUES[second]] != 1
        if column in ORDERED:
            ends = {"lower": min(listed), "upper": max(listed), **once}
            ends |= {"step": "0.01"} if column == "tiny" else {"range": "full"}
            if column == "float":
                ends |= {"lower": 0, "upper": 1, "step": "0.1"}
            if column in ("time", "zoned"):
                ends["step"] = 0.000001
            found = [table.median(column, **ends), table.quantile(column, "0.9", **ends)]
            found += [table.minimum(column, **ends), table.maximum(column, **ends)]
            values = [*(answer.value for answer in found), *table.quantiles(column, ["0.2", "0.8"], **ends).value]
            assert [float(each) if column == "float" else each for each in values] == [value] * 6, (column, values)
        assert table.check(column, candidates=listed).counted == PEOPLE
    text = VALUES["text"]
    assert table.mode("text", epsilon=50, delta="1e-9").value == text
    assert table.mode("text", candidates=dpselect.every("text", max_bytes=20), **once).value == text
    assert table.top_k("text", 1, epsilon=50, delta="1e-9").value == [text]
    assert table.values("text", epsilon=50, delta="1e-9").value == [text]
    found = table.group_by("text", epsilon=50, delta="1e-9")
    assert found.mode("whole", candidates=[VALUES["whole"]], **once).value == {text: VALUES["whole"]}


def ask_on_the_command_line(source, folder, **how):
    asked = ["--person", "who", "--epsilon", "50", *(word for pair in how.items() for word in pair)]
    whole, ends = str(VALUES["whole"]), ["--lower", "0", "--upper", str(2**41)]
    ledger = ["--ledger", str(folder / f"{source.name}.ledger"), "--budget", "1000"]
    assert said("mode", source, "--column", "whole", "--candidates", f"5,{whole}", *asked, *ledger) == whole
    assert said("top", source, "-k", "1", "--column", "day", "--candidates", f"{DAY},1999-01-01", *asked) == str(DAY)
    assert said("mode", source, "--column", "whole", "--delta", "1e-9", *asked) == whole
    assert said("values", source, "--column", "whole", "--delta", "1e-9", *asked) == whole
    for command in (["median"], ["quantile", "-q", "0.9"], ["minimum"], ["maximum"]):
        assert int(said(command[0], source, *command[1:], "--column", "whole", *ends, *asked)) == int(whole), command
    levels = said("quantiles", source, "--levels", "0.2,0.8", "--column", "whole", *ends, *asked)
    assert levels.split() == ["0.2", whole, "0.8", whole] or whole in levels
    grouped = ["--group-by", "day", "--groups", str(DAY), "--json"]
    out = json.loads(
        said("mode", source, "--column", "whole", "--candidates", f"5,{whole}", *grouped, *asked, first=False)
    )
    assert whole in json.dumps(out)
    if not how:  # `check` takes files only
        listed = ["--column", "whole", "--candidates", f"5,{whole}", "--person", "who"]
        assert f"{PEOPLE}" in said("check", source, *listed, first=False)
    assert "mode" in said("ledger", "show", folder / f"{source.name}.ledger", first=False)


def said(*words, first=True, code=0):
    """What a command prints, or the first line of it."""
    from dpselect.cli import main  # noqa: PLC0415 - after the imports are blocked

    sys.argv = ["dpselect", *map(str, words)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            found = left.code or 0
    assert found == code, (words, found, err.getvalue())
    printed = err.getvalue() if code else out.getvalue()
    return printed.splitlines()[0] if first else printed


def hints(folder):
    """The messages of all that needs PyArrow, in Python and on the command line."""
    import dpselect  # noqa: PLC0415 - after the imports are blocked

    class DataFrame:
        """Looks like a frame."""

        columns = ("x",)

    tries = (
        lambda: dpselect.open_table(DataFrame()),
        lambda: dpselect.open_table(folder / "t.db", table="t"),
        lambda: dpselect.open_table("postgresql://me:s3cr3t@nowhere/db", table="t"),
        lambda: dpselect.open_table(folder / "t.csv", engine="spark"),
        lambda: dpselect.open_table(folder / "milli.parquet").mode("t", candidates=[MOMENT], epsilon=1),
        lambda: dpselect.PermuteAndFlip(1).summary().to_arrow(),
    )
    for attempt in tries:
        try:
            attempt()
        except dpselect.errors.MissingExtra as error:
            yield str(error)
        else:
            yield "no error"
    yield said(
        "mode", folder / "milli.parquet", "--column", "t", "--candidates", "2024-01-01", "--epsilon", "1", code=5
    )
    yield said("median", folder / "t.db", "--table", "t", "--column", "x", "--epsilon", "1", code=5)


def short(folder):
    """Ask a few questions of each file, and print all hints."""
    for source in ("t.csv", "t.parquet"):
        ask_in_python(folder / source, ["time"])
        listed = ["--column", "whole", "--candidates", f"5,{VALUES['whole']}"]
        assert said("mode", folder / source, *listed, "--epsilon", "9") == str(VALUES["whole"])
    for hint in hints(folder):
        print(hint)  # noqa: T201 - for the test


def complete(folder):
    """Ask every question of each source about each column, in Python and on the command line."""
    ask_in_python(folder / "t.csv", [name for name in VALUES if name != "zoned"])
    ask_in_python(folder / "t.parquet", [name for name in VALUES if name != "huge"])
    with duckdb.connect(folder / "t.duckdb", read_only=True) as connection:
        ask_in_python(connection.table("t"), VALUES)
    ask_in_python(folder / "t.duckdb", VALUES, table="t")
    for source in ("t.csv", "t.parquet"):
        ask_on_the_command_line(folder / source, folder)
    ask_on_the_command_line(folder / "t.duckdb", folder, **{"--table": "t"})
    assert "Guarantee" in said("demo", first=False)
    for name in ("visits.csv", "visits.parquet"):
        assert "200,000 visits" in said("demo", "--save", folder / name)
        codes = ["--column", "diagnosis", "--candidates", "I10,G20", "--person", "patient", "--epsilon", "5"]
        assert said("mode", folder / name, *codes) == "I10"


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent())
    warnings.simplefilter("ignore")  # about the large epsilon
    {"short": short, "complete": complete}[sys.argv[1]](Path(sys.argv[2]))
    assert not set(ABSENT) & sys.modules.keys()
