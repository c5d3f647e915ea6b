"""Reads tables: any data frame, a dict of columns, a CSV file, and with extras parquet or a workbook."""

import csv
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from sidestep.errors import InputError
from sidestep.studies.values import shown

Columns = dict[str, list[Any]]


def columns_of(table: Any, what: str) -> Columns:
    """The columns of a table by name, all of the same length."""
    if isinstance(table, (str, Path)):
        return read_table(Path(table))
    columns = _mapped(table) if isinstance(table, Mapping) else _framed(table, what)
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise InputError(f"{what} must have columns of one length, got {sorted(lengths)}")
    return columns


def _mapped(table: Mapping[Any, Any]) -> Columns:
    for name, column in table.items():
        if isinstance(column, str) or not hasattr(column, "__iter__"):
            raise InputError(f"a column must be a list of values, got {shown(column)} for {name!r}")
    return {str(name): _plain(column) for name, column in table.items()}


def _framed(table: Any, what: str) -> Columns:
    if isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table) and table:
        names = dict.fromkeys(name for row in table for name in row)
        return {str(name): [row.get(name) for row in table] for name in names}
    frames = import_module("narwhals")
    try:
        frame = frames.from_native(table, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"{what} must be a frame, a dict of columns or a path, got {type(table).__name__}"
        ) from error
    return {str(name): _cells(frame[name]) for name in frame.columns}


def _cells(column: Any) -> list[Any]:
    """The cells of a column; missing values are None."""
    missing = column.is_null().to_list()
    return [None if gone else cell for cell, gone in zip(column.to_list(), missing, strict=True)]


def _plain(column: Any) -> list[Any]:
    return list(column.tolist() if hasattr(column, "tolist") else column)


def read_table(path: Path) -> Columns:
    """The columns of a file, by its ending: .csv, .parquet, or .xlsx."""
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".xlsx": _read_workbook}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"a table must end in .csv, .parquet or .xlsx, got {path.name!r}")
    try:
        return reader(path)
    except OSError as error:
        raise InputError(
            f"{path} must be a file that can be read, got: {error.strerror}"
        ) from error


def csv_columns(text: str, what: str) -> Columns:
    """The columns of a CSV text with a heading; separated by tab, semicolon or comma."""
    heading = text.strip().partition("\n")[0]
    mark = next((each for each in ("\t", ";", ",") if each in heading), ",")
    try:
        lines = csv.reader(StringIO(text, newline=""), delimiter=mark, strict=True)
        rows = [[cell.strip() for cell in row] for row in lines if any(row)]
    except csv.Error as error:
        raise InputError(f"{what} must be a table as CSV, got: {error}") from error
    return _headed(rows, what)


def _read_csv(path: Path) -> Columns:
    try:
        return csv_columns(path.read_bytes().decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be a CSV file in UTF-8, got: {error}") from error


def _read_parquet(path: Path) -> Columns:
    frame = _extra("polars", "lab", path).read_parquet(path)
    return {name: frame[name].to_list() for name in frame.columns}


def _read_workbook(path: Path) -> Columns:
    book = _extra("python_calamine", "data", path).CalamineWorkbook.from_path(path)
    rows = book.get_sheet_by_index(0).to_python()
    return _headed([row for row in rows if any(cell != "" for cell in row)], str(path))


def _extra(module: str, extra: str, path: Path) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"reading {path.suffix} needs the extra {extra!r} (pip install 'sidestep[{extra}]'), "
            f"got {path.name!r}; CSV needs none"
        ) from error


def _headed(rows: Sequence[Sequence[Any]], what: str) -> Columns:
    """Columns from rows under a heading."""
    if len(rows) < 2:
        raise InputError(f"{what} must have a heading and at least one row, got {len(rows)} lines")
    names = [str(name).strip() for name in rows[0]]
    if len(set(names)) < len(names):
        raise InputError(f"{what} must have columns of different names, got {shown(names)}")
    for number, row in enumerate(rows[1:]):
        if len(row) != len(names):
            raise InputError(f"row {number} of {what} must have {len(names)} cells, got {len(row)}")
    return {name: [row[j] for row in rows[1:]] for j, name in enumerate(names)}
