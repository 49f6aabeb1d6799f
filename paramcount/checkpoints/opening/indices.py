"""The index of a checkpoint's shards: which tensor is in which file, and how many bytes all values take.

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

WHAT = "a checkpoint index"
LARGEST_INDEX = LARGEST_HEADER  # bytes
LARGEST_METADATA = 64 << 10  # characters of everything but the map
MOST_OTHERS = 16  # blocks that are not the map; known is one
MOST_FILES = 10_000
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
USUAL = re.compile(r'"([^"\\\x00-\x1f]*+)"[ \t\n\r]*+:[ \t\n\r]*+"([^"\\\x00-\x1f]*+)"')
DRIVE = re.compile(r"[A-Za-z]:")


class Index(NamedTuple):
    """An index as it says."""

    weight_map: Mapping[str, str]  # {tensor: file}
    files: tuple[str, ...]  # each once, in order of their names
    total_size: int | None

    @property
    def pickled(self) -> bool:
        """Whether its files are pickles, which are never opened."""
        return self.files[0].lower().endswith(PICKLES)


def parse_index(text: str) -> Index:
    """What the JSON of an index says.

    >>> parse_index('{"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00001.safetensors"}}')
    Index(weight_map={'a': 'model-00001-of-00001.safetensors'}, files=('model-00001-of-00001.safetensors',), total_size=8)

    Units: bytes
    Raises: ParamcountError where it is none, and for a file that does not lie below the index.
    """
    files: dict[str, str] = {}
    found: dict[str, str] = {}
    total: list[int] = []
    others: list[str] = []

    def file_of(tensor: str, file: str) -> str:
        if file not in files:
            if len(files) == MOST_FILES:
                raise ParamcountError(
                    f"lists more than {MOST_FILES:,} files", where="weight_map", expected=f"at most {MOST_FILES:,}"
                )
            files[file] = check_shard_name(file, tensor)
        return files[file]

    def usual(at: int) -> tuple[str, str, int] | None:
        match = USUAL.match(text, at)
        return (match[1], file_of(match[1], match[2]), match.end()) if match else None

    def placed(tensor: str, at: int) -> tuple[str, int]:
        file, at = parse_string(text, at)
        return file_of(tensor, file), at

    def block(key: str, at: int) -> tuple[None, int]:
        if key == "weight_map":
            tensors, at = parse_members(text, at, placed, usual)
            found.update(tensors)
        else:
            others.append(key)
            if len(others) > MOST_OTHERS:
                raise ParamcountError(f"has more than {MOST_OTHERS} keys besides weight_map", expected=WHAT)
            at = _other(key, text, at, total)
        return None, at

    _, at = parse_members(text, 0, block)
    expect_end(text, at)
    if not found:
        raise ParamcountError("is empty", where="weight_map", expected="a file for each tensor")
    pickled = {file.lower().endswith(PICKLES) for file in files}
    if len(pickled) > 1:
        raise ParamcountError(
            "lists both safetensors files and pickles", where="weight_map", expected="one kind of file"
        )
    return Index(found, tuple(sorted(files)), total[0] if total else None)


def _other(key: str, text: str, at: int, total: list[int]) -> int:
    """Where a block that is not the map ends; of `metadata`, total_size is kept."""
    piece = text[at : at + LARGEST_METADATA]
    try:
        _, end = DECODER.raw_decode(piece)
    except (ValueError, RecursionError):
        raise ParamcountError(
            f"is not JSON, or longer than {LARGEST_METADATA:,} characters", where=make_printable(key, 60), expected=WHAT
        ) from None
    if key == "metadata" and piece[:end] != "null":
        try:
            said = parse_json(piece[:end]).get("total_size")
        except ParamcountError as error:
            raise error.add_location(key) from None
        if said is not None:
            total.append(_bytes(said))
    return at + end


def _bytes(said: object) -> int:
    """total_size as an integer; older transformers counted a truth value as an eighth of one, so that it is a float."""
    if isinstance(said, float) and said.is_integer():
        said = int(said)
    if type(said) is not int or not 0 <= said < 2**63:
        raise ParamcountError(f"= {describe_value(said)}", where="metadata.total_size", expected="a number of bytes")
    return said


def check_shard_name(file: str, tensor: str) -> str:
    """The name of a shard, which must lie below its index.

    Raises: ParamcountError that names the tensor it holds.
    """
    parts = file.split("/")
    inside = file.isprintable() and "\\" not in file and not DRIVE.match(file) and not {"", ".", ".."} & set(parts)
    if not inside or not file.lower().endswith((".safetensors", *PICKLES)):
        expected = "a .safetensors or .bin file in the directory of the index"
        raise ParamcountError(
            f"is in file {quote(file)}", where=f"weight_map: {name_tensor(tensor)}", expected=expected
        )
    return file
