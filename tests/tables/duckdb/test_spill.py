"""Rows that do not fit into memory are on the disk for their process only, in private, and never for longer than it."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect.errors import EngineFailure
from dpselect.tables.duckdb import source as spill
from dpselect.tables.spark.workers import connect_in_worker

pytestmark = pytest.mark.slow

ROWS = "SELECT 'PATIENT-' || range || '-of-a-name-that-takes-memory' AS p FROM range(2000000)"
WHERE = "SELECT current_setting('temp_directory')"
LOCKED = pytest.mark.skipif(os.name != "posix", reason="Windows has no locks of folders")

# Every program has the folder `temporary` as that of its system, and `working` as that in which it runs.
SPILL = f"""
import json, os, signal, sys
from dpselect.tables.duckdb.source import connect

WHERE = {WHERE!r}

def spilled():
    connection = connect()
    connection.execute("SET memory_limit = '60MB'; SET threads = 1")
    connection.execute("CREATE TABLE t AS {ROWS}")
    return connection, [path for path, _ in connection.execute("FROM duckdb_temporary_files()").fetchall()]

"""


@pytest.fixture
def run(tmp_path):
    """Runs a program, and gives what it prints."""
    places = {name: tmp_path / name for name in ("temporary", "working")}
    for place in places.values():
        place.mkdir()

    def run(program, code=0):
        source = str(Path(dpselect.__file__).parents[1])
        path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "TMPDIR": str(places["temporary"]), "PYTHONPATH": path}
        command = [sys.executable, "-c", SPILL + program]
        done = subprocess.run(
            command, env=environment, cwd=places["working"], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        assert not list(places["working"].iterdir())
        return json.loads(done.stdout or "null")

    return run


def left(tmp_path):
    return sorted((tmp_path / "temporary").iterdir())


def contents(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


KILL = "connection, files = spilled(); print(json.dumps(files), flush=True); os.kill(os.getpid(), signal.SIGKILL)"


def test_other_users_cannot_enter_and_nothing_can_be_read(run, tmp_path):
    """Looked at in what a killed process leaves, when its files are those of a running one."""
    paths = run(KILL, code=-9)
    [folder] = left(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert paths
    assert all(folder in Path(path).parents for path in paths)
    data = contents(folder)
    assert len(data) > 1_000_000
    assert b"PATIENT" not in data


def test_without_our_options_it_could_be_read(tmp_path):
    """The test above can fail."""
    connection = duckdb.connect(
        config={"temp_directory": str(tmp_path / "plain"), "memory_limit": "60MB", "threads": 1}
    )
    connection.execute(f"CREATE TABLE t AS {ROWS}")
    assert b"PATIENT" in contents(tmp_path / "plain")


@LOCKED
def test_what_a_killed_process_leaves_is_removed_by_the_next(run, tmp_path):
    run(KILL, code=-9)
    [orphan] = left(tmp_path)
    [own] = run("connect(); print(json.dumps(os.listdir(os.environ['TMPDIR'])))")
    assert own != orphan.name
    assert not left(tmp_path)


ENDS = {
    "with an open connection": ("connection, _ = spilled()", 0),
    "with a closed one": ("connection, _ = spilled(); connection.close()", 0),
    "with an error": ("connection, _ = spilled(); raise ValueError", 1),
    "with a code": ("connection, _ = spilled(); sys.exit(3)", 3),
    "from a thread": ("import threading; t = threading.Thread(target=spilled); t.start(); t.join()", 0),
    "with a child": ("import subprocess; spilled(); subprocess.run([sys.executable, '-c', 'pass'])", 0),
    "as a child of multiprocessing": (
        "import multiprocessing; c = multiprocessing.get_context('fork').Process(target=spilled); c.start(); c.join()",
        0,
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_when_a_process_ends(end, run, tmp_path):
    if "fork" in ENDS[end][0] and not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    run(*ENDS[end])
    assert not left(tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_has_a_folder_of_its_own(end, run, tmp_path):
    """Neither removes that of the other, and the parent still has its lock when the child is gone."""
    program = f"""
import subprocess
def folder():
    return os.path.dirname(spill_path())
from dpselect.tables.duckdb.source import spill_path
parent, (reader, writer) = folder(), os.pipe()
if not os.fork():
    os.write(writer, folder().encode())
    {end}
os.close(writer)
os.wait()
child = os.read(reader, 1000).decode()
start = "from dpselect.tables.duckdb.source import connect; connect()"
subprocess.run([sys.executable, "-c", start], check=True)
print(json.dumps([parent != child, os.path.isdir(parent), os.path.isdir(child)]))
"""
    assert run(program) == [True, True, False]
    assert not left(tmp_path)


@LOCKED
def test_only_orphans_of_this_user_are_removed(run, tmp_path):
    temporary, outside = tmp_path / "temporary", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (temporary / f"{spill._PREFIX}link").symlink_to(outside)
    (temporary / f"{spill._PREFIX}file").touch()
    (temporary / "other").mkdir()
    for name in ("an_orph4", "foreign_", "notmarkd", "my-notes"):
        (temporary / f"{spill._PREFIX}{name}").mkdir()
        if name != "notmarkd":
            (temporary / f"{spill._PREFIX}{name}" / spill._MARK).touch()
    (temporary / f"{spill._PREFIX}an_orph4" / "link").symlink_to(outside)
    if os.geteuid() == 0:
        os.chown(temporary / f"{spill._PREFIX}foreign_", 12345, 12345)
    else:
        (temporary / f"{spill._PREFIX}foreign_" / spill._MARK).unlink()
    kept = [path for path in left(tmp_path) if not path.name.endswith("an_orph4")]
    run("connect()")
    assert left(tmp_path) == kept
    assert (outside / "kept").exists()


def test_a_folder_that_is_taken_away_is_made_again(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = spill._Own()
    first = Path(own.path()).parent
    shutil.rmtree(first)
    second = Path(own.path()).parent
    assert second.is_dir()
    assert second != first
    own.forget()


@LOCKED
def test_a_folder_that_another_process_removes_before_its_lock_is_made_again(monkeypatch, tmp_path):
    """Between its making and its lock it looks like that of a dead process."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    flock, taken = spill._fcntl.flock, []

    def removed_first(descriptor, how):
        if not taken:
            [folder] = tmp_path.iterdir()
            taken.append(folder)
            folder.rmdir()
        return flock(descriptor, how)

    monkeypatch.setattr(spill._fcntl, "flock", removed_first)
    own = spill._Own()
    folder = Path(own.path()).parent
    assert folder.is_dir()
    assert [folder] != taken
    own.forget()


def test_without_a_folder_nothing_is_spilled(monkeypatch):
    """No folder of the system: the rows do not go elsewhere instead."""

    def refused(**_):
        raise PermissionError

    monkeypatch.setattr("tempfile.mkdtemp", refused)
    assert spill._Own().path() == ""


def patients(folder):
    rows = pa.table(
        {"p": [f"PATIENT-{i:09d}-of-a-name-that-takes-memory" for i in range(600_000)], "d": ["x"] * 600_000}
    )
    pq.write_table(rows, folder / "t.parquet")
    return dpselect.open_table(folder / "t.parquet", person="p")


def test_a_question_spills_there_and_nowhere_else(tmp_path, monkeypatch):
    """It needs more memory than it has: without the folder it fails."""
    monkeypatch.chdir(tmp_path)
    outcomes = []
    for folder in (None, ""):
        table = patients(tmp_path)
        connection = table._engine._connection
        connection.execute("SET memory_limit = '40MB'; SET threads = 1")
        [place] = connection.execute(WHERE).fetchone()
        assert stat.S_IMODE(Path(place).parent.stat().st_mode) == 0o700
        assert not Path(place).exists()
        if folder is not None:
            connection.execute("SET temp_directory = ''")
        try:
            outcomes.append(table.mode("d", candidates=["x", "y"], epsilon=50).value)
        except EngineFailure:
            outcomes.append("failure")
        assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    assert outcomes == ["x", "failure"]


def test_a_worker_of_spark_spills_nothing():
    """It is ended without notice, and sees one block of rows at a time."""
    assert connect_in_worker().execute(WHERE).fetchone() == ("",)


def test_there_is_one_way_to_a_connection():
    sources = Path(dpselect.__file__).parent.rglob("*.py")
    assert len([path for path in sources if "duckdb.connect(" in path.read_text()]) == 1
