"""No error keeps a foreign one as its context, also not with `from None`: its message may quote the data."""

import ast
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect import PermuteAndFlip, errors
from dpselect._validate import withheld
from dpselect.cli.research import imported
from dpselect.errors import DPSelectError, EngineFailure, InvalidValue
from dpselect.mechanisms.summary import Summary
from dpselect.score_files import read_scores
from dpselect.tables.spark.workers import LineReader, Range, Reader, SparkChooser
from tests.carried import carried

SOURCE = Path(dpselect.__file__).parent
ROOMS = ("tables", "audit", "tuning", "cli", "mechanisms", "explore")
FILES = ("_scores.py", "score_files.py", "_messages.py", "errors.py", "_validate.py", "release.py")

# Errors of this package say nothing of the data, by their own tests; of the system's, only a path or a module's name.
OURS = {name for name, kind in vars(errors).items() if isinstance(kind, type)} | {"NotExact", "NotFinite", "TooLong"}
OF_THE_SYSTEM = {"OSError", "FileNotFoundError", "IsADirectoryError", "ImportError", "ModuleNotFoundError"}
# Where what is caught can quote only what is public.
PUBLIC = {
    ("mechanisms/parameters.py", "neighbours_of"): "the name of a relation",
    ("_scores.py", "_guarded"): "passes a MemoryError on, which holds a size",
    ("tables/kinds.py", "from_text"): "a candidate of the command line",
    ("tables/spark/source.py", "session"): "before there is a table",
    ("tables/spark/source.py", "check_workers"): "a job without data",
    ("release.py", "from_json"): "a receipt",
    ("cli/questions.py", "_items"): "a public list",
    ("cli/questions.py", "_file_lines"): "a public list",
    ("cli/ledger.py", "_read_receipt"): "a receipt",
    ("explore/app.py", "bound_socket"): "a port",
}


def caught(handler: ast.ExceptHandler) -> set[str]:
    """The names of the exceptions that a handler catches."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind).rpartition(".")[2] if kind is not None else "BaseException" for kind in kinds}


def foreign(source: str) -> list[tuple[str, ast.ExceptHandler]]:
    """Each raise while a foreign error is handled, which then is its context: in which function, and the handler."""
    found: list[tuple[str, ast.ExceptHandler]] = []

    def look(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.ExceptHandler) and not caught(node) <= OURS | OF_THE_SYSTEM:
            found.extend((function, node) for each in ast.walk(node) if isinstance(each, ast.Raise))
        for inner in ast.iter_child_nodes(node):
            look(inner, function)

    look(ast.parse(source), "")
    return found


def files() -> list[str]:
    inside = [str(path.relative_to(SOURCE)) for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
    return [*FILES, *inside]


def test_no_error_is_raised_while_a_foreign_one_is_handled() -> None:
    """But where the list says so; an entry that nothing needs any more would hide the next offence there."""
    found = [(file, *one) for file in files() for one in foreign((SOURCE / file).read_text(encoding="utf-8"))]
    unexcused = [f"{file}:{one.lineno} in {where}" for file, where, one in found if (file, where) not in PUBLIC]
    assert unexcused == []
    assert {(file, where) for file, where, _ in found} == set(PUBLIC), "an entry that nothing needs hides an offence"


OFFENCES = [
    "except Exception: raise Ours('x') from None",
    "except Exception as error: raise Ours('x') from error",
    "except (OSError, ValueError): raise Ours('x')",
    "except duckdb.Error:\n        if True:\n            raise Ours('x') from None",
    "except: raise",
]
HARMLESS = ["except Exception:\n        pass\n    raise Ours('x')", "except OSError: raise Ours('x')"]


@pytest.mark.parametrize("handler", OFFENCES + HARMLESS)
def test_the_rule_finds_offences_only(handler: str) -> None:
    found = foreign(f"def f():\n    try:\n        g()\n    {handler}\n")
    assert [function for function, _ in found] == ["f"] * (handler in OFFENCES)


def fail(error: Exception) -> None:
    error.add_note("a note with the secret 7310")
    raise error


def test_what_is_withheld_is_no_context() -> None:
    for foreign in (ValueError("7310"), UnicodeDecodeError("utf-8", b"7310", 0, 1, "7310"), KeyError("7310")):
        with pytest.raises(EngineFailure, match=r"^told$") as caught_error:
            withheld(lambda foreign=foreign: fail(foreign), EngineFailure("told"))
        assert caught_error.value.__context__ is None
        assert "7310" not in carried(caught_error.value)


def test_our_own_errors_pass_and_others_that_are_not_named_too() -> None:
    with pytest.raises(InvalidValue, match=r"^ours"):
        withheld(lambda: fail(InvalidValue("ours")), EngineFailure("told"))
    with pytest.raises(KeyError):
        withheld(lambda: fail(KeyError("other")), EngineFailure("told"), ValueError)
    assert withheld(lambda: 3, DPSelectError("told")) == 3


def test_the_chain_is_seen_to_its_end() -> None:
    """A power check of what the other tests look with."""

    def translated() -> None:
        try:
            fail(ValueError("deep"))
        except ValueError:
            raise EngineFailure("told") from None

    with pytest.raises(EngineFailure) as caught_error:
        translated()
    assert "7310" in carried(caught_error.value)
    assert "deep" in carried(caught_error.value)


# Everything foreign that a test can make fail, each with the secret in its words or in what it holds.

CANARY = "canary7310"


def fails(*_: Any, **__: Any) -> Any:
    raise ValueError(f"the value {CANARY} is not allowed")


class Talking(pd.DataFrame):
    """A frame that is read once, when it is opened, and then quotes a value."""

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found if not self.attrs.get("talks") else fails()


class Stream:
    schema = None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        fails()


class Rows:
    def select_rows(self, _: Any) -> Any:
        fails()


class Unreadable:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        fails()


class Batches:
    def __iter__(self) -> Any:
        raise TypeError(CANARY)


class Column:
    def __getitem__(self, name: str) -> Any:
        raise KeyError(CANARY)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def asked(source: Any) -> Any:
    return dpselect.open_table(source).mode("x", candidates=["a"], epsilon=1)


def gone(folder: Path) -> Any:
    path = written(folder / "t.csv", b"x\na\n")
    table = dpselect.open_table(path)
    path.write_bytes(CANARY.encode() + b"\xff")
    path.unlink()
    return table.mode("x", candidates=["a"], epsilon=1)


def damaged(folder: Path) -> Any:
    path = folder / "t.parquet"
    pq.write_table(pa.table({"x": [CANARY] * 1000}), path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    return asked(written(path, bytes(data)))


def talking(_: Path) -> Any:
    frame = Talking({"x": ["a"]})
    table = dpselect.open_table(frame)
    frame.attrs["talks"] = True
    return table.mode("x", candidates=["a"], epsilon=1)


def summary(_: Path) -> Any:
    made = PermuteAndFlip(1).summary()
    made.update([1, 2])
    cells = made.to_arrow().to_pylist()[0]
    return Summary.from_arrow(pa.RecordBatch.from_pylist([{**cells, "maximum": CANARY}]))


def module(folder: Path) -> Any:
    written(folder / "talking_module.py", f"raise ValueError({CANARY!r})".encode())
    return imported("talking_module:choose", "--callable")


def read_lines(folder: Path) -> Any:
    reader = LineReader((Range(str(folder / CANARY[:3]), 0, 5),), ",", ("x",), ("x",))
    return list(reader(iter([pa.record_batch({"id": [0]})])))


FAILURES: dict[str, Callable[[Path], Any]] = {
    "a relation that fails on a value": lambda _: asked(
        duckdb.connect().sql("SELECT CAST($x AS INTEGER)::VARCHAR AS x", params={"x": CANARY})
    ),
    "a stream that fails": lambda _: asked(Stream()),
    "a frame that fails later": talking,
    "a lazy frame without a schema": lambda _: asked(pl.LazyFrame({"x": ["a"]}).select(pl.col(CANARY))),
    "a lazy frame that fails on a value": lambda _: asked(
        pl.LazyFrame({"x": [CANARY]}).select(pl.col("x").map_elements(fails, return_dtype=pl.String))
    ),
    "a file that is gone": gone,
    "a damaged file": damaged,
    "a header that is not UTF-8": lambda folder: asked(written(folder / "t.csv", f"{CANARY},".encode() + b"\xff\n")),
    "a header that does not end": lambda folder: asked(written(folder / "t.csv", f'"{CANARY},x\n'.encode())),
    "a file that is cut": lambda folder: asked(
        written(folder / "t.csv.gz", gzip.compress(f"{CANARY * 999}\n".encode())[:20])
    ),
    "a file that is not what it says": lambda folder: asked(written(folder / "t.csv.gz", CANARY.encode())),
    "a compressed file that is damaged": lambda folder: asked(
        written(folder / "t.csv.gz", gzip.compress(CANARY.encode())[:10] + b"\xff" * 40)
    ),
    "a cut Parquet file": lambda folder: asked(written(folder / "t.parquet", b"PAR1" + CANARY.encode())),
    "scores that are not UTF-8": lambda folder: read_scores(str(written(folder / "s.csv", CANARY.encode() + b"\xff"))),
    "scores that are not CSV": lambda folder: read_scores(str(written(folder / "s.csv", f'a,"{CANARY}"x'.encode()))),
    "scores that are not numbers": lambda folder: read_scores(
        str(written(folder / "s.csv", f"a,1\nb,{CANARY}".encode()))
    ),
    "scores that cannot be read": lambda _: PermuteAndFlip(1).select(Unreadable()),
    "a summary that is none": summary,
    "blocks that are none": lambda _: PermuteAndFlip(1).summary().feed(Batches()),
    "a batch without the column": lambda _: PermuteAndFlip(1).summary().feed([Column()], "x"),
    "rows of an audited mechanism": lambda _: dpselect.audit.audit(Rows(), 1, runs=100),
    "an audited function": lambda _: dpselect.audit.audit(fails, 1, runs=100),
    "a module of the user's": module,
    "a worker that reads rows": lambda _: list(
        Reader({"item": "item"}, {"item": f"error('{CANARY}')"})(iter([pa.record_batch({"item": [CANARY]})]))
    ),
    "a worker that reads lines": read_lines,
    "a worker that chooses": lambda _: list(
        SparkChooser(PermuteAndFlip(1))(iter([pa.record_batch({"grp": [CANARY], "label": [1], "individuals": [2]})]))
    ),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_no_failure_carries_a_secret(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DPSelectError) as caught_error:
        FAILURES[kind](tmp_path)
    assert CANARY not in carried(caught_error.value).replace(str(tmp_path), "")
