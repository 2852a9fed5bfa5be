"""Each file counts once however it is reached, and names of folders are private text, in every tree of folders."""

import glob
import itertools
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect
from dpselect.errors import InvalidValue
from dpselect.tables import files
from tests.tables.duckdb import test_sources
from tests.tables.looking import counts

CANARY = "canary7310"
CSV_ENDINGS = [ending + more for ending in (".csv", ".tsv", ".txt") for more in ("", ".gz")]


def once(folder):
    """A file with two rows."""
    return test_sources.saved(folder / "visits.csv", b"p,d\n1,x\n2,y\n")


def rows_in(source):
    return counts(dpselect.open_table(source), "d", ["x", "y"])


# One file, once.


def many_roads(folder):
    """Links to a file, to links, to folders, to itself and to nothing; and names of one file, also from outside."""
    path = once(folder / "deep")
    (folder / "latest.csv").symlink_to(path)
    (folder / "relative.csv").symlink_to("deep/visits.csv")
    (folder / "newest.csv").symlink_to("latest.csv")
    for i in range(60):
        (folder / f"copy-{i}.csv").hardlink_to(path)
    (folder / "also").symlink_to("deep")
    (folder.parent / "outside").mkdir()
    (folder.parent / "outside" / "visits.csv").hardlink_to(path)
    (folder / "out").symlink_to(folder.parent / "outside")
    (folder / "deep" / "loop").symlink_to(folder)
    (folder / "nothing.csv").symlink_to("nowhere")
    (folder / "self.csv").symlink_to("self.csv")


PATTERNS = ["", "/**", "/**/*.csv", "/**/**/*.csv", "/**/*/../**/*.csv"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_file_counts_once_however_it_is_reached(pattern, tmp_path):
    (tmp_path / "in" / "empty").mkdir(parents=True)
    many_roads(tmp_path / "in")
    assert rows_in(f"{tmp_path}/in{pattern}") == [1, 1]
    assert rows_in(tmp_path / "in" / "latest.csv") == [1, 1]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_many_loops_are_walked_once(pattern, tmp_path, monkeypatch):
    """A walk that forgets where it was would have 2**40 folders to look at, and be stopped here."""
    top = once(tmp_path / "in").parent
    for name in ("a", "b"):
        (top / name).mkdir()
        (top / name / "loop").symlink_to(top)
    looks = itertools.count()

    def counted(look):
        def looked(*arguments):
            assert next(looks) < 10_000
            return look(*arguments)

        return looked

    for function in (os.listdir, os.scandir):
        monkeypatch.setattr(os, function.__name__, counted(function))
    assert len(files.files_of(f"{top}{pattern}").paths) == 1


def test_the_name_without_a_link_is_kept(tmp_path):
    """Also if another one comes first in the alphabet: its folders are columns."""
    once(tmp_path / "year=2024")
    (tmp_path / "current").symlink_to("year=2024")
    (tmp_path / "another.csv").symlink_to("year=2024/visits.csv")
    assert [path.parent.name for path in files.files_of(f"{tmp_path}/**/*.csv").paths] == ["year=2024"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["file", "folder", "hard link", "link"]), st.integers(0, 30), st.integers(0, 30)),
    min_size=1,
    max_size=14,
)


def grown(top, steps):
    """A tree of folders with files, each with a value of its own, and links of all kinds; how many files there are."""
    folders, made, named = [top], [], []
    for i, (kind, where, what) in enumerate(steps):
        folder = folders[where % len(folders)]
        if kind == "file":
            path = test_sources.saved(folder / f"f{i}.csv", f"d\nv{len(made)}\n".encode())
            made.append(path)
            named.append(path)
        elif kind == "folder":
            (folder / f"d{i}").mkdir()
            folders.append(folder / f"d{i}")
        elif kind == "hard link" and made:
            (folder / f"h{i}.csv").hardlink_to(made[what % len(made)])
        elif kind == "link":
            target = [*folders, *named][what % len([*folders, *named])]
            (folder / f"l{i}.csv").symlink_to(target, target_is_directory=target.is_dir())
            named.append(folder / f"l{i}.csv")
    return len(made)


@settings(max_examples=15)
@given(steps=STEPS)
def test_in_every_tree_every_file_counts_once(steps):
    with tempfile.TemporaryDirectory() as name:
        number = grown(Path(name), [("file", 0, 0), *steps])
        for source in (name, f"{name}/**", f"{name}/**/*.csv"):
            assert counts(dpselect.open_table(source), "d", [f"v{i}" for i in range(number)]) == [1] * number


NAMES = ["a", "b.csv", "[x]", ".hidden", "_under", "k=1", "ab", "*", "x y"]
PARTS = st.sampled_from([*NAMES, "*", "**", "?", "a*", "[ab]*", "[!a]*", ".*", "*.csv", "[[]x]", "k=*", ".."])


@settings(max_examples=100)
@given(
    paths=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=8),
    pattern=st.lists(PARTS, min_size=1, max_size=4),
)
def test_patterns_match_what_glob_matches(paths, pattern):
    """Without links, that is; and the file that is named like a pattern is meant itself."""
    with tempfile.TemporaryDirectory() as name:
        inner = Path(name, *"1234")  # as deep as a pattern is long, so that ".." stays in the temporary folder
        inner.mkdir(parents=True)
        for parts in paths:
            path = Path(inner, *parts)
            if not any(above.is_file() for above in path.parents) and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("d\n")
        source = os.path.join(inner, *pattern)
        expected = {path for path in glob.glob(source, recursive=True) if os.path.isfile(path)}
        if os.path.exists(source) or not glob.has_magic(source):
            return
        try:
            found = {str(path) for path in files._found(source)[1]}
        except InvalidValue:
            found = set()
        assert {os.path.realpath(path) for path in found} == {os.path.realpath(path) for path in expected}


def pairs_of_endings():
    return [*itertools.combinations(CSV_ENDINGS, 2), (".parquet", ".pq"), (".csv", ".CSV.GZ"), (".PQ", ".parquet")]


@pytest.mark.parametrize(("one", "other"), pairs_of_endings())
@pytest.mark.parametrize("pattern", ["", "/*", "/**"])
def test_a_file_beside_its_copy_in_another_format_is_refused(one, other, pattern, tmp_path):
    data = pa.table({"d": ["x"]}) if one.lower() in (".parquet", ".pq") else b"p,d\n1,x\n"
    for ending in (one, other):
        test_sources.saved(tmp_path / f"code={CANARY}" / f"visits{ending}", data)
    with pytest.raises(InvalidValue, match="names differ only in the ending") as caught:
        dpselect.open_table(f"{tmp_path}{pattern}" if pattern != "/*" else f"{tmp_path}/*/*")
    assert f"visits{one}" in str(caught.value)
    assert f"visits{other}" in str(caught.value)
    assert CANARY not in str(caught.value)


def test_files_with_other_names_or_in_other_folders_are_no_copies(tmp_path):
    for path in ("visits.csv", "visits-2.csv.gz", "visits", "visits.old.csv", "deep/visits.csv.gz"):
        if path != "visits":
            test_sources.saved(tmp_path / path, b"p,d\n1,x\n2,y\n")
    assert rows_in(tmp_path) == [4, 4]
    test_sources.saved(tmp_path / "visits.tsv", b"p,d\n1,x\n2,y\n")
    assert rows_in(f"{tmp_path}/*.csv") == [2, 2]


@pytest.mark.parametrize("one", ["visits.csv", "Visits.CSV", "visits.csv.csv", "visits.csv.txt"])
@pytest.mark.parametrize("other", ["VISITS.csv.gz", "visits.txt.gz.gz.csv", "ViSiTs.tsv"])
def test_copies_are_known_in_any_case_and_behind_any_endings(one, other, tmp_path):
    for name in (one, other):
        test_sources.saved(tmp_path / name, b"p,d\n1,x\n")
    with pytest.raises(InvalidValue, match="names differ only in the ending"):
        dpselect.open_table(tmp_path)


@pytest.mark.parametrize("name", ["~", "file:", "file:~", "s3:", "http:", "~root", "$HOME", "%7E", "-", "C:", "gs:"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_relative_path_means_to_the_engine_what_it_means_here(name, kind, tmp_path, monkeypatch):
    """DuckDB takes a leading ~ for the home folder, and file: for nothing: it would read the other file twice."""
    home, work = tmp_path / "home", tmp_path / "work"
    data = {"csv": b"p,d\n1,x\n2,y\n", "parquet": pa.table({"d": ["x", "y"]})}[kind]
    empty = {"csv": b"p,d\n", "parquet": pa.table({"d": pa.array([], pa.string())})}[kind]
    test_sources.saved(home / f"a.{kind}", data)
    test_sources.saved(work / f"a.{kind}", data)
    test_sources.saved(work / name / f"a.{kind}", empty)
    test_sources.saved(work / name / str(work).lstrip("/") / f"a.{kind}", empty)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    for source in (".", "**", f"**/*.{kind}", f"{name}/../**/*.{kind}"):
        assert rows_in(source) == [1, 1]
    assert rows_in(f"{name}/a.{kind}") == [0, 0]


def test_files_that_become_one_after_they_were_listed_are_refused(tmp_path):
    """Between opening and asking, a file may be replaced by a link to another one."""
    for name in ("a.csv", "b.csv"):
        test_sources.saved(tmp_path / name, b"p,d\n1,x\n")
    table = dpselect.open_table(tmp_path)
    assert counts(table, "d", ["x"]) == [2]
    (tmp_path / "b.csv").unlink()
    (tmp_path / "b.csv").symlink_to("a.csv")
    with pytest.raises(InvalidValue, match="names one file twice: open it again"):
        table.mode("d", candidates=["x"], epsilon=1)


def test_a_name_that_is_too_long_is_no_file():
    with pytest.raises(InvalidValue, match="there is no such file"):
        dpselect.open_table("x" * 5000)
