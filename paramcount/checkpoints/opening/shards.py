"""The files of a checkpoint put together: their headers read one by one, and what they hold."""

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
from paramcount.formats.gguf import GgufHeader, Split, read_gguf
from paramcount.formats.safetensors import WHAT, Header, read_header
from paramcount.formats.tensor_entries import LARGEST_HEADER, MOST_TENSORS

MOST_HEADERS = 4 * LARGEST_HEADER  # bytes of all headers together; those of DeepSeek-V3 have a tenth of it
LARGEST_POINTER = 1024  # bytes: Git LFS writes fewer

Watch: TypeAlias = Callable[[int, int], object]


class ShardContents(NamedTuple):
    """What the files of a checkpoint hold together."""

    tensors: dict[str, FileTensor]
    files: tuple[File, ...]
    faults: tuple[str, ...]
    metadata: Mapping[str, Any]  # of GGUF


def read_files(folder: Path, names: Sequence[str], format: str, index: Index | None, watch: Watch) -> ShardContents:
    """What safetensors or GGUF files in a folder hold. Of those whose file is not there, an index gives the tensors' names.

    Raises: ParamcountError for a file whose header is wrong, and for more than MOST_TENSORS in all files together.
    """
    read: Callable[[Path], Header | GgufHeader] = read_gguf if format == "gguf" else read_header
    placed = index.weight_map if index else {}
    tensors: dict[str, FileTensor] = {}
    files: list[File] = []
    gone: dict[str, str] = {}
    twice: Names = {}
    splits: dict[str, Split | None] = {}
    metadata: dict[str, Any] = {}
    headers = 0
    watch(0, len(names))
    for name in names:
        absence = describe_absence(folder / name) if index or len(names) > 1 else None
        if absence:
            gone[name] = absence
            files.append(File(name, folder / name, None))
        else:
            header = read(folder / name)
            before = header.state.size - sum(at.stop - at.start for at in header.tensors.values())
            files.append(File(name, folder / name, header.state.size, before, header.state))
            for tensor, at in header.tensors.items():
                first = tensors.get(tensor)
                if first is not None:
                    twice.setdefault((first.file, name), []).append(tensor)
                if first is None or placed.get(tensor) == name:
                    tensors[tensor] = FileTensor(name, at.dtype, at.shape, at.stop - at.start, header.begins + at.start)
            headers += header.begins
            _check_limits(len(tensors), headers)
            if isinstance(header, GgufHeader):
                splits[name] = header.split
                for key, value in header.metadata.items():
                    metadata.setdefault(key, value)
        watch(len(files), len(names))
    if len(gone) == len(names) and not index:
        raise ParamcountError(
            f"cannot read any of its {len(names):,} files: {make_printable(names[0])} {gone[names[0]]}",
            expected="at least one readable file",
        )
    faults = [*describe_missing_shards(names, gone, index), *compare_splits(splits, len(tensors))]
    if index:
        tensors |= {
            tensor: FileTensor(file) for tensor, file in placed.items() if file in gone and tensor not in tensors
        }
        _check_limits(len(tensors), headers)
        faults += compare_with_index(index, tensors, gone)
    return ShardContents(tensors, tuple(files), (*faults, *describe_duplicates(twice)), metadata)


def read_index_names(folder: Path, index: Index) -> ShardContents:
    """What an index says of files that are pickles and therefore stay shut."""
    tensors = {tensor: FileTensor(file) for tensor, file in index.weight_map.items()}
    files = tuple(File(name, folder / name, None) for name in index.files)
    return ShardContents(tensors, files, tuple(describe_missing_shards(index.files, {}, index)), {})


def describe_absence(path: Path) -> str | None:
    """In which way a file is not there; None where it is, whatever it holds."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "is a broken link" if path.is_symlink() else "is missing"
    except OSError:
        return None  # for whoever reads it to tell
    if not S_ISREG(found.st_mode) or found.st_size > LARGEST_POINTER:
        return None
    with open_regular(path, WHAT) as file:
        return "is a Git LFS pointer (fetch it with git lfs pull)" if file.read(len(LFS)) == LFS else None


def _check_limits(tensors: int, headers: int) -> None:
    if tensors > MOST_TENSORS:
        raise ParamcountError(
            f"has more than {MOST_TENSORS:,} tensors in all files", expected=f"at most {MOST_TENSORS:,}"
        )
    if headers > MOST_HEADERS:
        raise ParamcountError(
            f"has headers of more than {MOST_HEADERS:,} bytes in all files", expected=f"at most {MOST_HEADERS:,}"
        )
