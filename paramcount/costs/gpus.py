"""GPUs and other accelerators: the memory that a program gets, bandwidth and peak FLOPs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

from paramcount.errors import ParamcountError, Text, describe_value, find_nearest, join_words, make_phrase
from paramcount.formats.strict_yaml import read_yaml
from paramcount.output.numbers import format_bytes

DEVICES = re.compile(r"(\d{1,6})\s*[x×*]\s*(.+)", re.IGNORECASE)
SIZE = re.compile(r"(\d{1,4})gb")
MAKERS = re.compile(r"^(nvidia|amd|intel|apple|geforce|tesla)+")
PATH = Path(__file__).with_name("gpus.yaml")
METAL, OPERATING_SYSTEM = "Metal", "operating system"
# GiB with which Apple sells computers, and the share of it that Metal recommends to use at most
# (recommendedMaxWorkingSetSize). Recent versions of macOS: llama.cpp prints 12713.12 MB of 16 GiB, 14302.25 of 18,
# 19069.67 of 24, 26800.60 of 32, 30150.67 of 36, 40200.90 of 48, 55662.79 of 64, 115448.73 of 128, 475136 MiB of 512,
# Rapid-MLX 239 GB of 256 (https://github.com/raullenchai/Rapid-MLX/pull/183). 96 and 192: as the next smaller size.
METAL_SHARES = {
    8: Fraction(2, 3), 16: Fraction("0.74"), 18: Fraction("0.74"), 24: Fraction("0.74"), 32: Fraction("0.78"),
    36: Fraction("0.78"), 48: Fraction("0.78"), 64: Fraction("0.81"), 96: Fraction("0.81"), 128: Fraction("0.84"),
    192: Fraction("0.84"), 256: Fraction("0.87"), 512: Fraction(464, 512),
}  # fmt: skip
# Older versions: 21845.34 MiB of 32 GiB (https://github.com/ollama/ollama/issues/434), 49152 MiB of 64 GiB
# (https://github.com/ggml-org/llama.cpp/issues/1870).
OLDER_SHARES = {True: Fraction(2, 3), False: Fraction(3, 4)}  # up to 36 GiB, and above
APPLE_PAGE = 16384  # bytes, to which Metal rounds up


class Gpu(NamedTuple):
    """One accelerator."""

    name: str
    aliases: tuple[str, ...]
    memory_gb: int  # the maker's figure
    memory_bytes: int  # that a program can allocate
    memory_basis: str  # runtime | sibling | Metal | operating system | maker
    memory_like: str  # the sibling; "" for other bases
    bandwidth: int  # bytes per second
    flops: Mapping[str, int]  # {dtype: dense peak FLOPs per second}
    derived: tuple[str, ...]  # dtypes whose rate follows from the architecture
    sources: tuple[str, ...]

    @property
    def note(self) -> str:
        """What limits the memory if it is shared with the CPU; "" if it is not."""
        if self.memory_basis == METAL:
            older = self.memory_gb * 2**30 * OLDER_SHARES[self.memory_gb <= 36]
            return (
                f"macOS lets the GPU use {format_bytes(self.memory_bytes)} of {self.memory_gb} GiB (older versions: "
                f"{format_bytes(int(older))}), unless `sudo sysctl iogpu.wired_limit_mb=N` sets another limit"
            )
        if self.memory_basis == OPERATING_SYSTEM:
            return (
                f"{self.name} shares its memory with the CPU: {format_bytes(self.memory_bytes)} is the most that the "
                "operating system lets the GPU use"
            )
        return ""


@cache
def list_gpus() -> tuple[Gpu, ...]:
    """All accelerators, in the order of the file."""
    return tuple(
        Gpu(
            name=fields["name"],
            aliases=tuple(fields.get("aliases", ())),
            memory_gb=fields["memory_gb"],
            memory_bytes=fields["memory_bytes"],
            memory_basis=fields["memory_basis"],
            memory_like=fields.get("memory_like", ""),
            bandwidth=round(fields["bandwidth"]),
            flops={dtype: round(value) for dtype, value in fields.get("dense_flops", {}).items()},
            derived=tuple(fields.get("derived", ())),
            sources=tuple(source["url"] for source in fields["sources"]),
        )
        for fields in read_yaml(PATH)["gpus"]
    )


@cache
def index_gpus() -> Mapping[str, Gpu]:
    """{name or alias as `normalize` writes it: accelerator}"""
    return {normalize(name): gpu for gpu in list_gpus() for name in (*gpu.aliases, gpu.name)}


def find_gpu(text: object, otherwise: Text = "") -> Gpu:
    """The accelerator with this name, whatever its case and punctuation; an Apple chip with the memory that is named,
    such as "m4-max-64gb", otherwise with the most that it is sold with. `otherwise`: what may stand in its place.

    Raises: ParamcountError for an unknown name, with the nearest ones.
    """
    names = index_gpus()
    key = normalize(text) if isinstance(text, str) else ""
    if key in names:
        gpu = names[key]
        return resize(gpu, gpu.memory_gb) if gpu.memory_basis == METAL else gpu
    if sized := find_sized(key, names):
        return resize(*sized)
    nearest = dict.fromkeys(names[name].name for name in find_nearest(key, names))
    expected = make_phrase("a name from `paramcount docs gpus`") + otherwise
    raise ParamcountError(f"= {describe_value(text)}", where="gpu", expected=expected, nearest=nearest)


def find_sized(key: str, names: Mapping[str, Gpu]) -> tuple[Gpu, int] | None:
    """The Apple chip and the memory in a name such as "m4max64gb"; None for other names.

    Raises: ParamcountError for a memory with which the chip is not sold.
    """
    for name, gpu in names.items():
        match = SIZE.fullmatch(key.removeprefix(name)) if key.startswith(name) and gpu.memory_basis == METAL else None
        if match:
            sizes = [size for size in METAL_SHARES if size <= gpu.memory_gb]
            if int(match[1]) in sizes:
                return gpu, int(match[1])
            found = f"{gpu.name} with {int(match[1])} GB does not exist"
            raise ParamcountError(found, where="gpu", expected=f"{join_words(map(str, sizes))} GB")
    return None


def resize(gpu: Gpu, gib: int) -> Gpu:
    """An Apple chip with so much memory."""
    return gpu._replace(name=f"{gpu.name} {gib}GB", memory_gb=gib, memory_bytes=find_metal_limit(gib))


def find_metal_limit(gib: int) -> int:
    """The bytes that Metal recommends to use at most on a computer with so much memory.

    >>> find_metal_limit(128), find_metal_limit(16)
    (115448725504, 12713115648)
    """
    return -(-gib * 2**30 * METAL_SHARES[gib] // APPLE_PAGE) * APPLE_PAGE


def normalize(name: str) -> str:
    """A name without maker, case, spaces and punctuation.

    >>> normalize("NVIDIA GeForce RTX 4090"), normalize("h100-SXM")
    ('rtx4090', 'h100sxm')
    """
    return MAKERS.sub("", re.sub(r"[^a-z0-9]", "", name.lower()))


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
