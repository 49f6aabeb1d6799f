"""Files that take a sweep chunk by chunk: CSV, Parquet and NumPy."""

from __future__ import annotations

import csv
import io
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING, Any, TextIO

from paramcount.errors import ParamcountError, make_extra_error
from paramcount.output.files import open_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

Arrays = Mapping[str, Any]  # {column: array}
Write = Callable[[Arrays], None]
TOO_LARGE = "a value of 2⁶³ or more does not fit the file"
CELLS: Mapping[object, object] = {True: "true", False: "false", None: ""}


def write_csv(file: TextIO, chunks: Iterable[Arrays]) -> None:
    """Write chunks as CSV, with true, false and an empty cell for None."""
    writer = csv.writer(file, lineterminator="\n")
    for i, columns in enumerate(chunks):
        if i == 0:
            writer.writerow(columns)
        cells = [
            array.tolist() if array.dtype.kind == "i" else [format_cell(value) for value in array.tolist()]
            for array in columns.values()
        ]
        writer.writerows(zip(*cells))


def format_cell(value: object) -> object:
    """A value in a CSV file."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return CELLS[value] if value is None or isinstance(value, bool) else value


def write_file(path: str, chunks: Iterable[Arrays], extension: str) -> None:
    """Write chunks to a file in the format of an extension in WRITERS, completely or not at all.

    Raises: ParamcountError if the file cannot be written, or a value does not fit it.
    """
    with open_atomically(path) as file, WRITERS[extension](file) as write:
        for columns in chunks:
            write(columns)


@contextmanager
def open_csv(file: IO[bytes]) -> Iterator[Write]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    has_header = False

    def write(columns: Arrays) -> None:
        nonlocal has_header
        content = io.StringIO()
        write_csv(content, [columns])
        text.write(content.getvalue() if not has_header else content.getvalue().partition("\n")[2])
        has_header = True

    yield write
    text.detach()


@contextmanager
def open_npy(file: IO[bytes]) -> Iterator[Write]:
    """A structured array, one field per column. Its header is rewritten at the end, when the length is known."""
    import numpy as np

    n, dtype = 0, np.dtype([])

    def write(columns: Arrays) -> None:
        nonlocal n, dtype
        check_integers(columns)
        if not dtype.names:
            dtype = np.dtype([(name, array.dtype) for name, array in columns.items()])
            write_header(file, 0, dtype)
        records = np.empty(len(next(iter(columns.values()))), dtype=dtype)
        for name, array in columns.items():
            records[name] = array
        file.write(records.tobytes())
        n += len(records)

    yield write
    file.seek(0)
    write_header(file, n, dtype)


@contextmanager
def open_npz(file: IO[bytes]) -> Iterator[Write]:
    """One array per column."""
    import numpy as np

    n = 0
    with ExitStack() as stack:
        parts: dict[str, tuple[IO[bytes], Any]] = {}

        def write(columns: Arrays) -> None:
            nonlocal n
            check_integers(columns)
            for name, array in columns.items():
                if name not in parts:
                    parts[name] = stack.enter_context(tempfile.TemporaryFile()), array.dtype
                parts[name][0].write(array.tobytes())
            n += len(array)

        yield write
        archive = stack.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=True))
        for name, (part, dtype) in parts.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write_header(member, n, np.dtype(dtype))
                part.seek(0)
                copyfileobj(part, member)


@contextmanager
def open_parquet(file: IO[bytes]) -> Iterator[Write]:
    """A row group per chunk."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise make_extra_error("a Parquet file", "export") from None
    with ExitStack() as stack:
        writer: Any = None

        def write(columns: Arrays) -> None:
            nonlocal writer
            check_integers(columns)
            table = pa.table({name: pa.array(array) for name, array in columns.items()})
            if writer is None:
                writer = stack.enter_context(parquet.ParquetWriter(file, table.schema))
            writer.write_table(table)

        yield write


def write_header(file: IO[bytes], n: int, dtype: Any) -> None:
    """The header of a .npy file, which has the same length for every `n`."""
    from numpy.lib import format

    header = {"descr": format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n,)}
    format.write_array_header_2_0(file, header)


def check_integers(columns: Arrays) -> None:
    """Raises: ParamcountError for a column that is not of integers or flags, or whose integers do not fit int64."""
    for name, array in columns.items():
        if array.dtype.kind in "ib" or not array.size:
            continue
        if all(type(value) is int for value in array):
            raise ParamcountError(TOO_LARGE, where=name, expected="a .csv file, which has no limit")
        raise ParamcountError("has values other than integers and flags", where=name, expected="a .csv file")


WRITERS = {".csv": open_csv, ".npy": open_npy, ".npz": open_npz, ".parquet": open_parquet}
