"""Neighbouring tables that are read by a random filter, with random derived columns and in random notations."""

import codecs
import encodings
import pkgutil
import secrets
from dataclasses import replace
from random import Random

import pytest

from dpselect import open_table
from dpselect.errors import InvalidValue
from dpselect.tables import view
from dpselect.tables.duckdb import engine as duckdb_engine
from dpselect.tables.duckdb import expressions, files
from tests import spark
from tests.attacks.neighbouring.cases import WHO, Wanted
from tests.attacks.neighbouring.check import Tally, described, shrunk
from tests.attacks.neighbouring.sources import SOURCES
from tests.attacks.test_neighbouring_tables import LOSS, first_fault
from tests.tables.looking import counts

NAMED = {source.name: source for source in SOURCES}
QUICK = ["Arrow", "CSV", "Parquet"]
EACH = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMED]


@pytest.mark.parametrize("source", EACH)
def test_a_view_tells_neighbours_apart_by_no_more_than_is_charged(source):
    seed, tally = secrets.randbits(32), Tally()
    fault = first_fault(Wanted([NAMED[source]], views=True), seed=seed, cases=1, tally=tally, most=2)
    assert fault is None, f"seed {seed}\n{described(shrunk(fault, Random(seed)))}"
    assert tally.worst <= 1


@pytest.mark.slow
def test_most_questions_are_answered_and_feel_the_neighbour():
    tally = Tally()
    first_fault(Wanted([NAMED["Arrow"], NAMED["CSV"]], persons=[WHO], views=True), seed=1, cases=10, tally=tally)
    assert tally.refused < 0.2 * tally.pairs
    assert tally.felt > 0.15 * tally.pairs  # a filter leaves some rows out, and many columns have one value


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("source", QUICK)
def test_a_view_of_spark_tells_neighbours_apart_by_no_more_than_is_charged(source):
    spark.session()
    seed, methods = secrets.randbits(32), ["top_k", "median"]
    wanted = Wanted([NAMED[source]], methods=methods, engine="spark", views=True)
    fault = first_fault(wanted, seed=seed, cases=2, most=1)
    assert fault is None, f"seed {seed}\n{described(shrunk(fault, Random(seed)))}"


# Mistakes, built in.


def a_filter_that_knows_the_number_of_rows(monkeypatch):
    right = expressions.Derived.rows

    def rows(self, source, names):
        return f"SELECT * FROM ({right(self, source, names)}) QUALIFY count(*) OVER () % 2 = 0"

    monkeypatch.setattr(expressions.Derived, "rows", rows)


def an_expression_that_fails_on_a_row(monkeypatch):
    right = expressions.derived

    def derived(columns, seen):
        made = right(columns, seen)
        failing = {
            name: f"CASE WHEN {sql} IS NULL THEN error('') ELSE {sql} END" for name, sql in made.selected.items()
        }
        return replace(made, selected=failing)

    monkeypatch.setattr(duckdb_engine, "derived", derived)


def a_row_for_each_word(monkeypatch):
    right = expressions.Derived.rows
    double = "SELECT * FROM ({0}) UNION ALL SELECT * FROM ({0})"
    monkeypatch.setattr(expressions.Derived, "rows", lambda *given: double.format(right(*given)))


FRAMES = [NAMED["Arrow"]]
MISTAKES = {
    a_filter_that_knows_the_number_of_rows: (LOSS, "one person moves"),
    an_expression_that_fails_on_a_row: ("a row decides whether",),
    a_row_for_each_word: (LOSS,),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_in_a_view_is_found(mistake, monkeypatch):
    mistake(monkeypatch)
    persons = [None] if mistake is a_row_for_each_word else [WHO]
    wanted = Wanted(FRAMES, persons=persons, methods=["mode", "median"], views=True)
    assert first_fault(wanted, seed=1, cases=60, words=MISTAKES[mistake]) is not None


# Encodings: one line changes how no other line is read.


def names_of_encodings():
    """All of Python's, and their other names."""
    known = {module.name for module in pkgutil.iter_modules(encodings.__path__)} | set(encodings.aliases.aliases)
    return sorted(name for name in known if name not in ("mbcs", "oem"))


def is_allowed(name):
    try:
        view.View(encoding=name)
    except InvalidValue:
        return False
    return True


ODD = [bytes([first]) + rest for first in range(256) for rest in (b"", b"$B", b"$@", b"(I", b"{", b"AAA-", b"\xa1")]


def test_every_line_is_decoded_by_itself():
    rng, allowed = Random(1), [name for name in names_of_encodings() if is_allowed(name)]
    assert {"latin_1", "cp1252", "mac_roman", "koi8_r"} <= set(allowed)
    assert not {"iso2022_jp", "iso2022_kr", "hz", "utf_7", "utf_16", "shift_jis", "big5", "punycode"} & set(allowed)
    for name in {codecs.lookup(name).name for name in allowed} - set(view.UTF8):
        lines = [rng.choice(ODD) + bytes(rng.randrange(256) for _ in range(5)) for _ in range(300)]
        lines = [line.translate(None, b"\r\n") for line in lines]
        apart = [view.characters(line, name) for line in lines]
        assert view.characters(b"\n".join(lines), name).split("\n") == apart, name
        assert apart == [line.decode(name, "replace") for line in lines], name


@pytest.mark.parametrize(
    "name", ["iso2022_jp", "iso2022_jp_ext", "hz", "utf-7", "utf-16", "shift_jis", "big5", "rot13"]
)
def test_an_encoding_in_which_a_line_changes_others_is_refused(tmp_path, name):
    """With ISO-2022-JP, the escape of one row once made all rows after it unreadable."""
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x\na\n")
    with pytest.raises(InvalidValue, match="encoding must be utf-8, or have one byte for each character"):
        open_table(path, encoding=name)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "mac_arabic", "ascii"])
def test_a_line_of_any_bytes_moves_only_its_own_count(tmp_path, encoding):
    for odd in Random(2).sample(ODD, 12):
        assert others_with(tmp_path, odd, encoding) in (6, 7)


def others_with(folder, odd, encoding):
    """How many of six rows, and of one with these bytes between them, have an a."""
    path = folder / "rows.csv"
    path.write_bytes(b"x,y\na,1\n" + odd.translate(None, b"\r\n") + b",1\n" + b"a,1\n" * 5)
    [found] = counts(open_table(path, encoding=encoding, delimiter=","), "x", ["a"])
    return found


def test_an_encoding_with_a_memory_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "characters", lambda data, name, errors="replace": data.decode("iso2022_jp", errors))
    assert others_with(tmp_path, b"\x1b$B", "latin-1") < 6
