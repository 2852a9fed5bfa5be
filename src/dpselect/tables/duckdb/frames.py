"""Convert data frames for DuckDB: no value of a row makes it fail, and no type is guessed from the rows.

What cannot be read becomes a missing value: an object whose str fails, a text that is not valid UTF-8, and a timestamp
beyond 64-bit microseconds. Only the columns that a question needs are converted, and numbers are not copied.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from dpselect.errors import InvalidType
from dpselect.tables.duckdb.source import Frame, check_names

Array: TypeAlias = Any  # an Arrow array, in one piece or in chunks

# The number of texts converted at once. If one is odd, all of them are converted one by one.
_TOGETHER = 4_096
_TEXT = pa.large_string()
_PER_SECOND = {"s": 1, "ms": 10**3}
_LARGEST = 2**63 - 1


def frame_of(frame: Any) -> Frame:
    """The columns of a pandas or polars DataFrame, of Arrow data, or of another object that DuckDB scans."""
    if isinstance(frame, pa.RecordBatchReader):
        raise InvalidType("source is a stream that can be read only once: read it into a table first")
    if isinstance(frame, (pads.FileSystemDataset, pads.UnionDataset)):
        # Its files may differ from its schema, now or later, and then a row would decide whether it can be read.
        raise InvalidType("source is an Arrow dataset of files: give their folder or a pattern, or source.to_table()")
    kinds: dict[tuple[str, str], type[PandasFrame | PolarsFrame]] = {
        ("pandas", "DataFrame"): PandasFrame,
        ("polars", "DataFrame"): PolarsFrame,
        ("polars", "LazyFrame"): PolarsFrame,
    }
    known = ((base.__module__.partition(".")[0], base.__name__) for base in type(frame).__mro__)
    found = next((kinds[base] for base in known if base in kinds), ArrowFrame)(frame)
    check_names(found.names)
    return found


class PandasFrame(Frame):
    """A pandas DataFrame, read column by column without a common type."""

    def stated(self) -> list[tuple[Any, Any]]:
        # The categories of a categorical are not a part of its type.
        dtypes = self._frame.dtypes.items()
        return [(n, ("category", d.categories.dtype) if hasattr(d, "categories") else d) for n, d in dtypes]

    def is_untyped(self, column: str) -> bool:
        return str(self._frame.dtypes[column]) == "object"

    def scanned(self, names: Sequence[str] | None) -> pa.Table:
        frame = self._frame.iloc[:0] if names is None else self._frame
        return pa.table({name: _from_pandas(frame[name]) for name in (self.names if names is None else names)})


def _from_pandas(series: Any) -> Array:
    dtype = series.dtype
    kind, readers = (dtype.kind, _NUMPY) if isinstance(dtype, np.dtype) else (type(dtype).__name__, _EXTENSIONS)
    reader = readers.get(kind)
    if reader is None:
        name = dtype.name.partition("[")[0]  # the name of a sparse type includes a value
        raise InvalidType(f"source has a column of the pandas type {name}, which cannot be read: drop or cast it")
    array = reader(series)
    return _without_failures(array)


def _as_it_is(series: Any) -> Array:
    return pa.array(series, from_pandas=True)


def _from_objects(series: Any) -> Array:
    return texts(series.to_numpy(dtype=object))


def _from_strings(series: Any) -> Array:
    return (_from_objects if series.dtype.storage == "python" else _as_it_is)(series)


def _from_floats(series: Any) -> Array:
    # DuckDB has no 16-bit floats.
    wide = np.dtype(np.float32) if series.dtype.itemsize == 2 else series.dtype
    return pa.array(series.to_numpy(dtype=wide), from_pandas=True)


def _from_masked_floats(series: Any) -> Array:
    # NaN counts as missing, even where pandas distinguishes the two.
    return pa.array(series.to_numpy(dtype=series.dtype.numpy_dtype, na_value=np.nan), from_pandas=True)


def _from_categories(series: Any) -> Array:
    # The type is that of the categories, even of those that do not occur.
    categories = _from_pandas(series.cat.categories)
    if isinstance(categories, pa.ChunkedArray):
        categories = categories.combine_chunks()
    codes = series.cat.codes.to_numpy()
    is_known = np.append(categories.is_valid().to_numpy(zero_copy_only=False), False)  # the code -1 is the last
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=~is_known[codes]), categories)


# By the kind of a NumPy dtype, and by the name of a pandas dtype.
_NUMPY: dict[str, Callable[[Any], Array]] = {
    "O": _from_objects,
    "f": _from_floats,
    **dict.fromkeys("biuMm", _as_it_is),
}
_EXTENSIONS: dict[str, Callable[[Any], Array]] = {
    **dict.fromkeys((f"{sign}Int{bits}Dtype" for sign in ("", "U") for bits in (8, 16, 32, 64)), _as_it_is),
    **dict.fromkeys(("BooleanDtype", "DatetimeTZDtype", "ArrowDtype"), _as_it_is),
    **dict.fromkeys(("Float32Dtype", "Float64Dtype"), _from_masked_floats),
    "StringDtype": _from_strings,
    "CategoricalDtype": _from_categories,
}


class PolarsFrame(Frame):
    """A polars DataFrame or LazyFrame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self._types = dict(self._opened)

    def stated(self) -> list[tuple[Any, Any]]:
        return list(self._frame.collect_schema().items())

    def is_untyped(self, column: str) -> bool:
        return str(self._types[column]) == "Object"

    def scanned(self, names: Sequence[str] | None) -> Any:
        import polars as pl  # noqa: PLC0415 - imported when used
        from polars import selectors  # noqa: PLC0415 - imported when used

        if names is None:
            types = {name: pl.String if self.is_untyped(name) else type_ for name, type_ in self._types.items()}
            return pl.DataFrame(schema=types)
        # By position: since polars 1.36, names such as "*" are patterns in selectors, too.
        part = self._frame.select(selectors.by_index(*(self.names.index(name) for name in names)))
        if not any(self.is_untyped(name) or _is_zoned(self._types[name]) for name in names):
            return part
        whole = part.collect() if hasattr(part, "collect") else part
        return pa.table({name: self._converted(whole.get_column(name)) for name in names})

    def _converted(self, series: Any) -> Array:
        return texts(series.to_list()) if self.is_untyped(series.name) else _without_failures(series.to_arrow())


def _is_zoned(dtype: Any) -> bool:
    # DuckDB fails on some values of such a type.
    return getattr(dtype, "time_unit", None) == "ms" and getattr(dtype, "time_zone", None) is not None


class ArrowFrame(Frame):
    """An Arrow table, record batch or dataset in memory, or another object that DuckDB knows how to scan."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        schema = getattr(frame, "schema", None)
        self._schema = schema if isinstance(schema, pa.Schema) else pa.schema([])
        self.names = self._schema.names

    def stated(self) -> list[tuple[Any, Any]]:
        # Arrow data in memory cannot be changed.
        return []

    def scanned(self, names: Sequence[str] | None) -> Any:
        if any(_fails(self._schema.field(name).type) for name in names or () if name in self.names):
            return _stream([self._frame], list(names or ()), {})
        return self._frame


def parquet_stream(
    paths: Sequence[Path], names: Sequence[str], folders: Mapping[str, Sequence[str | None]]
) -> pa.RecordBatchReader:
    """These columns of Parquet files as Arrow reads them, and columns of text that have one value in each file."""
    # Timestamps of 96 bits do not fit nanoseconds.
    format_ = pads.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    return _stream([pads.dataset(path, format=format_) for path in paths], names, folders)


def are_read_alike(paths: Sequence[Path], names: Sequence[str]) -> bool:
    """Whether DuckDB and Arrow read the same values of these columns of Parquet files."""
    try:
        types = [pq.read_schema(path).field(name).type for path in paths for name in names]
    except (pa.ArrowException, OSError, KeyError):
        return False
    # 96-bit timestamps are nanoseconds for Arrow.
    kinds = ("boolean", "integer", "float32", "float64", "string", "large_string", "decimal128", "date32")
    plain = [any(getattr(pa.types, f"is_{kind}")(_unpacked(type_)) for kind in kinds) for type_ in types]
    return all(plain[i] or (pa.types.is_timestamp(type_) and type_.unit != "ns") for i, type_ in enumerate(types))


def _stream(
    parts: Sequence[Any],
    names: Sequence[str],
    constant: Mapping[str, Sequence[str | None]],
) -> pa.RecordBatchReader:
    own = {name: _readable(parts[0].schema.field(name).type) for name in names}
    schema = pa.schema({**own, **dict.fromkeys(constant, pa.string())})

    def batches() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(parts):
            for batch in _batches(part, names):
                columns = [_microseconds(batch.column(name)).cast(type_) for name, type_ in own.items()]
                columns += [pa.repeat(pa.scalar(each[number], pa.string()), len(batch)) for each in constant.values()]
                yield pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _batches(part: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if hasattr(part, "scanner"):
        return iter(part.scanner(columns={name: pads.field(name) for name in names}).to_batches())
    return iter([part] if isinstance(part, pa.RecordBatch) else part.select(list(names)).to_batches())


def _is_coarse(type_: pa.DataType) -> bool:
    type_ = _unpacked(type_)
    return pa.types.is_timestamp(type_) and type_.unit in _PER_SECOND


def _fails(type_: pa.DataType) -> bool:
    # DuckDB converts these when it scans, and fails on some values.
    return _is_coarse(type_) and _unpacked(type_).tz is not None


def _readable(type_: pa.DataType) -> pa.DataType:
    # If there are several types, that of Parquet.
    type_ = _unpacked(type_)
    if isinstance(type_, pa.BaseExtensionType):
        return type_.storage_type
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal256(type_):
        return pa.float64()
    return pa.timestamp("us", type_.tz) if _is_coarse(type_) else type_


def _unpacked(type_: pa.DataType) -> pa.DataType:
    packed = pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_)
    return _unpacked(type_.value_type) if packed else type_


def _microseconds(array: Array) -> Array:
    # Timestamps beyond 64 bits become missing.
    if not _is_coarse(array.type):
        return array
    while array.type != _unpacked(array.type):
        decode = pc.run_end_decode if pa.types.is_run_end_encoded(array.type) else pc.dictionary_decode
        array = decode(array)
    most = _LARGEST // (10**6 // _PER_SECOND[array.type.unit])
    whole = array.cast(pa.int64())
    is_near = pc.and_(pc.less_equal(whole, most), pc.greater_equal(whole, -most))
    near = pc.if_else(is_near, whole, pa.scalar(None, pa.int64()))
    return near.cast(array.type).cast(_readable(array.type))


def _without_failures(array: Array) -> Array:
    return _microseconds(array) if _fails(array.type) else array


def texts(values: Sequence[Any] | np.ndarray[Any, Any]) -> pa.ChunkedArray:
    """The `str` of Python objects. None, NaN, NA and NaT, and objects whose `str` fails, are missing."""
    parts = (values[start : start + _TOGETHER] for start in range(0, len(values), _TOGETHER))
    return pa.chunked_array([_texts_together(part) for part in parts], _TEXT)


_PLAIN = {"str", "NoneType", "float", "NAType", "NaTType"}
_MISSING = {"NoneType", "NAType", "NaTType", "MaskedConstant"}


def _texts_together(values: Sequence[Any] | np.ndarray[Any, Any]) -> pa.Array:
    # Objects that Arrow refuses, or would read differently, are converted one by one.
    try:
        if {kind.__name__ for kind in set(map(type, values))} <= _PLAIN:
            return pa.array(values, _TEXT, from_pandas=True)
    except Exception:  # noqa: S110 - a number, a text that is not valid UTF-8, or an odd class
        pass
    return pa.array(list(map(_text, values)), _TEXT)


def _text(value: Any) -> str | None:
    try:
        kind = type(value)
        if kind.__name__ in _MISSING or (float in kind.__mro__ and math.isnan(value)):
            return None
        return str.encode(str(value)).decode()
    except Exception:
        return None
