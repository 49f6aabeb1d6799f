"""The files of a checkpoint put together: their headers read one by one, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import File, Held
from paramcount.checkpoints.opening.contradictions import Names, against, incomplete, of_splits, tensors_twice
from paramcount.checkpoints.opening.indices import Index
from paramcount.errors import ParamcountError, make_printable
from paramcount.formats.files import LFS, open_regular
from paramcount.formats.gguf import GgufHeader, Split, read_gguf
from paramcount.formats.safetensors import WHAT, Header, read_header
from paramcount.formats.tensor_entries import LARGEST_HEADER, MOST_TENSORS

MOST_HEADERS = 4 * LARGEST_HEADER  # bytes of all headers together; those of DeepSeek-V3 have a tenth of it
LARGEST_POINTER = 1024  # bytes: Git LFS writes fewer

Watch: TypeAlias = Callable[[int, int], object]


class Gathered(NamedTuple):
    """What the files of a checkpoint hold together."""

    tensors: dict[str, Held]
    files: tuple[File, ...]
    faults: tuple[str, ...]
    metadata: Mapping[str, Any]  # of GGUF


def gathered(folder: Path, names: Sequence[str], format: str, index: Index | None, watch: Watch) -> Gathered:
    """What safetensors or GGUF files in a folder hold. Of those whose file is not there, an index gives the tensors' names.

    Raises: ParamcountError for a file whose header is wrong, and for more than MOST_TENSORS in all files together.
    """
    read: Callable[[Path], Header | GgufHeader] = read_gguf if format == "gguf" else read_header
    placed = index.weight_map if index else {}
    tensors: dict[str, Held] = {}
    files: list[File] = []
    gone: dict[str, str] = {}
    twice: Names = {}
    splits: dict[str, Split | None] = {}
    metadata: dict[str, Any] = {}
    headers = 0
    watch(0, len(names))
    for name in names:
        absence = absent(folder / name) if index or len(names) > 1 else None
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
                    tensors[tensor] = Held(name, at.dtype, at.shape, at.stop - at.start, header.begins + at.start)
            headers += header.begins
            _bounded(len(tensors), headers)
            if isinstance(header, GgufHeader):
                splits[name] = header.split
                for key, value in header.metadata.items():
                    metadata.setdefault(key, value)
        watch(len(files), len(names))
    if len(gone) == len(names) and not index:
        raise ParamcountError(f"none of its {len(names):,} files can be read: {make_printable(names[0])} {gone[names[0]]}", expected="files that are there")
    faults = [*incomplete(names, gone, index), *of_splits(splits, len(tensors))]
    if index:
        tensors |= {tensor: Held(file) for tensor, file in placed.items() if file in gone and tensor not in tensors}
        _bounded(len(tensors), headers)
        faults += against(index, tensors, gone)
    return Gathered(tensors, tuple(files), (*faults, *tensors_twice(twice)), metadata)


def only_names(folder: Path, index: Index) -> Gathered:
    """What an index says of files that are pickles and therefore stay shut."""
    tensors = {tensor: Held(file) for tensor, file in index.weight_map.items()}
    files = tuple(File(name, folder / name, None) for name in index.files)
    return Gathered(tensors, files, tuple(incomplete(index.files, {}, index)), {})


def absent(path: Path) -> str | None:
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
        return "is a Git LFS pointer, the file itself was not fetched" if file.read(len(LFS)) == LFS else None


def _bounded(tensors: int, headers: int) -> None:
    if tensors > MOST_TENSORS:
        raise ParamcountError(f"its files hold more than {MOST_TENSORS:,} tensors together", expected=f"at most {MOST_TENSORS:,}")
    if headers > MOST_HEADERS:
        raise ParamcountError(f"the headers of its files have more than {MOST_HEADERS:,} bytes together", expected=f"at most {MOST_HEADERS:,}")
