"""The index of a sharded checkpoint: the file of each tensor, and the bytes of all values.

Source: save_pretrained of transformers, which writes {"metadata": {"total_size": …}, "weight_map": {tensor: file}}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from paramcount.errors import ParamcountError, describe_value, make_printable, quote
from paramcount.formats.piecewise_json import DECODER, expect_end, parse_members, parse_string
from paramcount.formats.strict_json import parse_json
from paramcount.formats.tensor_entries import LARGEST_HEADER, name_tensor

EXPECTED = "a checkpoint index"
LARGEST_INDEX = LARGEST_HEADER  # bytes
LARGEST_METADATA = 64 << 10  # characters of each value except the weight map
MOST_OTHER_KEYS = 16  # besides weight_map; transformers writes one
MOST_FILES = 10_000
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
PLAIN_ENTRY = re.compile(r'"([^"\\\x00-\x1f]*+)"[ \t\n\r]*+:[ \t\n\r]*+"([^"\\\x00-\x1f]*+)"')  # without escapes
DRIVE = re.compile(r"[A-Za-z]:")


class Index(NamedTuple):
    """The contents of an index."""

    weight_map: Mapping[str, str]  # {tensor: file}
    files: tuple[str, ...]  # without duplicates, sorted by name
    total_size: int | None

    @property
    def has_pickles(self) -> bool:
        """Whether the files are pickles, which are never opened."""
        return self.files[0].lower().endswith(PICKLES)


def parse_index(text: str) -> Index:
    """The index in a JSON text.

    >>> parse_index('{"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00001.safetensors"}}').files
    ('model-00001-of-00001.safetensors',)

    Units: bytes
    Raises: ParamcountError if the text is not an index, or names a file outside its directory.
    """
    files: dict[str, str] = {}
    weight_map: dict[str, str] = {}
    total_sizes: list[int] = []
    other_keys: list[str] = []

    def intern_file(tensor: str, file: str) -> str:
        if file not in files:
            if len(files) == MOST_FILES:
                expected = f"at most {MOST_FILES:,}"
                raise ParamcountError(f"lists more than {MOST_FILES:,} files", where="weight_map", expected=expected)
            files[file] = check_shard_name(file, tensor)
        return files[file]

    def parse_plain_entry(at: int) -> tuple[str, str, int] | None:
        match = PLAIN_ENTRY.match(text, at)
        return (match[1], intern_file(match[1], match[2]), match.end()) if match else None

    def parse_file(tensor: str, at: int) -> tuple[str, int]:
        file, at = parse_string(text, at)
        return intern_file(tensor, file), at

    def parse_value(key: str, at: int) -> tuple[None, int]:
        if key == "weight_map":
            tensors, at = parse_members(text, at, parse_file, parse_plain_entry)
            weight_map.update(tensors)
            return None, at
        other_keys.append(key)
        if len(other_keys) > MOST_OTHER_KEYS:
            raise ParamcountError(f"has more than {MOST_OTHER_KEYS} keys besides weight_map", expected=EXPECTED)
        return None, _parse_other_value(key, text, at, total_sizes)

    _, at = parse_members(text, 0, parse_value)
    expect_end(text, at)
    if not weight_map:
        raise ParamcountError("is empty", where="weight_map", expected="a file for each tensor")
    if len({file.lower().endswith(PICKLES) for file in files}) > 1:
        found = "lists both safetensors files and pickles"
        raise ParamcountError(found, where="weight_map", expected="files of one kind")
    return Index(weight_map, tuple(sorted(files)), total_sizes[0] if total_sizes else None)


def _parse_other_value(key: str, text: str, at: int, total_sizes: list[int]) -> int:
    """The position after a value that is not the weight map. The total_size in `metadata` is added to `total_sizes`."""
    piece = text[at : at + LARGEST_METADATA]
    try:
        _, end = DECODER.raw_decode(piece)
    except (ValueError, RecursionError):
        found = f"is invalid JSON or longer than {LARGEST_METADATA:,} characters"
        raise ParamcountError(found, where=make_printable(key, 60), expected=EXPECTED) from None
    if key == "metadata" and piece[:end] != "null":
        try:
            size = parse_json(piece[:end]).get("total_size")
        except ParamcountError as error:
            raise error.add_location(key) from None
        if size is not None:
            total_sizes.append(_check_total_size(size))
    return at + end


def _check_total_size(value: object) -> int:
    """total_size as an integer. Older versions of transformers wrote a float: they counted a bool as 1/8 byte."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value < 2**63:
        found = f"= {describe_value(value)}"
        raise ParamcountError(found, where="metadata.total_size", expected="a number of bytes")
    return value


def check_shard_name(file: str, tensor: str) -> str:
    """The name of a shard, which must be below the directory of its index."""
    parts = set(file.split("/"))
    is_below = file.isprintable() and "\\" not in file and not DRIVE.match(file) and not {"", ".", ".."} & parts
    if not is_below or not file.lower().endswith((".safetensors", *PICKLES)):
        where = f"weight_map: {name_tensor(tensor)}"
        expected = "a .safetensors or .bin file in the directory of the index"
        raise ParamcountError(f"is in file {quote(file)}", where=where, expected=expected)
    return file
