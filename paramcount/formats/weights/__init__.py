"""Weight formats: each file is what paramcount knows of one.

A file defines FORMAT, an instance of `WeightFormat`: the names of the format in a quantization_config, on the command
line and in files; its blocks and scales, from which the pieces of a matrix follow and the matrix of given pieces; and
the values of stored bytes. What can be planned, verified and run follows from what the file defines. A file is imported
when its format is used, or when a format is searched for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from paramcount.errors import join_words
from paramcount.formats.packing import Packing, Shape, WeightFormat

__all__ = [
    "compute_bytes", "describe_abilities", "get_abilities", "get_format", "get_label", "guess_format", "list_abilities",
    "list_padded_labels", "load_formats",
]  # fmt: skip


@cache
def get_format(layout: str) -> WeightFormat:
    """The format with this layout: the first word names its file."""
    format: WeightFormat = import_module(f"{__name__}.{layout.partition(' ')[0]}").FORMAT
    return format


@cache
def list_files() -> tuple[str, ...]:
    return tuple(sorted(path.stem for folder in __path__ for path in Path(folder).glob("[a-z]*.py")))


@cache
def load_formats() -> tuple[WeightFormat, ...]:
    """All formats, in the order of their files."""
    return tuple(map(get_format, list_files()))


def guess_format(name: str) -> WeightFormat:
    """The format whose file the first word of a name for --dtype names, such as fp8-row; otherwise the plain types."""
    word = re.split("[^a-z0-9]", name)[0]
    return get_format(word if word in list_files() else "plain")


def compute_bytes(shape: Shape, packing: Packing) -> int:
    """Bytes of a packed tensor, scales and other stored tensors included.

    >>> compute_bytes((11008, 4096), Packing("plain", "BF16"))
    90177536
    >>> compute_bytes((11008, 4096), Packing("gptq", "I32", 4, (1, 128), "F16", extras=("zero point", "group index")))
    23441408
    """
    return get_format(packing.layout).count_bytes(shape, packing)


def get_label(packing: Packing) -> str:
    """The format of one tensor, for people.

    >>> get_label(Packing("gptq", "I32", 4, (1, 128), "F16")), get_label(Packing("fp8", "F8_E4M3", 8, (128, 128)))
    ('GPTQ 4-bit', 'F8_E4M3')
    """
    return get_format(packing.layout).get_label(packing)


def list_padded_labels() -> list[str]:
    """The formats whose matrices engines pad."""
    return [format.name for format in load_formats() if format.is_padded]


class Abilities(NamedTuple):
    """What can be done with the weights of a format."""

    name: str
    planned: bool  # bytes, from a config or --dtype
    verified: bool  # files, tensor by tensor
    run: bool  # values


def get_abilities(format: WeightFormat) -> Abilities:
    kind = type(format)
    planned = bool(format.dtypes) or kind.plan is not WeightFormat.plan
    verified = bool(format.patterns) or format.has_own_files
    return Abilities(format.name, planned, verified, kind.widen is not WeightFormat.widen)


def list_abilities() -> tuple[Abilities, ...]:
    return tuple(abilities for abilities in map(get_abilities, load_formats()) if abilities.name)


def describe_abilities(format: WeightFormat) -> str:
    """What can and cannot be done with a format.

    >>> describe_abilities(get_format("gptq"))
    'GPTQ weights can be planned and verified, but not run'
    """
    name, *flags = get_abilities(format)
    verbs = Abilities._fields[1:]
    able, unable = ([verb for verb, flag in zip(verbs, flags) if flag is wanted] for wanted in (True, False))
    if not able or not unable:
        return f"{name} weights can{'' if able else 'not'} be {join_words(verbs, 'and' if able else 'or')}"
    return f"{name} weights can be {join_words(able, 'and')}, but not {join_words(unable, 'or')}"
