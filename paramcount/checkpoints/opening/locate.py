"""What a path names of a checkpoint: a file, one of several numbered ones, a saved header, an index with or without its files, a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from paramcount.checkpoints.checkpoint import Checkpoint, File, FileTensor
from paramcount.checkpoints.opening.contradictions import find_missing_shards, parse_shard_name
from paramcount.checkpoints.opening.indices import LARGEST_INDEX, MOST_FILES, PICKLES, Index, parse_index
from paramcount.checkpoints.opening.shards import Watch, read_files, read_index_names
from paramcount.checkpoints.packed.configs import quantization_config
from paramcount.errors import ParamcountError, make_printable
from paramcount.formats.files import KNOWN, expand_home, open_regular, read_text
from paramcount.formats.safetensors import parse_tensors

ACCEPTED = "a .safetensors or .gguf file, a shard index, a saved header, or a directory with one of them"
REFUSED = (*PICKLES, ".zip")
INDEX = re.compile(r".+\.(?:safetensors|bin)\.index(?:\.[\w-]+)?\.json", re.IGNORECASE)
HOLDING = re.compile(r'"data_offsets"\s*:\s*\[')  # in a saved header
PLACING = re.compile(r'"weight_map"\s*:\s*\{')  # in an index
SNIFFED = 1 << 20  # characters: what stands before an index's map or a header's first tensor is short
MOST_ENTRIES = 100_000  # of a folder
LISTED = 6


@dataclass(frozen=True)
class Source:
    """The files of one checkpoint."""

    named: str  # what names it in its folder
    folder: Path
    format: str  # as in Checkpoint
    names: tuple[str, ...]
    index: Index | None = None
    remarks: tuple[str, ...] = ()


def open_checkpoint(path: str | Path, watch: Watch | None = None) -> Checkpoint:
    """What the headers of a checkpoint's files say. No value is read, and a pickle is never opened.

    `path` is a file, a numbered one of several, which stands for all of them, an index, a saved header, or a folder with one of these.
    `watch(done, all)` is called as the files are read. What files say against each other is no error but a fault of the checkpoint.

    Raises: ParamcountError where it is no checkpoint, a folder holds several, or a file is damaged.
    """
    path = expand_home(str(path))
    try:
        if os.path.isdir(path):
            return _read(path, find_checkpoint(path), watch)
        if path.suffix.lower() != ".json":
            return _read(path, _locate_file(path), watch)
        text = read_text(path, ACCEPTED, LARGEST_INDEX)
        return _read_saved_header(path, text) if HOLDING.search(text) else _read(path, _locate_index(path, text), watch)
    except ParamcountError as error:
        raise error if error.where else error.add_location(make_printable(path)) from None


def is_checkpoint(path: str | Path, *, with_config: bool = False) -> bool:
    """Whether a path names a checkpoint rather than a config, by its looks: a .json by how it begins, a folder where it has no config.json.
    `with_config`: a folder that has one as well.

    >>> is_checkpoint("model-00001-of-00002.safetensors"), is_checkpoint("config.json")
    (True, False)
    """
    try:
        path = expand_home(str(path))
        if os.path.isdir(path):
            names = list_files(path)
            if "config.json" in names and not with_config:
                return False
            held = any(
                format_of_name(name) or INDEX.fullmatch(name) or name.lower().endswith(PICKLES) for name in names
            )
            return held or (with_config and os.path.isdir(path / "snapshots"))
        ending = path.suffix.lower()
        if ending != ".json" or INDEX.fullmatch(path.name):
            return ending in (".json", ".safetensors", ".gguf", *REFUSED)
        with open_regular(path, ACCEPTED) as file:
            text = file.read(SNIFFED).decode("utf-8", "replace")
        return bool(HOLDING.search(text) or PLACING.search(text))
    except ParamcountError:
        return False


def format_of_name(name: str) -> str | None:
    """The format that a file's name tells; None of others."""
    return {".safetensors": "safetensors", ".gguf": "gguf"}.get(os.path.splitext(name)[1].lower())


def _read(path: Path, source: Source, watch: Watch | None) -> Checkpoint:
    """A checkpoint out of the headers of its files."""
    folder, index = source.folder, source.index
    said, wrong = quantization_config(folder) if source.format != "gguf" else (None, ())
    seen: Watch = watch or (lambda done, all: None)
    found = (
        read_index_names(folder, index)
        if index and index.pickled
        else read_files(folder, source.names, source.format, index, seen)
    )
    total_size = index.total_size if index else None
    return Checkpoint(
        path,
        source.format,
        found.tensors,
        found.files,
        (*found.faults, *wrong),
        source.remarks,
        total_size,
        found.metadata,
        said,
    )


def _read_saved_header(path: Path, text: str) -> Checkpoint:
    """The checkpoint whose header was saved alone."""
    try:
        tensors, _, _ = parse_tensors(text.lstrip(" \t\r\n"))
    except ParamcountError as error:
        raise error.add_location(make_printable(path)) from None
    held = {
        name: FileTensor(path.name, at.dtype, at.shape, at.stop - at.start, at.start) for name, at in tensors.items()
    }
    said, wrong = quantization_config(path.parent)
    return Checkpoint(path, "safetensors", held, (File(path.name, path, None),), wrong, quantization_config=said)


def _locate_index(path: Path, text: str) -> Source:
    """The files that an index names, and those that it should have named."""
    try:
        if not PLACING.search(text):
            raise ParamcountError("is neither a shard index nor a saved header", expected=ACCEPTED)
        index = parse_index(text)
    except ParamcountError as error:
        raise error.add_location(make_printable(path)) from None
    if index.pickled:
        return Source(path.name, path.parent, "pytorch", index.files, index)
    lacked = islice((name for _, names in find_missing_shards(index.files) for name in names), MOST_FILES)
    others = [name for name in lacked if os.path.isfile(path.parent / name)]
    return Source(path.name, path.parent, "safetensors", (*index.files, *others), index)


def _locate_file(path: Path) -> Source:
    """The files that one file stands for: itself, or all that are numbered like it."""
    ending = path.suffix.lower()
    if ending in REFUSED:
        raise ParamcountError(f"is a pickle ({ending}), which paramcount never loads", expected=ACCEPTED)
    format = format_of_name(path.name) or _detect_format(path)
    place = parse_shard_name(path.name)
    if place is None or not os.path.isfile(path):
        return Source(path.name, path.parent, format, (path.name,))
    names = list_files(path.parent)
    source = None
    if format == "safetensors":
        stem, _, variant = place.around[0][:-1].partition(".")
        beside = f"{stem}.safetensors.index.{variant}.json" if variant else f"{stem}.safetensors.index.json"
        source = (
            _locate_index(path.parent / beside, read_text(path.parent / beside, ACCEPTED, LARGEST_INDEX))
            if beside in names
            else None
        )
    if source is None or path.name not in source.names:
        source = Source(
            path.name,
            path.parent,
            format,
            tuple(name for name in names if shard_family(name) == shard_family(path.name)),
        )
    if place.of == 1:
        return source
    by = f", listed in {make_printable(source.named)}" if source.index else ""
    n = len(source.index.files) if source.index else place.of
    here = sum(os.path.isfile(path.parent / name) for name in source.names)
    read = (
        f"paramcount read all of them{by}"
        if here >= n
        else f"paramcount read the {here:,} that are present"
        if here > 1
        else "the others are missing"
    )
    remark = f"{make_printable(path.name)} is 1 of {n:,} files; {read}"
    return replace(source, remarks=(remark,))


def _detect_format(path: Path) -> str:
    """The format of a file whose name does not tell it, as those in the blobs of a Hugging Face cache."""
    with open_regular(path, ACCEPTED) as file:
        data = file.read(32)
    if data.startswith(b"GGUF"):
        return "gguf"
    for start, what in KNOWN:
        if data.startswith(start) and data[8:9] != b"{":
            raise ParamcountError(f"is {what}", expected=ACCEPTED)
    if data[8:9] != b"{":
        raise ParamcountError("is not a checkpoint", expected=ACCEPTED)
    return "safetensors"


def shard_family(name: str) -> tuple[str, ...]:
    """What the names of files have in common that belong together."""
    place = parse_shard_name(name)
    return place.around if place else (name,)


def list_files(folder: Path) -> list[str]:
    """The files of a folder, in order of their names.

    Raises: ParamcountError where it cannot be read or holds too many.
    """
    names = []
    try:
        with os.scandir(folder) as entries:
            for i, entry in enumerate(entries):
                if i == MOST_ENTRIES:
                    raise ParamcountError(
                        f"contains more than {MOST_ENTRIES:,} files",
                        where=make_printable(folder),
                        expected="a checkpoint directory",
                    )
                if not os.path.isdir(entry.path):
                    names.append(entry.name)
    except OSError as error:
        raise ParamcountError(f"cannot be read: {error.strerror}", where=make_printable(folder)) from None
    return sorted(names)


def find_checkpoint(folder: Path) -> Source:
    """The one checkpoint of a folder, or of a repository of a Hugging Face cache.

    Raises: ParamcountError that names the choices where it holds several, or what it holds instead.
    """
    names = list_files(folder)
    found = list(_find_choices(folder, names))
    held = [source for source in found if source.format != "pytorch"] or found
    if len(held) == 1:
        return held[0]
    if not held and os.path.isdir(folder / "snapshots"):
        from paramcount.huggingface.locate import find_snapshot

        return find_checkpoint(find_snapshot(folder).parent)
    if held:
        raise ParamcountError(
            f"contains {len(held):,} checkpoints: {_join_names([source.named for source in held])}",
            expected="the path of one of them",
        )
    pickles = [name for name in names if name.lower().endswith(REFUSED)]
    if pickles or names:
        only = (
            f"only {_join_names(pickles)} (paramcount never loads pickles)" if pickles else f"only {_join_names(names)}"
        )
    else:
        only = "only directories" if any(folder.iterdir()) else "it is empty"
    raise ParamcountError(f"contains no checkpoint: {only}", expected=ACCEPTED)


def _find_choices(folder: Path, names: Sequence[str]) -> Iterator[Source]:
    """The checkpoints of a folder: of each index, and of the files that none of them speaks of."""
    indices = [name for name in names if INDEX.fullmatch(name)]
    if len(indices) > LISTED:
        raise ParamcountError(
            f"contains {len(indices):,} indices: {_join_names(indices)}", expected="the path of one of them"
        )
    taken = set()
    for name in indices:
        source = _locate_index(folder / name, read_text(folder / name, ACCEPTED, LARGEST_INDEX))
        taken |= {shard_family(file) for file in source.names}
        yield source
    families: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        if format_of_name(name) and shard_family(name) not in taken:
            families.setdefault(shard_family(name), []).append(name)
    for files in families.values():
        yield Source(files[0], folder, format_of_name(files[0]) or "", tuple(files))


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(make_printable(name, 60) for name in names[:LISTED]) + more
