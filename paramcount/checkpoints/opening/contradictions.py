"""Contradictions between the files of a checkpoint, their names and their index, described in few lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import FileTensor
from paramcount.checkpoints.folding import fold_names
from paramcount.checkpoints.opening.indices import Index
from paramcount.errors import make_printable
from paramcount.formats.gguf import GgufSplit

MOST_LINES = 20  # per kind of contradiction
MOST_PATTERNS = 4  # per line
MOST_FOLDED = 20_000  # tensors per line; DeepSeek-V3's largest file has two thousand
SHARD_NAME = re.compile(r"(.+[-_])(\d{5,6})(-of-(\d{5,6})(?:\.[\w-]+)?\.(?:safetensors|gguf|bin))", re.IGNORECASE)

Names: TypeAlias = dict[tuple[str, ...], list[str]]  # {files that contradict each other: tensors}


class ShardName(NamedTuple):
    """The name of a numbered file, parsed."""

    number: int
    total: int
    family: tuple[str, str]  # the text before and after the number, which all files of the checkpoint share
    width: int  # digits of the number


def parse_shard_name(name: str) -> ShardName | None:
    """The parts of a numbered file's name; None for any other name.

    >>> parse_shard_name("model-00003-of-000163.safetensors")
    ShardName(number=3, total=163, family=('model-', '-of-000163.safetensors'), width=5)
    """
    match = SHARD_NAME.fullmatch(name)
    return ShardName(int(match[2]), int(match[4]), (match[1], match[3]), len(match[2])) if match else None


def describe_missing_shards(names: Sequence[str], absent: Mapping[str, str], index: Index | None) -> Iterator[str]:
    """Numbered files that other names imply but that are missing. `absent`: {file that cannot be read: reason}."""
    lines = [] if index else [f"{make_printable(name)} {reason}" for name, reason in absent.items()]
    for n, missing in find_missing_shards(index.files if index else names):
        verb = "is" if n == 1 else "are"
        lines.append(f"{join_first(missing, n)} {verb} {'not in the index' if index else 'missing'}")
    return shorten(lines)


def find_missing_shards(names: Iterable[str]) -> Iterator[tuple[int, Iterator[str]]]:
    """For each family of numbered files, how many of them are missing, and their names.

    >>> files = ["a-00001-of-00004.gguf", "a-00003-of-00004.gguf", "b.gguf"]
    >>> [(n, list(missing)) for n, missing in find_missing_shards(files)]
    [(2, ['a-00002-of-00004.gguf', 'a-00004-of-00004.gguf'])]
    """
    families: dict[tuple[str, str], dict[int, ShardName]] = {}
    for name in names:
        if shard := parse_shard_name(name):
            families.setdefault(shard.family, {})[shard.number] = shard
    for (before, after), shards in families.items():
        first = next(iter(shards.values()))
        numbers = range(first.total) if 0 in shards else range(1, first.total + 1)
        if n := len(numbers) - sum(number in numbers for number in shards):
            yield n, (f"{before}{i:0{first.width}}{after}" for i in numbers if i not in shards)


def compare_with_index(index: Index, tensors: Mapping[str, FileTensor], absent: Mapping[str, str]) -> Iterator[str]:
    """Contradictions between the files and their index. `absent`: {file that cannot be read: reason}."""
    absent_tensors: dict[str, int] = {}
    moved: Names = {}
    not_in_files: Names = {}
    not_in_index: Names = {}
    for name, tensor in tensors.items():
        if name not in index.weight_map:
            not_in_index.setdefault((tensor.file,), []).append(name)
        elif tensor.file in absent:
            absent_tensors[tensor.file] = absent_tensors.get(tensor.file, 0) + 1
    for name, file in index.weight_map.items():
        in_file = tensors.get(name)
        if in_file is None:
            not_in_files.setdefault((file,), []).append(name)
        elif in_file.file != file:
            moved.setdefault((in_file.file, file), []).append(name)
    if len(absent) < len(index.files):
        lines = [
            f"{make_printable(file)} {reason}: it should contain {count_tensors(absent_tensors.get(file, 0))}"
            for file, reason in absent.items()
        ]
        yield from shorten(lines)
    yield from describe_tensors(moved, "in {}, but the index says {}")
    yield from describe_tensors(not_in_files, "in no file, but the index says {}")
    yield from describe_tensors(not_in_index, "in {}, but not in the index")
    if absent or index.total_size is None:
        return
    size = sum(tensor.size or 0 for tensor in tensors.values())
    masks = sum(tensor.size or 0 for tensor in tensors.values() if tensor.dtype == "BOOL")
    if index.total_size not in (size, size - masks + masks // 8):  # older transformers counted a bool as one bit
        yield f"the index says total_size {index.total_size:,}, but the tensors take {size:,} bytes"


def describe_duplicates(duplicates: Names) -> Iterator[str]:
    return describe_tensors(duplicates, "in both {} and {}")


def compare_splits(splits: Mapping[str, GgufSplit | None], tensors: int) -> Iterator[str]:
    """Contradictions between the headers and names of GGUF files. `tensors`: the number in all files."""
    lines = []
    for file, split in splits.items():
        name, shard = make_printable(file), parse_shard_name(file)
        by_header = _describe_position(split.no + 1, split.files) if split else _describe_position(1, 1)
        by_name = _describe_position(shard.number, shard.total) if shard else _describe_position(1, 1)
        if by_header != by_name:
            lines.append(f"{name}: its header says {by_header}, its name says {by_name}")
        if split and split.files == len(splits) and split.tensors != tensors:
            in_header = count_tensors(split.tensors)
            lines.append(f"{name}: its header says {in_header} in total, but there are {tensors:,}")
    return shorten(lines)


def _describe_position(number: int, total: int) -> str:
    return f"file {number:,} of {total:,}" if (number, total) != (1, 1) else "a single file"


def describe_tensors(names: Names, wording: str) -> Iterator[str]:
    """A line for each pair of files, with the names of their tensors folded."""
    lines = []
    for files, tensors in islice(names.items(), MOST_LINES + 1):
        place = wording.format(*(make_printable(file, 100) for file in files))
        verb = "is" if len(tensors) == 1 else "are"
        patterns = [pattern for pattern, _ in fold_names(tensors[:MOST_FOLDED])]
        if len(tensors) > MOST_FOLDED:
            patterns.append("…")
        lines.append(f"{count_tensors(len(tensors))} {verb} {place}: {join_first(patterns, len(patterns))}")
    return shorten(lines, len(names))


def shorten(lines: Sequence[str], n: int | None = None) -> Iterator[str]:
    """The first lines, and how many more of `n` there are."""
    yield from lines[:MOST_LINES]
    if (more := (n or len(lines)) - MOST_LINES) > 0:
        yield f"and {more:,} more like this"


def join_first(names: Iterable[str], n: int) -> str:
    first = [make_printable(name, 120) for name in islice(names, MOST_PATTERNS)]
    return ", ".join(first) + (f" and {n - len(first):,} more" if n > len(first) else "")


def count_tensors(n: int) -> str:
    return f"{n:,} tensor{'' if n == 1 else 's'}"
