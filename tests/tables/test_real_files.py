"""Files as people have them: notations, encodings and near misses that once had an answer like any other, and wrong.

Each case was an answer that meant nothing and did not say so. Now the same file has the right answer, or an option
reads it, and the check names the option or the cause; and an answer that was not checked says that it was not.
"""

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

import dpselect
from dpselect.errors import CheckFailed, DoubtfulValue, InvalidValue

EPSILON = "10"  # with 20 people between the best and the others, a wrong answer has a probability below e^-90


@dataclass(frozen=True)
class Case:
    """A file, and a question that reads it as it was meant or not.

    Attributes:
        lines: the lines of the file.
        question: its name, its column, and what it states.
        true: the answer to the question that is meant.
        meant: the options of `open_table` that read the file, or what the question states instead.
        says: what a check of the question that is not meant says, for the owner.
        stops: whether a check stops it before the charge.
        wrong: the answer that it has otherwise, if it is nearly certain.
    """

    lines: list[str]
    question: tuple[str, str, dict[str, Any]]
    true: Any
    meant: dict[str, Any]
    says: list[str]
    stops: bool = True
    wrong: Any = None
    encoding: str = "utf-8"
    about: dict[str, Any] = field(default_factory=dict)

    def table(self, folder, **options):
        path = folder / "table.csv"
        path.write_bytes("".join(f"{line}\n" for line in self.lines).encode(self.encoding))
        return dpselect.open_table(path, **options)

    def asked(self, table, **stated):
        name, column, own = self.question
        groups, asked = {**own, **stated}.pop("groups", None), {**own, **stated}
        asked.pop("groups", None)
        if groups is not None:
            table = table.group_by("g", groups=groups)
        return getattr(table, name)(asked.pop("column", column), epsilon=EPSILON, **asked)

    def answer(self, folder):
        return self.asked(self.table(folder, **self.meant), **self.about)


def median(lower, upper, **stated):
    return "median", "value", {"lower": lower, "upper": upper, **stated}


def mode(*candidates):
    return "mode", "value", {"candidates": list(candidates)}


def column(*values):
    return ["value", *values]


YEAR_1992 = median("1992-01-01", "1992-12-31")
APRIL = datetime.date(1992, 4, 30)
JOBS = ["Clerical", "Craftsmen_and_kindred", "Operatives", "Farmers"]
SENATORS = ["name,value", *["Béchard,Quebec"] * 80, *["Roy,Quebec"] * 60, *["Smith,Ontario"] * 110]

CASES = {
    # Every line with an é is dropped, and Quebec has more of them.
    "Latin-1, some lines": Case(
        SENATORS,
        mode("Quebec", "Ontario"),
        "Quebec",
        {"encoding": "latin-1"},
        ["lines that are not UTF-8", "encoding='cp1252'", "--encoding"],
        stops=False,
        wrong="Ontario",
        encoding="latin-1",
    ),
    "Latin-1, most lines": Case(
        ["name,value", *["Béchard,Quebec"] * 60, *["Smith,Ontario"] * 30],
        mode("Quebec", "Ontario"),
        "Quebec",
        {"encoding": "cp1252"},
        ["lines that are not UTF-8", "at most half"],
        encoding="cp1252",
    ),
    "Latin-1, in what is asked": Case(
        column(*["Montréal"] * 60, *["Lac"] * 30),
        mode("Montréal", "Lac"),
        "Montréal",
        {"encoding": "iso-8859-1"},
        ["encoding='cp1252'"],
        encoding="latin-1",
    ),
    "decimal commas": Case(
        ["who;value", *["a;10,56"] * 60, *["b;14,09"] * 90],
        median(0, 100, step="0.01"),
        Decimal("14.09"),
        {"decimal": ","},
        ["numbers with a decimal comma", "decimal=','", "--decimal ,"],
    ),
    "decimal commas and points for thousands": Case(
        ["who;value", *["a;1.010,56"] * 60, *["b;1.014,09"] * 90],
        median(0, 10_000, step="0.01"),
        Decimal("1014.09"),
        {"decimal": ",", "thousands": "."},
        ["separators of thousands", "thousands=','", "--thousands"],
    ),
    "commas for thousands": Case(
        column(*['"10,500.00"'] * 60, *['"14,090.00"'] * 90),
        median(0, 100_000),
        14_090,
        {"thousands": ","},
        ["separators of thousands", "thousands=','", "--thousands"],
    ),
    "spaces for thousands": Case(
        column(*["10 500"] * 60, *["14\u00a0090"] * 90),
        median(0, 100_000),
        14_090,
        {"thousands": " "},
        ["separators of thousands"],
    ),
    "dollars": Case(
        column(*['"$10,500.00"'] * 60, *['"$14,090.00"'] * 90),
        median(0, 100_000),
        14_090,
        {"thousands": ",", "derive": {"dollars": "trim(value, '$')"}},
        ["numbers with a unit or a currency sign"],
        about={"column": "dollars"},
    ),
    "American dates": Case(
        column(*["4/3/1992"] * 60, *["04/30/1992"] * 90),
        YEAR_1992,
        APRIL,
        {"dates": "%m/%d/%Y"},
        ["dates that do not begin with the year", "'%m/%d/%Y'", "--dates"],
    ),
    "German dates": Case(
        column(*["03.04.1992"] * 60, *["30.04.1992"] * 90),
        YEAR_1992,
        APRIL,
        {"dates": "%d.%m.%Y"},
        ["dates that do not begin with the year", "'%d.%m.%Y'"],
    ),
    "one typo in a list": Case(
        column(*["Operatives"] * 60, *["Craftsmen_and_kindred"] * 90, *["Clerical"] * 30),
        mode("Clerical", "Craftsmen_and_kind", "Operatives", "Farmers"),
        "Craftsmen_and_kindred",
        {},
        ["nobody has the candidate 'Craftsmen_and_kind'", "Did you mean 'Craftsmen_and_kindred'?"],
        stops=False,
        wrong="Operatives",
        about={"candidates": JOBS},
    ),
    "upper and lower case": Case(
        column(*["yes"] * 60, *["no"] * 90),
        mode("Yes", "No"),
        "no",
        {},
        ["nobody has any of the candidates", "in other upper and lower case", "Did you mean 'no'?"],
        about={"candidates": ["yes", "no"]},
    ),
    "upper and lower case, derived": Case(
        column(*["yes"] * 60, *["No"] * 90),
        mode("YES", "NO"),
        "NO",
        {"derive": {"shouted": "upper(value)"}},
        ["derive upper(column)"],
        about={"column": "shouted"},
    ),
    "spaces around": Case(
        column(*[" yes"] * 60, *["no "] * 90),
        mode("yes", "no"),
        "no",
        {"derive": {"trimmed": "trim(value)"}},
        ["texts with spaces before or after", "derive trim(column)"],
        about={"column": "trimmed"},
    ),
    "upper and lower case of groups": Case(
        ["g,value", *["yes,1"] * 60, *["no,5"] * 60],
        ("median", "value", {"lower": 0, "upper": 9, "groups": ["YES", "NO"]}),
        {"yes": 1, "no": 5},
        {},
        ["no row has a value, a person and a listed group", "in other upper and lower case", "Did you mean 'no'?"],
        about={"groups": ["yes", "no"]},
    ),
    "days of texts that are timestamps": Case(
        column(*["2013-01-01T10:00:00Z"] * 60, *["2013-12-02T10:00:00Z"] * 90),
        mode("2013-01-01", "2013-12-02"),
        datetime.date(2013, 12, 2),
        {},
        ["nobody has any of the candidates"],
        about={"candidates": [datetime.date(2013, 1, 1), datetime.date(2013, 12, 2)]},
    ),
    "the median of names": Case(
        ["value,size", *["Ann,3"] * 60, *["Bob,5"] * 90],
        median(0, 9),
        5,
        {},
        ["at most half of the values that are not missing can be read"],
        about={"column": "size"},
    ),
    "a range that misses the values": Case(
        column(*["10"] * 60, *["14"] * 90),
        median(20, 100),
        14,
        {},
        ["outside the range, counted as its lower end: 150", "most values are outside the range"],
        stops=False,
        wrong=20,
        about={"lower": 0},
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_the_answer_is_right_as_it_is_meant(case, tmp_path):
    answer = case.answer(tmp_path)
    assert answer.value == case.true
    if case.meant and "derive" not in case.meant:  # only an option for the file is missing
        assert case.table(tmp_path, **case.meant).overview().passed
        assert not case.table(tmp_path).overview().passed


def test_the_owner_is_told(case, tmp_path, ledger, capsys):
    """Before anything is charged, if a check may stop the question; by a command, otherwise."""
    stops, reason = case.table(tmp_path, check="stop", ledger=ledger), ""
    if case.stops:
        with pytest.raises(CheckFailed, match="Nothing was charged") as stopped:
            case.asked(stops)
        assert (ledger.spent.epsilon, ledger.entries()) == (0, [])
        reason = str(stopped.value)
    else:
        answer = case.asked(stops)
        assert case.wrong is None or answer.value == case.wrong
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("For the data owner only:\ncolumn 'value', read as ")
    name, _, stated = case.question
    told = shown.err + reason
    if name in ("median", "mode") and "groups" not in stated:  # the same from a check that is asked for
        told += (report := case.table(tmp_path).check("value", **stated).report())
        assert ("The answer would mean nothing" in report) == case.stops
    assert [words for words in case.says if words not in told] == []


def test_the_check_is_content_as_it_is_meant(case, tmp_path, ledger, capsys):
    table = case.table(tmp_path, **case.meant, check="stop", ledger=ledger)
    assert case.asked(table, **case.about).value == case.true
    told = capsys.readouterr().err
    # A rest of rows that nobody asked about is fine, and so is a timestamp whose day is taken.
    assert "suspicious" not in told
    assert len(ledger.entries()) == 1


def test_an_answer_that_was_not_checked_says_so(case, tmp_path):
    """In the same words for the table that is read and for the one that is not."""
    meant, not_meant = case.answer(tmp_path), case.asked(case.table(tmp_path))
    [said] = {each.notes[-1] for each in (meant, not_meant)}
    assert said.startswith("not checked: ")
    assert "dpselect check" in said
    assert not [note for note in case.asked(case.table(tmp_path, check="warn")).notes if "not checked" in note]


def test_a_header_in_latin_1_names_the_option(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("größe\n3\n".encode("latin-1"))
    with pytest.raises(InvalidValue, match="state its encoding, such as latin-1 or cp1252"):
        dpselect.open_table(path)
    assert list(dpselect.open_table(path, encoding="latin-1").columns) == ["größe"]


@pytest.mark.parametrize("encoding", ["utf-16", "shift_jis", "no such", 3, "utf-7"])
def test_encodings_whose_faults_reach_other_lines_are_refused(tmp_path, encoding):
    path = tmp_path / "table.csv"
    path.write_text("value\n3\n", encoding="utf-8")
    with pytest.raises(InvalidValue, match="one byte for each character"):
        dpselect.open_table(path, encoding=encoding)


# Whole numbers.

THREE = ["3", "3.0", "+3", "03", "3.", "3e0", "30e-1", " 3 ", "3.00000"]
NUMBERS = [1, 2, 3, 4]
ASKED = {
    "mode": (lambda table: table.mode("value", candidates=NUMBERS, epsilon=EPSILON), 3),
    "mode among others": (lambda table: table.mode("value", candidates=[1, 2], other=3, epsilon=EPSILON), 3),
    "mode of a rule": (lambda table: table.mode("value", candidates=dpselect.every("int64"), epsilon=EPSILON), 3),
    "mode of a range": (lambda table: table.mode("value", candidates=range(10), epsilon=EPSILON), 3),
    "top": (lambda table: table.top_k("value", 1, candidates=NUMBERS, epsilon=EPSILON), [3]),
    "median": (lambda table: table.median("value", lower=0, upper=9, epsilon=EPSILON), 3),
    "groups": (
        lambda table: table.group_by("value", groups=[3, 4]).mode("h", candidates=["u", "v"], epsilon=EPSILON),
        {3: "v", 4: "u"},
    ),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("text", THREE)
def test_a_whole_number_is_one_in_every_question(tmp_path, name, text):
    ask, true = ASKED[name]
    path = tmp_path / "table.csv"
    rows = [f"{text},v"] * 60 + ["4.0,u"] * 30 + ["2,u"] * 10 + [",u"] * 5
    path.write_text("\n".join(["value,h", *rows]), encoding="utf-8")
    table = dpselect.open_table(path, check="stop")
    assert ask(table).value == true


@pytest.mark.parametrize("text", ["3.5", "3.0000001", "3,0", "3.0.0", "three", "0x3", "3 3", "nan", "inf", "1e40"])
def test_other_texts_are_no_whole_numbers(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text("value,h\n" + f'"{text}",v\n' * 60 + "4,u\n" * 30, encoding="utf-8")
    table = dpselect.open_table(path)
    check = table.check("value", candidates=[3, 4])
    assert check.counted == 30
    assert table.mode("value", candidates=[3, 4], epsilon=EPSILON).value == 4
    assert table.group_by("value", groups=[3]).check("h", candidates=["v"]).counted == 0


# What an answer says.


def test_a_table_without_rows(tmp_path, ledger):
    path = tmp_path / "table.csv"
    path.write_text("value\n", encoding="utf-8")
    table = dpselect.open_table(path, ledger=ledger, check="stop")
    with pytest.raises(CheckFailed, match="there is no row"):
        table.mode("value", candidates=NUMBERS, epsilon=EPSILON)
    assert ledger.spent.epsilon == 0
    overview = dpselect.open_table(path).overview()
    assert not overview.passed
    assert "The answer would mean nothing: there is no row." in overview.report()


def test_dates_of_timestamps_are_their_days(tmp_path):
    """A rule and a range of dates, in a column of text that is a timestamp in another program."""
    path = tmp_path / "table.csv"
    path.write_text("value\n" + "2013-12-02T10:00:00Z\n" * 90 + "2013-01-01 23:59:59\n" * 60, encoding="utf-8")
    table, day = dpselect.open_table(path), datetime.date(2013, 12, 2)
    assert table.median("value", lower="2013-01-01", upper="2013-12-31", epsilon=EPSILON).value == day
    assert table.mode("value", candidates=dpselect.every("date"), epsilon=EPSILON).value == day
    check = table.check("value", lower="2013-01-01", upper="2013-12-31")
    assert check.passed
    assert "their day is taken: 150" in check.report()


@pytest.mark.parametrize("ends", [(20, 100), (0, 9)])
def test_an_answer_at_an_end_of_the_range_says_so(tmp_path, ends):
    path = tmp_path / "table.csv"
    path.write_text("g,value\n" + "a,14\n" * 90 + "b,20\n" * 90, encoding="utf-8")
    table, (lower, upper) = dpselect.open_table(path), ends
    end, note = upper if upper < 14 else lower, "the answer is the end of the range: the true median may lie beyond it"
    answer = table.median("value", lower=lower, upper=upper, epsilon=EPSILON)
    assert (answer.value, answer.notes[0]) == (end, note)
    grouped = table.group_by("g", groups=["a", "b"]).median("value", lower=15, upper=100, epsilon=EPSILON)
    assert grouped.value == {"a": 15, "b": 20}
    assert grouped.notes[0] == f"{note} (in 1 group of 2)"
    several = table.quantiles("value", ["0.25", "0.75"], lower=15, upper=100, epsilon=EPSILON)
    assert several.value == [15, 20]
    assert several.notes[0].startswith("the answer is the end of the range: this holds for 0.25, and")
    inside = table.median("value", lower=0, upper=100, epsilon=EPSILON)
    assert [note for note in inside.notes if "end of the range" in note] == []


def test_the_answer_of_a_rule_says_what_it_needs(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("value\n2013-12-02\n2014-12-02\n", encoding="utf-8")
    answer = dpselect.open_table(path).mode("value", candidates=dpselect.every("date"), epsilon=1)
    needed = answer.accuracy.needed
    assert f"the most common value needs about {needed:,} rows" in str(answer.accuracy)
    said = f"in more than 5 of 100 cases if fewer than {needed} rows have the best"
    assert answer.notes[0] == f"the candidates follow a rule, so the answer may be a value that nobody has: {said}"


def test_the_index_of_pandas_has_the_name_of_its_place(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",value,\n" + "".join(f"{i},3.0,x\n" for i in range(60)), encoding="utf-8")
    table = dpselect.open_table(path, person="column_1", check="stop")
    assert list(table.columns) == ["column_1", "value", "column_3"]
    assert table.mode("value", candidates=NUMBERS, epsilon=EPSILON).value == 3


# Losses of privacy.


@pytest.mark.parametrize(("delta", "warns"), [("0.5", True), ("0.1", True), ("0.002", True), ("1e-3", False)])
def test_a_large_delta_warns(tmp_path, delta, warns, recwarn):
    path = tmp_path / "table.csv"
    path.write_text("value\n" + "x\n" * 90, encoding="utf-8")
    table = dpselect.open_table(path)
    if warns:
        with pytest.warns(DoubtfulValue, match=f"delta {delta} hardly protects anybody"):
            table.values("value", epsilon=1, delta=delta)
    else:
        table.values("value", epsilon=1, delta=delta)
    assert len(recwarn) == 0


@pytest.mark.parametrize(("options", "whom"), [({}, "one row"), ({"person": "nr"}, "one nr")])
def test_a_guarantee_says_what_it_protects(tmp_path, options, whom):
    """Eight rows of a man are eight rows, if nobody says which man."""
    path = tmp_path / "table.csv"
    path.write_text("nr,value\n" + "".join(f"{i // 8},3\n" for i in range(800)), encoding="utf-8")
    answer = dpselect.open_table(path, **options).mode("value", candidates=NUMBERS, epsilon=1)
    assert answer.protects == answer.to_dict()["protects"] == whom
    assert answer.promise == f"1-DP (pure) for {whom}, 0.32966-zCDP"
    assert f"guarantee='{answer.promise}'" in repr(answer)
    assert answer.promise in answer._repr_html_()
