"""GPUs and other accelerators: memory, bandwidth and peak FLOPs, as their data sheets state them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from paramcount.errors import ParamcountError, describe_value, find_nearest
from paramcount.formats.strict_yaml import read_yaml

DEVICES = re.compile(r"(\d{1,6})\s*[x×*]\s*(.+)", re.IGNORECASE)
PATH = Path(__file__).with_name("gpus.yaml")


class Gpu(NamedTuple):
    """One accelerator."""

    name: str
    aliases: tuple[str, ...]
    memory_bytes: int
    memory_basis: str  # driver | CUDA | operating system | GiB | GiB with ECC
    bandwidth: int  # bytes per second
    flops: Mapping[str, int]  # {dtype: dense peak FLOPs per second}
    sources: tuple[str, ...]


@cache
def list_gpus() -> tuple[Gpu, ...]:
    """All accelerators, in the order of the file."""
    return tuple(
        Gpu(
            name=fields["name"],
            aliases=tuple(fields.get("aliases", ())),
            memory_bytes=fields["memory_bytes"],
            memory_basis=fields["memory_basis"],
            bandwidth=round(fields["bandwidth"]),
            flops={dtype: round(value) for dtype, value in fields.get("dense_flops", {}).items()},
            sources=tuple(source["url"] for source in fields["sources"]),
        )
        for fields in read_yaml(PATH)["gpus"]
    )


def find_gpu(text: object) -> Gpu:
    """The accelerator with this name, whatever its case and punctuation.

    Raises: ParamcountError for an unknown name, with the nearest ones.
    """
    names = {normalize(name): gpu for gpu in list_gpus() for name in (*gpu.aliases, gpu.name)}
    key = normalize(text) if isinstance(text, str) else ""
    if key not in names:
        nearest = dict.fromkeys(names[name].name for name in find_nearest(key, names))
        expected = "a name from `paramcount docs gpus`, or --memory with a size"
        raise ParamcountError(f"= {describe_value(text)}", where="gpu", expected=expected, nearest=nearest)
    return names[key]


def normalize(name: str) -> str:
    """A name without case, spaces and punctuation.

    >>> normalize("RTX 4090"), normalize("h100-SXM")
    ('rtx4090', 'h100sxm')
    """
    return re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("nvidia")


def parse_devices(text: object, *, where: str) -> tuple[int, str]:
    """A number of devices and their name.

    >>> parse_devices("8xH100", where="--gpu"), parse_devices("RTX 4090", where="--gpu")
    ((8, 'H100'), (1, 'RTX 4090'))

    Raises: ParamcountError for a number that is not from 1 to 1,024.
    """
    if not isinstance(text, str):
        raise ParamcountError(f"= {describe_value(text)}", where=where, expected="a string such as 8xH100")
    match = DEVICES.fullmatch(text.strip())
    number = int(match[1]) if match else 1
    if not 1 <= number <= 1024:
        raise ParamcountError(f"= {describe_value(text)}", where=where, expected="from 1 to 1,024 devices")
    return number, match[2].strip() if match else text.strip()
