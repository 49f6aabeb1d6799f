"""The headers of a checkpoint's files, combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import File, FileTensor
from paramcount.checkpoints.opening.contradictions import (
    Names,
    compare_splits,
    compare_with_index,
    describe_duplicates,
    describe_missing_shards,
)
from paramcount.checkpoints.opening.indices import Index
from paramcount.errors import ParamcountError, make_printable
from paramcount.formats.files import LFS, open_regular
from paramcount.formats.gguf import GgufHeader, GgufSplit, read_gguf
from paramcount.formats.safetensors import WHAT, Header, read_header
from paramcount.formats.tensor_entries import LARGEST_HEADER, MOST_TENSORS

MOST_HEADERS = 4 * LARGEST_HEADER  # bytes of all headers together; those of DeepSeek-V3 take a tenth of it
LARGEST_POINTER = 1024  # bytes; Git LFS pointers are shorter

Watch: TypeAlias = Callable[[int, int], object]  # called with (files read, number of files)


class ShardContents(NamedTuple):
    """The contents of a checkpoint's files."""

    tensors: dict[str, FileTensor]
    files: tuple[File, ...]
    faults: tuple[str, ...]
    metadata: Mapping[str, Any]  # GGUF only
    notes: tuple[str, ...] = ()


def read_files(folder: Path, names: Sequence[str], format: str, index: Index | None, watch: Watch) -> ShardContents:
    """The contents of safetensors or GGUF files in a folder. If a file is missing, an index gives its tensors' names.

    Raises: ParamcountError if a header is invalid, or if there are more than MOST_TENSORS tensors in total.
    """
    read: Callable[[Path], Header | GgufHeader] = read_gguf if format == "gguf" else read_header
    weight_map = index.weight_map if index else {}
    tensors: dict[str, FileTensor] = {}
    files: list[File] = []
    headers: list[str] = []
    absent: dict[str, str] = {}
    duplicates: Names = {}
    splits: dict[str, GgufSplit | None] = {}
    metadata: dict[str, Any] = {}
    header_bytes = 0
    watch(0, len(names))
    for name in names:
        absence = describe_absence(folder / name) if index or len(names) > 1 else None
        if absence:
            absent[name] = absence
            files.append(File(name, folder / name, None))
        else:
            header = read(folder / name)
            if isinstance(header, GgufHeader) and not header.has_values:
                headers.append(name)
                files.append(File(name, folder / name, None))
            else:
                before = header.state.size - sum(entry.stop - entry.start for entry in header.tensors.values())
                files.append(File(name, folder / name, header.state.size, before, header.state))
            for tensor, at in header.tensors.items():
                first = tensors.get(tensor)
                if first is not None:
                    duplicates.setdefault((first.file, name), []).append(tensor)
                if first is None or weight_map.get(tensor) == name:
                    tensors[tensor] = FileTensor(
                        name, at.dtype, at.shape, at.stop - at.start, header.values_start + at.start
                    )
            header_bytes += header.values_start
            _check_limits(len(tensors), header_bytes)
            if isinstance(header, GgufHeader):
                splits[name] = header.split
                for key, value in header.metadata.items():
                    metadata.setdefault(key, value)
        watch(len(files), len(names))
    if len(absent) == len(names) and not index:
        found = f"cannot read any of its {len(names):,} files: {make_printable(names[0])} {absent[names[0]]}"
        raise ParamcountError(found, expected="at least one readable file")
    faults = [*describe_missing_shards(names, absent, index), *compare_splits(splits, len(tensors))]
    if index:
        for tensor, file in weight_map.items():
            if file in absent and tensor not in tensors:
                tensors[tensor] = FileTensor(file)
        _check_limits(len(tensors), header_bytes)
        faults += compare_with_index(index, tensors, absent)
    notes = tuple(f"{make_printable(name)} has a header and no values" for name in headers)
    return ShardContents(tensors, tuple(files), (*faults, *describe_duplicates(duplicates)), metadata, notes)


def read_index_names(folder: Path, index: Index) -> ShardContents:
    """The tensors that an index lists, without opening the files, because they are pickles."""
    tensors = {tensor: FileTensor(file) for tensor, file in index.weight_map.items()}
    files = tuple(File(name, folder / name, None) for name in index.files)
    return ShardContents(tensors, files, tuple(describe_missing_shards(index.files, {}, index)), {})


def describe_absence(path: Path) -> str | None:
    """Why a file is not available; None if it is, whatever it contains."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "is a broken link" if path.is_symlink() else "is missing"
    except OSError:
        return None  # reading the file raises the error
    if not S_ISREG(status.st_mode) or status.st_size > LARGEST_POINTER:
        return None
    with open_regular(path, WHAT) as file:
        return "is a Git LFS pointer (fetch it with git lfs pull)" if file.read(len(LFS)) == LFS else None


def _check_limits(tensors: int, header_bytes: int) -> None:
    if tensors > MOST_TENSORS:
        raise ParamcountError(f"has more than {MOST_TENSORS:,} tensors in total", expected=f"at most {MOST_TENSORS:,}")
    if header_bytes > MOST_HEADERS:
        found = f"has headers of more than {MOST_HEADERS:,} bytes in total"
        raise ParamcountError(found, expected=f"at most {MOST_HEADERS:,}")
