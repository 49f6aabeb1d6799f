"""Locating a checkpoint from a path: a file, one of several numbered files, a saved header, an index or a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from paramcount.checkpoints.checkpoint import Checkpoint, File, FileTensor
from paramcount.checkpoints.opening.contradictions import ShardName, find_missing_shards, parse_shard_name
from paramcount.checkpoints.opening.indices import LARGEST_INDEX, MOST_FILES, PICKLES, Index, parse_index
from paramcount.checkpoints.opening.shards import Watch, read_files, read_index_names
from paramcount.errors import ParamcountError, describe_value, locate_errors, make_printable
from paramcount.formats.files import SIGNATURES, expand_home, open_regular, read_text
from paramcount.formats.quantization_config import (
    MODELOPT,
    MODELOPT_FILE,
    find_quantization_config,
    unwrap_modelopt,
)
from paramcount.formats.safetensors import parse_tensors
from paramcount.formats.strict_json import parse_json

EXPECTED = "a .safetensors or .gguf file, a shard index, a saved header, or a directory with one of them"
PICKLE_ENDINGS = (*PICKLES, ".zip")
INDEX = re.compile(r".+\.(?:safetensors|bin)\.index(?:\.[\w-]+)?\.json", re.IGNORECASE)
HEADER_MARK = re.compile(r'"data_offsets"\s*:\s*\[')  # in a saved header
INDEX_MARK = re.compile(r'"weight_map"\s*:\s*\{')  # in an index
SNIFF_LENGTH = 1 << 20  # characters; the weight map of an index and the first tensor of a header are near the start
MOST_ENTRIES = 100_000  # in a folder
MOST_LISTED = 6  # names in a message
LARGEST_CONFIG = 4 << 20  # bytes
# {file with a quantisation config: its method, if the file is nothing else and does not name it}
CONFIG_FILES = {
    "config.json": "",
    "quantize_config.json": "gptq",  # AutoGPTQ's
    "quant_config.json": "awq",  # AutoAWQ's
    MODELOPT_FILE: MODELOPT,
}


@dataclass(frozen=True)
class CheckpointSource:
    """The files of one checkpoint."""

    label: str  # the file in its folder that identifies it
    folder: Path
    format: str  # as in Checkpoint
    names: tuple[str, ...]
    index: Index | None = None
    notes: tuple[str, ...] = ()


def open_checkpoint(path: str | Path, watch: Watch | None = None) -> Checkpoint:
    """The checkpoint at a path, from the headers of its files. No value is read, and a pickle is never opened.

    `path` is a file, one of several numbered files (all of them are read), an index, a saved header, or a folder with
    one of these. `watch` is called with (files read, number of files). Contradictions between files are not errors but
    faults of the checkpoint.

    Raises: ParamcountError if there is no checkpoint, if a folder has several, or if a file is damaged.
    """
    path = expand_home(str(path))
    try:
        if os.path.isdir(path):
            return _read_source(path, find_checkpoint(path), watch)
        if path.suffix.lower() != ".json":
            return _read_source(path, _locate_file(path), watch)
        text = read_text(path, EXPECTED, LARGEST_INDEX)
        if HEADER_MARK.search(text):
            return _read_saved_header(path, text)
        return _read_source(path, _locate_index(path, text), watch)
    except ParamcountError as error:
        raise error if error.where else error.add_location(make_printable(path)) from None


def is_checkpoint(path: str | Path, *, with_config: bool = False) -> bool:
    """Whether a path looks like a checkpoint, not like a config: a .json file by its beginning, a folder by its files.

    Args:
        with_config: whether a folder that also contains a config.json counts as a checkpoint

    >>> is_checkpoint("model-00001-of-00002.safetensors"), is_checkpoint("config.json")
    (True, False)
    """
    try:
        path = expand_home(str(path))
        if os.path.isdir(path):
            names = list_files(path)
            if not with_config and ("config.json" in names or has_other_config(path, names)):
                return False
            has_file = any(
                detect_format_by_name(name) or INDEX.fullmatch(name) or name.lower().endswith(PICKLES) for name in names
            )
            return has_file or (with_config and os.path.isdir(path / "snapshots"))
        ending = path.suffix.lower()
        if ending != ".json" or INDEX.fullmatch(path.name):
            return ending in (".json", ".safetensors", ".gguf", *PICKLE_ENDINGS)
        with open_regular(path, EXPECTED) as file:
            text = file.read(SNIFF_LENGTH).decode("utf-8", "replace")
        return bool(HEADER_MARK.search(text) or INDEX_MARK.search(text))
    except ParamcountError:
        return False


def has_other_config(folder: Path, names: Sequence[str]) -> bool:
    """Whether a folder holds the sizes of its model in another form, such as Mistral's params.json."""
    from paramcount.huggingface.forms import FILE_NAMES
    from paramcount.huggingface.locate import find_form_file

    return not set(FILE_NAMES).isdisjoint(names) and find_form_file(folder) is not None


def detect_format_by_name(name: str) -> str | None:
    return {".safetensors": "safetensors", ".gguf": "gguf"}.get(os.path.splitext(name)[1].lower())


def _read_source(path: Path, source: CheckpointSource, watch: Watch | None) -> Checkpoint:
    folder, index = source.folder, source.index
    config, config_faults = read_quantization_config(folder) if source.format != "gguf" else (None, ())
    if index and index.has_pickles:
        contents = read_index_names(folder, index)
    else:
        contents = read_files(folder, source.names, source.format, index, watch or (lambda done, total: None))
    return Checkpoint(
        path,
        source.format,
        contents.tensors,
        contents.files,
        faults=(*contents.faults, *config_faults),
        notes=(*source.notes, *contents.notes),
        total_size=index.total_size if index else None,
        metadata=contents.metadata,
        quantization_config=config,
    )


def read_quantization_config(folder: Path) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """The first quantisation config in a folder, or None, and an error message for each file that cannot be read."""
    faults: list[str] = []
    for name, method in CONFIG_FILES.items():
        if not os.path.isfile(folder / name):
            continue
        try:
            text = read_text(folder / name, "a config", LARGEST_CONFIG)
            with locate_errors(name):
                document = parse_json(text)
                config = document if method else find_quantization_config(document)
                if config is not None and not isinstance(config, Mapping):
                    where = "quantization_config"
                    raise ParamcountError(f"= {describe_value(config)}", where=where, expected="a JSON object")
            if config is not None:
                return {**({"quant_method": method} if method else {}), **unwrap_modelopt(config)}, tuple(faults)
        except ParamcountError as error:
            faults.append(str(error))
    return None, tuple(faults)


def _read_saved_header(path: Path, text: str) -> Checkpoint:
    """The checkpoint with a header that was saved without its values."""
    with locate_errors(path):
        entries, _, _ = parse_tensors(text.lstrip(" \t\r\n"))
    tensors = {
        name: FileTensor(path.name, entry.dtype, entry.shape, entry.stop - entry.start, entry.start)
        for name, entry in entries.items()
    }
    config, faults = read_quantization_config(path.parent)
    return Checkpoint(path, "safetensors", tensors, (File(path.name, path, None),), faults, quantization_config=config)


def _locate_index(path: Path, text: str) -> CheckpointSource:
    """The files in an index, and those that the index should list but does not."""
    with locate_errors(path):
        if not INDEX_MARK.search(text):
            raise ParamcountError("is neither a shard index nor a saved header", expected=EXPECTED)
        index = parse_index(text)
    if index.has_pickles:
        return CheckpointSource(path.name, path.parent, "pytorch", index.files, index)
    not_in_index = (name for _, names in find_missing_shards(index.files) for name in names)
    others = [name for name in islice(not_in_index, MOST_FILES) if os.path.isfile(path.parent / name)]
    return CheckpointSource(path.name, path.parent, "safetensors", (*index.files, *others), index)


def _locate_file(path: Path) -> CheckpointSource:
    """The files of the checkpoint that a file belongs to: the file itself, or all files of its numbered family."""
    ending = path.suffix.lower()
    if ending in PICKLE_ENDINGS:
        raise ParamcountError(f"is a pickle ({ending}), which paramcount never loads", expected=EXPECTED)
    format = detect_format_by_name(path.name) or _detect_format(path)
    shard = parse_shard_name(path.name)
    if shard is None or not os.path.isfile(path):
        return CheckpointSource(path.name, path.parent, format, (path.name,))
    names = list_files(path.parent)
    source = _locate_index_of_shard(path, shard, names) if format == "safetensors" else None
    if source is None or path.name not in source.names:
        family = tuple(name for name in names if get_shard_family(name) == shard.family)
        source = CheckpointSource(path.name, path.parent, format, family)
    if shard.total == 1:
        return source
    n = len(source.index.files) if source.index else shard.total
    present = sum(os.path.isfile(path.parent / name) for name in source.names)
    if present >= n:
        listed = f", listed in {make_printable(source.label)}" if source.index else ""
        files_read = f"paramcount read all of them{listed}"
    else:
        files_read = f"paramcount read the {present:,} that are present" if present > 1 else "the others are missing"
    return replace(source, notes=(f"{make_printable(path.name)} is 1 of {n:,} files; {files_read}",))


def _locate_index_of_shard(path: Path, shard: ShardName, names: Sequence[str]) -> CheckpointSource | None:
    """The files of the index with the shard's name in the same folder; None if there is no such index."""
    stem, _, variant = shard.family[0][:-1].partition(".")
    name = f"{stem}.safetensors.index.{variant}.json" if variant else f"{stem}.safetensors.index.json"
    if name not in names:
        return None
    index = path.parent / name
    return _locate_index(index, read_text(index, EXPECTED, LARGEST_INDEX))


def _detect_format(path: Path) -> str:
    """The format of a file by its first bytes, because files in the blobs of a Hugging Face cache have no ending."""
    with open_regular(path, EXPECTED) as file:
        data = file.read(32)
    if data.startswith(b"GGUF"):
        return "gguf"
    for start, what in SIGNATURES:
        if data.startswith(start) and data[8:9] != b"{":
            raise ParamcountError(f"is {what}", expected=EXPECTED)
    if data[8:9] != b"{":
        raise ParamcountError("is not a checkpoint", expected=EXPECTED)
    return "safetensors"


def get_shard_family(name: str) -> tuple[str, ...]:
    """The part of a file name that all files of its checkpoint share."""
    shard = parse_shard_name(name)
    return shard.family if shard else (name,)


def list_files(folder: Path) -> list[str]:
    """The names of the files in a folder, sorted.

    Raises: ParamcountError if the folder cannot be read or has too many files.
    """
    names = []
    try:
        with os.scandir(folder) as entries:
            for i, entry in enumerate(entries):
                if i == MOST_ENTRIES:
                    found, where = f"contains more than {MOST_ENTRIES:,} files", make_printable(folder)
                    raise ParamcountError(found, where=where, expected="a checkpoint directory")
                if not os.path.isdir(entry.path):
                    names.append(entry.name)
    except OSError as error:
        raise ParamcountError(f"cannot be read: {error.strerror}", where=make_printable(folder)) from None
    return sorted(names)


def find_checkpoint(folder: Path) -> CheckpointSource:
    """The only checkpoint in a folder, or in a repository of a Hugging Face cache."""
    names = list_files(folder)
    sources = list(_find_sources(folder, names))
    sources = [source for source in sources if source.format != "pytorch"] or sources
    if len(sources) == 1:
        return sources[0]
    if sources:
        labels = _join_names([source.label for source in sources])
        found = f"contains {len(sources):,} checkpoints: {labels}"
        raise ParamcountError(found, expected="the path of one of them")
    if os.path.isdir(folder / "snapshots"):
        from paramcount.huggingface.locate import find_snapshot

        return find_checkpoint(find_snapshot(folder).parent)
    pickles = [name for name in names if name.lower().endswith(PICKLE_ENDINGS)]
    if pickles:
        contents = f"only {_join_names(pickles)} (paramcount never loads pickles)"
    elif names:
        contents = f"only {_join_names(names)}"
    else:
        contents = "only directories" if any(folder.iterdir()) else "it is empty"
    raise ParamcountError(f"contains no checkpoint: {contents}", expected=EXPECTED)


def _find_sources(folder: Path, names: Sequence[str]) -> Iterator[CheckpointSource]:
    """The checkpoints in a folder: one per index, and one per family of files that no index lists."""
    indices = [name for name in names if INDEX.fullmatch(name)]
    if len(indices) > MOST_LISTED:
        found = f"contains {len(indices):,} indices: {_join_names(indices)}"
        raise ParamcountError(found, expected="the path of one of them")
    indexed = set()
    for name in indices:
        source = _locate_index(folder / name, read_text(folder / name, EXPECTED, LARGEST_INDEX))
        indexed |= {get_shard_family(file) for file in source.names}
        yield source
    families: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        if detect_format_by_name(name) and get_shard_family(name) not in indexed:
            families.setdefault(get_shard_family(name), []).append(name)
    for files in families.values():
        yield CheckpointSource(files[0], folder, detect_format_by_name(files[0]) or "", tuple(files))


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return ", ".join(make_printable(name, 60) for name in names[:MOST_LISTED]) + more
