"""Reads the copies of the IWPC Warfarin table: recognised by content, checked, dropped rows counted.

Three copies are known: a CSV used in courses (UTF-8 with a byte order mark, CRLF, a blank
last row, unnamed columns), the workbook of the source with its sheets `Metadata` and `Subject Data`,
and a CSV that a spreadsheet saved again (`2-3` became `3-Feb`, `10 - 19` became `19-Oct`, in columns
that are not read here). Columns are found by the letters and digits of their names.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidestep.core.arrays import FloatArray
from sidestep.errors import InputError, NotFoundError

STATINS = (
    "simvastatin",
    "atorvastatin",
    "fluvastatin",
    "lovastatin",
    "pravastatin",
    "rosuvastatin",
    "cerivastatin",
)
SHEET = "Subject Data"
MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "null"))
HEADER_WITHIN = 20  # rows; a title may stand above the names of the columns
DELIMITERS = (",", "\t", ";")
LFS = b"version https://git-lfs.github.com/spec"
ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"  # workbooks of today and of 1997
UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Column(NamedTuple):
    """A column that is read: our name, the beginning of its name in the table, its possible values."""

    word: str
    name: str
    low: float = 0.0
    high: float = 0.0  # 0: text
    allowed: str = ""


SUBJECT = Column("subject", "PharmGKB Subject ID")
DOSE = Column(
    "dose", "Therapeutic Dose of Warfarin", np.nextafter(0, 1), 350, "above 0 to 350 mg/week"
)
INR = Column("INR", "INR on Reported Therapeutic Dose of Warfarin", 0.3, 15, "from 0.3 to 15")
STABLE = Column("stability", "Subject Reached Stable Dose of Warfarin", 0, 1, "0 or 1")
GENOTYPE = Column("VKORC1 genotype", "VKORC1 genotype: -1639 G>A (3673)")


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows were kept and dropped; each dropped row counts once, for its first reason."""

    rows: int
    # reason and number, in the order in which they are checked
    dropped: tuple[tuple[str, int], ...]
    kept: int

    def summary(self) -> str:
        """One aligned line per reason."""
        parts = [(f"  {reason}", count) for reason, count in self.dropped if count]
        lines = [("rows in the table", self.rows), *parts, ("records kept", self.kept)]
        width = max(len(label) for label, _ in lines)
        return "\n".join(f"{label:<{width}} {count:>6}" for label, count in lines)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The complete cases of a table: what each subject took, and what was seen."""

    columns: tuple[str, ...]  # "dose", then the drugs
    taken: FloatArray  # (n, d): mg/week, then 0 or 1
    stability: FloatArray  # (n,), 0 or 1
    inr: FloatArray  # (n,)
    tally: Tally


def read_records(path: Path | str, drugs: Sequence[str], *, genotype: bool) -> Records:
    """Complete cases on dose, drugs, INR, stability and, if asked, a known VKORC1 genotype.

    A file that is read again unchanged is not parsed again.
    """
    path = Path(path).expanduser()
    try:
        found = path.stat()
    except FileNotFoundError:
        raise NotFoundError(f"expected the IWPC Warfarin table, got no file at {path}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if path.is_dir():
        raise _refusal(path, "a folder")
    version = (path.resolve(), found.st_mtime_ns, found.st_size)
    return _records(path, version, tuple(drugs), genotype=genotype)


@lru_cache(maxsize=8)
def _records(path: Path, version: object, drugs: tuple[str, ...], *, genotype: bool) -> Records:
    taken = (DOSE, *(Column(drug, drug.capitalize(), 0, 1, "0 or 1") for drug in drugs))
    numbers = (*taken, INR, STABLE)
    wanted = (SUBJECT, *numbers, *((GENOTYPE,) if genotype else ()))
    rows, header, place = _table(path, wanted)
    body = [
        (n, row) for n, row in enumerate(rows[header + 1 :], header + 2) if any(map(str.strip, row))
    ]
    _check_width(path, body, len(rows[header]))
    cells = {column: [_cell(row, place[column]) for _, row in body] for column in wanted}
    at = [number for number, _ in body]
    _check_subjects(path, cells[SUBJECT], at)
    values = {column: _numbers(path, column, cells[column], at) for column in numbers}
    known = {column: np.isfinite(values[column]) for column in numbers}
    for column in set(wanted) - set(numbers):
        known[column] = np.array(
            [cell.lower() not in MISSING for cell in cells[column]], dtype=bool
        )
    blank = len(rows) - header - 1 - len(body)
    keep, tally = _tally(len(body), blank, [(c.word, known[c]) for c in wanted])
    if not tally.kept:
        raise _refusal(path, f"no complete record among {tally.rows} rows")
    kept = np.column_stack([values[column][keep] for column in taken])
    arrays = (kept, values[STABLE][keep], values[INR][keep])
    for array in arrays:
        array.setflags(write=False)
    return Records(tuple(column.word for column in taken), *arrays, tally)


def _tally(
    rows: int, blank: int, known: Sequence[tuple[str, NDArray[np.bool_]]]
) -> tuple[NDArray[np.bool_], Tally]:
    """Which rows are complete, and why the others are not."""
    keep = np.ones(rows, dtype=bool)
    dropped = [("blank", blank)]
    for word, there in known:
        dropped.append((f"{word} not known", int((keep & ~there).sum())))
        keep &= there
    return keep, Tally(rows + blank, tuple(dropped), int(keep.sum()))


def _table(path: Path, wanted: Sequence[Column]) -> tuple[list[list[str]], int, dict[Column, int]]:
    """Rows as text, the row of the header, and where each wanted column stands."""
    rows, header, places = _with_header(path, wanted)
    missing = [column.name for column in wanted if column not in places]
    if missing:
        names = f"column{'s' * (len(missing) > 1)} {', '.join(missing)}"
        raise _refusal(path, f"a table without the {names}")
    for column, hits in places.items():
        if len(hits) > 1:
            raise _refusal(path, f"a table with {len(hits)} columns {column.name}")
    return rows, header, {column: hits[0] for column, hits in places.items()}


def _with_header(
    path: Path, wanted: Sequence[Column]
) -> tuple[list[list[str]], int, dict[Column, list[int]]]:
    """Of all readings of the file and their rows, the one that names most of the wanted columns."""
    best: tuple[list[list[str]], int, dict[Column, list[int]]] = ([], 0, {})
    for rows in _grids(path):
        for number, row in enumerate(rows[:HEADER_WITHIN]):
            places = _places(row, wanted)
            if len(places) > len(best[2]):
                best = rows, number, places
            if len(places) == len(wanted):
                return best
    return best


def _places(row: Sequence[str], wanted: Sequence[Column]) -> dict[Column, list[int]]:
    """Wanted columns that a row names: by the whole name, else by how it begins."""
    names = [_letters(cell) for cell in row]
    places = {}
    for column in wanted:
        name = _letters(column.name)
        hits = [at for at, other in enumerate(names) if other == name]
        hits = hits or [at for at, other in enumerate(names) if other.startswith(name)]
        if hits:
            places[column] = hits
    return places


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _grids(path: Path) -> Iterator[list[list[str]]]:
    """The cells of the file: of its sheet, or of its text under each delimiter."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if content.startswith((ZIP, OLE)):
        yield _sheet(path, content)
        return
    text = _text(path, content)
    for delimiter in DELIMITERS:
        try:
            yield list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        except csv.Error as error:
            raise _refusal(path, f"a text that is no CSV ({error})") from error


def _text(path: Path, content: bytes) -> str:
    """The text of a CSV, or one sentence that says what the file is instead."""
    start = content[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not content.strip(b"\xef\xbb\xbf \t\r\n,;"):
        raise _refusal(path, "an empty file")
    if start.startswith(LFS):
        raise _refusal(path, "a Git LFS pointer to a file (git lfs pull fetches the file itself)")
    if start.startswith(b"<") or b"<html" in start:
        raise _refusal(path, "a saved web page (download the file, not the page that shows it)")
    if start.startswith(b"%pdf"):
        raise _refusal(path, "a PDF")
    if content.startswith(UTF16):
        return content.decode("utf-16", errors="replace")
    if b"\0" in content:
        raise _refusal(path, "a binary file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _sheet(path: Path, content: bytes) -> list[list[str]]:
    """The cells of the sheet `Subject Data`."""
    try:
        from python_calamine import CalamineWorkbook  # noqa: PLC0415  (only for workbooks)
    except ImportError:
        raise InputError(
            f"{path} is a workbook, and reading it needs python-calamine: "
            "pip install 'sidestep[data]'"
        ) from None
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = workbook.sheet_names
        sheet = next((name for name in names if _letters(name) == _letters(SHEET)), None)
        rows = workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=False) if sheet else []
    except Exception as error:
        raise _refusal(path, f"a workbook that cannot be opened ({error})") from error
    if sheet is None:
        raise _refusal(path, f"a workbook without the sheet {SHEET!r} (it has {', '.join(names)})")
    return [[str(cell) for cell in row] for row in rows]


def _cell(row: Sequence[str], at: int) -> str:
    """A cell; spreadsheets leave out the empty ones at the end of a row."""
    return row[at].strip() if at < len(row) else ""


def _numbers(path: Path, column: Column, cells: Sequence[str], at: Sequence[int]) -> FloatArray:
    """The column as numbers, NaN where nothing is known; every number must be possible."""
    values = np.full(len(cells), np.nan)
    for k, cell in enumerate(cells):
        if cell.lower() in MISSING:
            continue
        try:
            value = float(cell)
        except ValueError:
            value = np.nan
        if not column.low <= value <= column.high or (column.high == 1 and value not in (0, 1)):
            raise InputError(
                f"row {at[k]}, column {column.name}: must be {column.allowed} or NA, got {cell!r} "
                f"in {path}"
            )
        values[k] = value
    return values


def _check_subjects(path: Path, subjects: Sequence[str], at: Sequence[int]) -> None:
    """Raise if a subject is in the table twice."""
    seen: dict[str, int] = {}
    for subject, number in zip(subjects, at, strict=True):
        if subject in seen:
            raise InputError(
                f"row {number}: every subject must stand in one row, got {subject} of row "
                f"{seen[subject]} again in {path}"
            )
        if subject.lower() not in MISSING:
            seen[subject] = number


def _check_width(path: Path, body: Sequence[tuple[int, list[str]]], width: int) -> None:
    """Raise if a row has more cells than the header: its columns are shifted."""
    for number, row in body:
        if any(cell.strip() for cell in row[width:]):
            raise InputError(
                f"row {number}: must have the {width} cells of the header, got {len(row)} in {path}"
            )


def _refusal(path: Path, what: str) -> InputError:
    return InputError(f"expected the IWPC Warfarin table, got {what}: {path}")
