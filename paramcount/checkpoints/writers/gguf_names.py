"""Declared tensors as llama.cpp's converter names them in a GGUF file, and which of its ways a file is written in.

Source: as of gguf_tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from paramcount.checkpoints.matching import iterate_names
from paramcount.checkpoints.writers import gguf_tables as tables
from paramcount.checkpoints.writers.gguf_shapes import shaped
from paramcount.checkpoints.writers.rewriting import fuse, unstack
from paramcount.counting.tensors import TOWERS, Tensor
from paramcount.errors import ParamcountError, find_nearest, quote

if TYPE_CHECKING:
    from paramcount.counting.count import Count

ADDED = tables.ADDED
INDEX = re.compile(r"(?<![^.])\d+(?![^.])")  # a word of a name
CUT = ("token_embd.weight", "position_embd.weight")  # tables of which converters may leave out rows
T5 = ("t5", "t5encoder")  # whose layers are of an encoder or a decoder


def gguf_tensors(
    tensors: Iterable[Tensor], held: Collection[str], architecture: str | None, count: Count
) -> list[Tensor]:
    """The declared tensors as they stand in a GGUF file, shapes outermost axis first. What GGUF has no name for keeps its own.

    Where converters differ, `held` decides, the names in the file: experts together or one by one, gate and up or q, k and v fused, latent
    attention split or not. Where it is a mapping to something with a shape, that decides what names cannot tell: whether llama-quantize has
    dropped an outermost axis of 1, which rows of a table stand for no token. `architecture`: what the file says of itself. `count`: of which
    these are the tensors. Parts that stand in an mmproj file of their own are left out.

    Raises: ParamcountError where the file is of another architecture than the declared one, or llama.cpp knows none for that.

    >>> from paramcount.api import count
    >>> deepseek = count("deepseek-v3")
    >>> next(t.shape for t in gguf_tensors(deepseek.tensors, (), "deepseek2", deepseek) if t.name == "blk.{layer}.attn_k_b.weight")
    (128, 512, 128)
    """
    layout = layout_of(count.architecture, architecture)
    names = {fold_indices(name) for name in held}
    found: list[Tensor] = []
    for tensor in tensors:
        if tensor.part in TOWERS or tensor.role == "legacy_buffer" or is_dropped(tensor, layout):
            continue
        name, tied = gguf_name(tensor.name, layout), tensor.tied_to and gguf_name(tensor.tied_to, layout)
        if name is None:
            found.append(tensor)
        elif name != tied:
            found += shaped(tensor._replace(name=name, tied_to=tied or tensor.tied_to), layout, names, count.sizes)
    if layout.startswith("granite") and not any("_exps" in tensor.name for tensor in found):
        found = [tensor._replace(name=tensor.name.replace("_shexp", "")) for tensor in found]
    found = one_by_one(stack(found, names), names)
    return (
        [use_file_shape(tensor, held, layout, count.architecture) for tensor in found]
        if isinstance(held, Mapping)
        else found
    )


def find_omitted(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    """Parts of a declaration that stand in an mmproj file of their own.

    >>> from paramcount.api import count
    >>> find_omitted(count({"model_type": "gemma3"}).tensors)
    ('vision', 'projector')
    """
    parts = {tensor.part for tensor in tensors}
    return tuple(part for part in TOWERS if part in parts)


def rows_left_out(declared: Iterable[Tensor], written: Iterable[Tensor]) -> list[str]:
    """What a file's tables lack of the declared ones, as a sentence each: rows that stand for no token or place."""
    rows = {
        gguf_name(tensor.name, ""): tensor.shape[0]
        for tensor in declared
        if "{layer}" not in tensor.name and tensor.part not in TOWERS
    }
    return [
        f"{tensor.name}: {rows[tensor.name] - tensor.shape[0]:,} of {rows[tensor.name]:,} rows are padding that the converter drops"
        for tensor in written
        if tensor.name in CUT and tensor.shape[0] < rows.get(tensor.name, 0)
    ]


def layout_of(declared: str, architecture: str | None) -> str:
    """The architecture that llama.cpp takes a declared one for: what a file says of itself, where that fits.

    >>> layout_of("mixtral", None)
    'llama'
    """
    fitting = tables.LAYOUTS.get(declared, "").split()
    if not fitting:
        raise ParamcountError(
            f"paramcount does not know llama.cpp's tensor names for {declared}",
            nearest=find_nearest(declared, tables.LAYOUTS),
        )
    if architecture is not None and architecture not in fitting:
        found = f"= {quote(architecture)}, but the model is {declared}"
        raise ParamcountError(found, where="general.architecture", choices=fitting)
    return architecture or fitting[0]


def fold_indices(name: str) -> str:
    """A name in a file with its indices as a declaration writes them.

    >>> fold_indices("blk.31.ffn_gate.7.weight"), fold_indices("enc.blk.0.attn_q.weight")
    ('blk.{layer}.ffn_gate.{expert}.weight', 'enc.blk.{layer}.attn_q.weight')
    """
    return INDEX.sub("{expert}", INDEX.sub("{layer}", name, count=1))


# ---- names


@cache
def gguf_name(name: str, layout: str) -> str | None:
    """What a declared tensor is called; None where GGUF has no name for it.

    >>> gguf_name("model.layers.{layer}.self_attn.q_proj.weight", "llama"), gguf_name("lm_head.weight", "llama")
    ('blk.{layer}.attn_q.weight', 'output.weight')
    """
    ending = next((ending for ending in (".weight", ".bias") if name.endswith(ending)), "")
    module = name.removesuffix(ending)
    _, layer, inside = module.rpartition("{layer}.")
    stack = f"{module[:3]}." if layout in T5 and module.startswith(("encoder.", "decoder.")) else ""
    if not layer:
        outside = longest(module, read_table("OUTSIDE"))
        return outside and f"{stack if outside == 'output_norm' else ''}{outside}{ending}"
    found = longest(module, elsewhere(layout)) or longest(inside, read_table("IN_LAYER" if ending else "PARAMETERS"))
    ending = "" if found and found == tables.NO_ENDING.get(layout) else ending
    return found and f"{stack}blk.{{layer}}.{found}{ending}"


def longest(module: str, known: Mapping[str, str]) -> str | None:
    """What the most of its last words are known as."""
    words = module.split(".")
    return next((found for i in range(len(words)) if (found := known.get(".".join(words[i:])))), None)


@cache
def read_table(table: str) -> dict[str, str]:
    """{declared module: GGUF's name}"""
    return {module: name for name, declared in getattr(tables, table).items() for module in declared.split()}


@cache
def elsewhere(layout: str) -> dict[str, str]:
    """What modules are called in this layout alone."""
    return {module: name for module, name, layouts in tables.ELSEWHERE if layout in layouts.split()}


def is_dropped(tensor: Tensor, layout: str) -> bool:
    """Whether the converter reads a tensor and does not write it."""
    words = tensor.name.split(".")
    return any(word in tables.DROPPED for word in words) or (
        layout in tables.HEADLESS and "lm_head" in words and tensor.tied_to is None
    )


# ---- ways to write a file


def stack(tensors: list[Tensor], names: Collection[str]) -> list[Tensor]:
    """Matrices over the same input as one, where the file holds them so."""
    for separate, whole in tables.TOGETHER:
        for ending in (".weight", ".bias"):
            apart_names = [f"blk.{{layer}}.{base}{ending}" for base in separate]
            name = f"blk.{{layer}}.{whole}{ending}"
            if name in names and not any(part in names for part in apart_names):
                tensors = fuse_rows(tensors, apart_names, name)
    return tensors


def fuse_rows(tensors: list[Tensor], separate: list[str], name: str) -> list[Tensor]:
    """Those of the same layers as one, where the first of them stood."""
    groups: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        if tensor.name in separate:
            groups.setdefault(tensor.repeats, []).append(tensor)
    found = []
    for tensor in tensors:
        group = groups.get(tensor.repeats, []) if tensor.name in separate else []
        if len(group) != len(separate):
            found.append(tensor)
        elif tensor is group[0]:
            found.append(
                fuse(name, sorted(group, key=lambda part: separate.index(part.name)), axis=1 if tensor.stacked else 0)
            )
    return found


def one_by_one(tensors: list[Tensor], names: Collection[str]) -> list[Tensor]:
    """Experts that the file holds one by one."""
    found = []
    for tensor in tensors:
        before, base, ending = tensor.name.rpartition("_exps")
        single = f"{before}.{{expert}}{ending}" if base else ""
        found.append(unstack(tensor, single) if single in names else tensor)
    return found


def use_file_shape(tensor: Tensor, held: Mapping[str, object], layout: str, declared: str) -> Tensor:
    """A tensor in the shape that a file holds it in, where that is another way to write the same."""
    name = next((name for name in iterate_names(tensor) if name in held), None)
    shape: tuple[int, ...] | None = getattr(held[name], "shape", None) if name else None
    if shape is None or shape == tensor.shape or not shape:
        return tensor
    rows = tensor.shape[0] - shape[0] if shape[1:] == tensor.shape[1:] else 0
    no_token = (
        tensor.name == "token_embd.weight" and layout in tables.NO_TOKEN and 0 < rows <= tables.MOST_ROWS_OF_NO_TOKEN
    )
    no_place = tensor.name == "position_embd.weight" and declared in tables.ROBERTA and rows == tables.ROWS_OF_NO_PLACE
    return (
        tensor._replace(shape=shape)
        if no_token or no_place or without_ones(shape) == without_ones(tensor.shape)
        else tensor
    )


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without the outermost axes of 1."""
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape
