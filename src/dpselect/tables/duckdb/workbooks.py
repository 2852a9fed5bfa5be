"""Sheets of Excel files and OpenDocument spreadsheets as sources, read by python-calamine.

A cell has a type of its own: a number, a text, true or false, a date. A type for a column would have to be guessed from
the rows. So each cell becomes text in one canonical form, and the columns are untyped, as in a CSV file: the question
decides how they are read. A whole number has no decimal point, other numbers have as many digits as it takes to read
them back, and a timestamp at midnight is a date, because a cell does not tell the two apart. Empty cells and errors
such as #N/A are missing.

The first row is the header. The columns end where it ends: cells to the right of it have no name, and a row must not
decide how many columns there are. A number that is shown as a date or a duration, but is too large for one, makes
calamine fail on its row. That row is left out, and no other.
"""

import datetime
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any

import pyarrow as pa
from python_calamine import CalamineSheet, CalamineWorkbook, PasswordError, SheetTypeEnum

from dpselect._messages import shown_names
from dpselect._validate import attempted, withheld
from dpselect.errors import InvalidValue
from dpselect.tables.duckdb.source import Cursor, Query, Source, check_same, registered
from dpselect.tables.files import State, Watch, Workbook, checked_header, shown, state_of

_MOST_SHEETS = 20  # in a message
_TOGETHER = 10_000  # rows
_WHOLE = 10**15  # above it, a float has no digits after the point anyway
_END = object()


class Sheet(Source):
    """The rows of one sheet. They stay in memory while the file is unchanged."""

    def __init__(self, workbook: Workbook) -> None:
        self._workbook, self._lock = workbook, threading.Lock()
        self._kept: tuple[State, pa.Table] | None = None
        self._watch = Watch([workbook.path], self._header)
        self._schema = pa.schema(dict.fromkeys(self._watch.facts, pa.large_string()))

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - as of Source
        return True

    def check(self) -> None:
        check_same(self._watch.is_untouched() or self._watch.is_same())

    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> AbstractContextManager[Query]:
        if names is None:
            return registered(cursor, self._schema.empty_table())
        return registered(cursor, self._table().select(list(dict.fromkeys(names))))

    def _header(self) -> list[str]:
        with closing(self._opened()) as book:
            return self._names(self._rows(book))

    def _table(self) -> pa.Table:
        with self._lock:
            state = state_of([self._workbook.path])
            if self._kept is not None and self._kept[0] == state:
                return self._kept[1]
            with closing(self._opened()) as book:
                rows = self._rows(book)
                check_same(self._names(rows) == self._watch.facts)
                table = pa.Table.from_batches(self._batches(rows), self._schema)
            is_kept = state is not None and state.is_settled() and state == state_of([self._workbook.path])
            self._kept = (state, table) if state is not None and is_kept else None
            return table

    def _opened(self) -> CalamineWorkbook:
        path, where = str(self._workbook.path), shown(self._workbook.path)
        locked = InvalidValue(f"{where}: a password protects this file: save it without one")
        broken = InvalidValue(f"{where}: this is not a complete Excel or OpenDocument file: open and save it again")
        return withheld(lambda: withheld(lambda: CalamineWorkbook.from_path(path), locked, PasswordError), broken)

    def _rows(self, book: CalamineWorkbook) -> Iterator[list[Any]]:
        # From the first row and the first column of the sheet, each row as long as the longest one.
        where = shown(self._workbook.path)
        known = [sheet.name for sheet in book.sheets_metadata if sheet.typ is SheetTypeEnum.WorkSheet]
        listed = shown_names(known, _MOST_SHEETS)
        has = "" if listed is None else f". It has {listed}"
        name = self._workbook.sheet
        if name is None and len(known) != 1:
            raise InvalidValue(f'{where}: this file has {len(known)} sheets. Name one, as in table="Sheet1"{has}')
        if name is not None and name not in known:
            raise InvalidValue(f"{where}: there is no sheet {name[:40]!r}{has}")
        broken = InvalidValue(f"{where}: this sheet cannot be read: open and save the file again")
        return _from_the_corner(withheld(lambda: book.get_sheet_by_name(known[0] if name is None else name), broken))

    def _names(self, rows: Iterator[list[Any]]) -> list[str]:
        names = [_text(cell) or "" for cell in next(rows, [])]
        while names and not names[-1].strip():
            names.pop()
        return checked_header(names, shown(self._workbook.path))

    def _batches(self, rows: Iterator[list[Any]]) -> Iterator[pa.RecordBatch]:
        number = len(self._schema)
        columns: list[list[str | None]] = [[] for _ in range(number)]
        for row in rows:
            texts = list(map(_text, row[:number]))
            if any(text is not None for text in texts):
                for column, text in zip(columns, [*texts, *([None] * (number - len(texts)))], strict=True):
                    column.append(text)
            if len(columns[0]) == _TOGETHER:
                yield self._batch(columns)
                columns = [[] for _ in range(number)]
        yield self._batch(columns)

    def _batch(self, columns: list[list[str | None]]) -> pa.RecordBatch:
        return pa.record_batch([pa.array(column, pa.large_string()) for column in columns], schema=self._schema)


def _from_the_corner(sheet: CalamineSheet) -> Iterator[list[Any]]:
    if sheet.start is None:  # nothing is in it
        return
    above, left = sheet.start
    if above:
        yield []
    rows = sheet.iter_rows()
    for _ in range(sheet.height):
        row: Any = attempted(lambda: next(rows, _END))
        if row is _END:
            return
        if row is not None:  # otherwise one of its cells cannot be read
            yield [""] * left + row


def _text(cell: Any) -> str | None:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        is_short = cell.is_integer() and abs(cell) < _WHOLE
        return None if math.isnan(cell) else str(int(cell)) if is_short else repr(cell)
    if isinstance(cell, datetime.datetime):
        is_date = cell.time() == datetime.time()
        return cell.date().isoformat() if is_date else cell.isoformat(sep=" ")
    if isinstance(cell, (datetime.date, datetime.time)):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        seconds = cell // datetime.timedelta(seconds=1)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return str(cell) or None
