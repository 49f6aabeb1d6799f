"""How the files of a checkpoint contradict each other, their names and their index: few lines, however much is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import FileTensor
from paramcount.checkpoints.folding import fold_names
from paramcount.checkpoints.opening.indices import Index
from paramcount.errors import make_printable
from paramcount.formats.gguf import Split

MOST_LINES = 20  # of one kind
MOST_PATTERNS = 4  # of a line
MOST_FOLDED = 20_000  # tensors of a line: DeepSeek-V3's largest file names two thousand
NUMBERED = re.compile(r"(.+[-_])(\d{5,6})(-of-(\d{5,6})(?:\.[\w-]+)?\.(?:safetensors|gguf|bin))", re.IGNORECASE)

Names: TypeAlias = dict[tuple[str, ...], list[str]]  # of tensors, by the files that contradict each other about them


class Place(NamedTuple):
    """Where the name of a file says that it belongs."""

    number: int
    of: int
    around: tuple[str, str]  # what stands before and behind the number in the names of all of them
    width: int  # digits of the number


def parse_shard_name(name: str) -> Place | None:
    """What the name of a numbered file says; None of another.

    >>> parse_shard_name("model-00003-of-000163.safetensors")
    Place(number=3, of=163, around=('model-', '-of-000163.safetensors'), width=5)
    """
    match = NUMBERED.fullmatch(name)
    return Place(int(match[2]), int(match[4]), (match[1], match[3]), len(match[2])) if match else None


def describe_missing_shards(names: Sequence[str], gone: Mapping[str, str], index: Index | None) -> Iterator[str]:
    """The numbered files that the names of others speak of and that are not among them; without an index also those that are not there."""
    found = [] if index else [f"{make_printable(name)} {how}" for name, how in gone.items()]
    for n, others in find_missing_shards(index.files if index else names):
        found.append(f"{join_some(others, n)} {'is' if n == 1 else 'are'} {'not in the index' if index else 'missing'}")
    return shorten(found)


def find_missing_shards(names: Iterable[str]) -> Iterator[tuple[int, Iterator[str]]]:
    """For each set of numbered files that names speak of: how many of it are not among them, and their names.

    >>> [(n, list(others)) for n, others in find_missing_shards(["a-00001-of-00004.gguf", "a-00003-of-00004.gguf", "b.gguf"])]
    [(2, ['a-00002-of-00004.gguf', 'a-00004-of-00004.gguf'])]
    """
    sets: dict[tuple[str, str], dict[int, Place]] = {}
    for name in names:
        if place := parse_shard_name(name):
            sets.setdefault(place.around, {})[place.number] = place
    for places in sets.values():
        some = next(iter(places.values()))
        numbers = range(some.of) if 0 in places else range(1, some.of + 1)
        if n := len(numbers) - sum(number in numbers for number in places):
            yield n, (f"{some.around[0]}{i:0{some.width}}{some.around[1]}" for i in numbers if i not in places)


def compare_with_index(index: Index, tensors: Mapping[str, FileTensor], gone: Mapping[str, str]) -> Iterator[str]:
    """How the files contradict their index. Of files that are not there, the tensors are known by name."""
    left: dict[str, int] = {}
    moved: Names = {}
    nowhere: Names = {}
    unnamed: Names = {}
    for tensor, held in tensors.items():
        if tensor not in index.weight_map:
            unnamed.setdefault((held.file,), []).append(tensor)
        elif held.file in gone:
            left[held.file] = left.get(held.file, 0) + 1
    for tensor, file in index.weight_map.items():
        found = tensors.get(tensor)
        if found is None:
            nowhere.setdefault((file,), []).append(tensor)
        elif found.file != file:
            moved.setdefault((found.file, file), []).append(tensor)
    if len(gone) < len(index.files):
        yield from shorten(
            [
                f"{make_printable(file)} {how}: it should hold {count_tensors(left.get(file, 0))}"
                for file, how in gone.items()
            ]
        )
    yield from lines(moved, "in {}, but the index says {}")
    yield from lines(nowhere, "in no file, but the index says {}")
    yield from lines(unnamed, "in {}, but not in the index")
    values = sum(held.size or 0 for held in tensors.values())
    masks = sum(held.size or 0 for held in tensors.values() if held.dtype == "BOOL")
    if not gone and index.total_size not in (
        None,
        values,
        values - masks + masks // 8,
    ):  # older transformers counted a truth value as one bit
        yield f"the index says total_size {index.total_size:,}, but the tensors take {values:,} bytes"


def describe_duplicates(twice: Names) -> Iterator[str]:
    return lines(twice, "in both {} and {}")


def compare_splits(splits: Mapping[str, Split | None], tensors: int) -> Iterator[str]:
    """How GGUF files contradict their names, or each other, about what they are part of. `tensors`: of all of them together."""
    found = []
    for name, split in splits.items():
        place = parse_shard_name(name)
        says = _part(split.no + 1, split.files) if split else _part(1, 1)
        named = _part(place.number, place.of) if place else _part(1, 1)
        if says != named:
            found.append(f"{make_printable(name)}: its header says {says}, its name says {named}")
        if split and split.files == len(splits) and split.tensors != tensors:
            found.append(
                f"{make_printable(name)}: its header says {count_tensors(split.tensors)} in all files, but there are {tensors:,}"
            )
    return shorten(found)


def _part(number: int, of: int) -> str:
    return f"file {number:,} of {of:,}" if (number, of) != (1, 1) else "a single file"


def lines(names: Names, wording: str) -> Iterator[str]:
    """A line for each pair of files, the names of their tensors folded."""
    found = []
    for files, tensors in islice(names.items(), MOST_LINES + 1):
        where = wording.format(*(make_printable(file, 100) for file in files))
        patterns = [pattern for pattern, _ in fold_names(tensors[:MOST_FOLDED])] + ["…"] * (len(tensors) > MOST_FOLDED)
        found.append(
            f"{count_tensors(len(tensors))} {'is' if len(tensors) == 1 else 'are'} {where}: {join_some(patterns, len(patterns))}"
        )
    return shorten(found, len(names))


def shorten(found: Sequence[str], n: int | None = None) -> Iterator[str]:
    """The first lines of a kind, and how many more there are of `n`."""
    yield from found[:MOST_LINES]
    if (more := (n or len(found)) - MOST_LINES) > 0:
        yield f"and {more:,} more like this"


def join_some(names: Iterable[str], n: int) -> str:
    """The first of n names on a line."""
    shown = [make_printable(name, 120) for name in islice(names, MOST_PATTERNS)]
    return ", ".join(shown) + (f" and {n - len(shown):,} more" if n > len(shown) else "")


def count_tensors(n: int) -> str:
    return f"{n:,} tensor{'' if n == 1 else 's'}"
