"""The model's tensors as llama.cpp's converter names them in a GGUF file.

Source: as for gguf_tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from paramcount.architectures import get_own, read_index
from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.writers import gguf_tables as tables
from paramcount.checkpoints.writers.gguf_shapes import write_shape
from paramcount.checkpoints.writers.layouts import combine_parts, fuse_rows
from paramcount.checkpoints.writers.rewriting import split_ending, unstack
from paramcount.counting.components import TOWERS
from paramcount.counting.tensors import iterate_names
from paramcount.errors import ParamcountError, find_nearest, quote
from paramcount.flow import TensorRow
from paramcount.sizes import Sizes
from paramcount.sizes.fields import inner_configs
from paramcount.zoo.entries import name_part

if TYPE_CHECKING:
    from paramcount.counting.count import Count

MODULES = Path(__file__).with_name("gguf_modules.json")
BETWEEN_DOTS = re.compile(r"(?<![^.])\d+(?![^.])")
PADDED_TABLES = ("token_embd.weight", "position_embd.weight")  # tables whose padding some converters drop
T5 = ("t5", "t5encoder")  # their layers are in an encoder or a decoder


class HasShape(Protocol):
    """A tensor of a file."""

    @property
    def shape(self) -> tuple[int, ...] | None: ...


def list_gguf_tensors(
    tensors: Iterable[TensorRow], file_tensors: Collection[str], architecture: str | None, count: Count
) -> list[TensorRow]:
    """The model's tensors as a GGUF file names and shapes them, outermost axis first.

    Tensors without a GGUF name keep their own. Parts that are in a separate mmproj file are omitted.

    Args:
        tensors: the model's tensors
        file_tensors: names in the file. They decide what differs between converters: whether experts are stacked,
            whether gate and up or q, k and v are fused, whether MLA's kv_b is split. A mapping to objects with a shape
            also decides whether llama-quantize dropped an outermost axis of 1, and which padding rows a table lacks.
        architecture: general.architecture of the file
        count: the count with these tensors

    Raises: ParamcountError if the file is of another architecture, or if llama.cpp does not support the model's.

    >>> from paramcount.api import count
    >>> deepseek = count("deepseek-v3")
    >>> tensors = list_gguf_tensors(deepseek.tensors, (), "deepseek2", deepseek)
    >>> next(t.shape for t in tensors if t.name == "blk.{layer}.attn_k_b.weight")
    (128, 512, 128)
    """
    layout = find_layout(count.architecture, architecture, count.sizes)
    sizes = getattr(count.sizes, "language", count.sizes)
    model: type[Sizes] = type(sizes)
    names = {fold_indices(name) for name in file_tensors}
    written: list[TensorRow] = []
    for tensor in tensors:
        if tensor.part in TOWERS or tensor.role == "legacy_buffer" or is_dropped(tensor, layout):
            continue
        name, tied_to = (one and get_gguf_name(one, layout, model) for one in (tensor.name, tensor.tied_to))
        if name is None:
            written.append(tensor)
        elif name != tied_to:
            renamed = tensor._replace(name=name, tied_to=tied_to or tensor.tied_to)
            written += write_shape(renamed, layout, names, sizes)
    if layout.startswith("granite") and not any("_exps" in tensor.name for tensor in written):
        written = [tensor._replace(name=tensor.name.replace("_shexp", "")) for tensor in written]
    for whole, parts in tables.FUSED:
        written = combine_parts(written, whole, parts, fuse_rows, {strip_indices(name) for name in names})
    written = unstack_experts(written, names)
    if not isinstance(file_tensors, Mapping):
        return written
    return [use_file_shape(tensor, file_tensors, layout, count.architecture) for tensor in written]


def list_mmproj_parts(tensors: Iterable[TensorRow]) -> tuple[str, ...]:
    """The parts of a model that are in a separate mmproj file.

    >>> from paramcount.api import count
    >>> list_mmproj_parts(count({"model_type": "gemma3"}).tensors)
    ('vision', 'projector')
    """
    parts = {tensor.part for tensor in tensors}
    return tuple(part for part in TOWERS if part in parts)


def describe_dropped_padding(declared: Iterable[TensorRow], written: Iterable[TensorRow]) -> list[str]:
    """A note for each table that has fewer rows in the file than in the model."""
    rows = {
        get_gguf_name(tensor.name, ""): tensor.shape[0]
        for tensor in declared
        if "{layer}" not in tensor.name and tensor.part not in TOWERS
    }
    notes = []
    for name, n in ((tensor.name, tensor.shape[0]) for tensor in written if tensor.name in PADDED_TABLES):
        if n < rows.get(name, 0):
            notes.append(f"{name}: {rows[name] - n:,} of {rows[name]:,} rows are padding that the converter drops")
    return notes


def find_layout(declared: str, architecture: str | None, sizes: Sizes | None = None) -> str:
    """llama.cpp's name for an architecture: the file's, if it is a possible one.

    Args:
        declared: the architecture
        architecture: general.architecture of the file
        sizes: the sizes of the model. A multimodal model with any language model has the names of the one that it has.

    Raises: ParamcountError if the file is of another architecture, or if llama.cpp does not support the model's.

    >>> find_layout("mixtral", None)
    'llama'
    """
    layouts = list_layouts(declared, sizes)
    if architecture is not None and architecture not in layouts:
        found = f"= {quote(architecture)}, but the model is {declared}"
        raise ParamcountError(found, where="general.architecture", choices=layouts)
    return architecture or layouts[0]


def list_layouts(declared: str, sizes: Sizes | None = None) -> list[str]:
    """llama.cpp's names for an architecture, those of today's converter first. Arguments and errors: find_layout."""
    known = read_index("gguf")
    layouts: list[str] = known.get(declared, "").split()
    if not layouts:
        nearest = find_nearest(declared, known)
        raise ParamcountError(f"paramcount does not know llama.cpp's tensor names for {declared}", nearest=nearest)
    if sizes is None or inner_configs(type(sizes)).get("language") is not Sizes:
        return layouts
    language = name_part(Sizes, type(sizes.language))  # type: ignore[attr-defined]  # any language model
    layouts = [layout for layout in layouts if layout in list_layouts(language)]
    if not layouts:
        raise ParamcountError(f"paramcount does not know llama.cpp's tensor names for {declared} with {language}")
    return layouts


def fold_indices(name: str) -> str:
    """A name in a file with placeholders for its indices.

    >>> fold_indices("blk.31.ffn_gate.7.weight"), fold_indices("enc.blk.0.attn_q.weight")
    ('blk.{layer}.ffn_gate.{expert}.weight', 'enc.blk.{layer}.attn_q.weight')
    """
    return BETWEEN_DOTS.sub("{expert}", BETWEEN_DOTS.sub("{layer}", name, count=1))


# ---- names


@cache
def get_gguf_name(name: str, layout: str, model: type[Sizes] = Sizes) -> str | None:
    """The GGUF name of a tensor of a model's class; None if it has none.

    >>> get_gguf_name("model.layers.{layer}.self_attn.q_proj.weight", "llama"), get_gguf_name("lm_head.weight", "llama")
    ('blk.{layer}.attn_q.weight', 'output.weight')
    """
    module, ending = split_ending(name)
    _, layer, inside = module.rpartition("{layer}.")
    stack = f"{module[:3]}." if layout in T5 and module.startswith(("encoder.", "decoder.")) else ""
    if not layer:
        base = find_longest_suffix(module, read_table("outside"))
        return base and f"{stack if base == 'output_norm' else ''}{base}{ending}"
    names = read_table("in layers" if ending else "parameters")
    base = find_longest_suffix(module, model.gguf_names) or find_longest_suffix(inside, names)
    if base and base == tables.WITHOUT_ENDING.get(layout):
        ending = ""
    return base and f"{stack}blk.{{layer}}.{base}{ending}"


def find_longest_suffix(module: str, names: Mapping[str, str]) -> str | None:
    """The entry for the longest known suffix of a module's path."""
    words = module.split(".")
    return next((name for i in range(len(words)) if (name := names.get(".".join(words[i:])))), None)


@cache
def read_table(table: str) -> dict[str, str]:
    """{module of the model: GGUF's name}"""
    names: dict[str, str] = json.loads(MODULES.read_text(encoding="utf-8"))[table]
    return {module: name for name, modules in names.items() for module in modules.split()}


def is_dropped(tensor: TensorRow, layout: str) -> bool:
    words = tensor.name.split(".")
    if any(word in tables.DROPPED for word in words):
        return True
    return layout in tables.HEADLESS and "lm_head" in words and tensor.tied_to is None


# ---- differences between converters


def unstack_experts(tensors: list[TensorRow], names: Collection[str]) -> list[TensorRow]:
    """Experts separately, if the file has a tensor per expert. `names`: those in the file, without indices."""
    result = []
    for tensor in tensors:
        before, base, ending = tensor.name.rpartition("_exps")
        name = f"{before}.{{expert}}{ending}" if base else ""
        result.append(unstack(tensor, name) if name in names else tensor)
    return result


def use_file_shape(tensor: TensorRow, file_tensors: Mapping[str, HasShape], layout: str, declared: str) -> TensorRow:
    """The tensor in the file's shape, if that differs only in leading axes of 1 or in dropped padding rows."""
    name = next((name for name in iterate_names(tensor.name, tensor.repeats) if name in file_tensors), None)
    shape = file_tensors[name].shape if name else None
    if not shape or shape == tensor.shape:
        return tensor
    dropped_rows = tensor.shape[0] - shape[0] if shape[1:] == tensor.shape[1:] else 0
    if tensor.name == "token_embd.weight" and layout in tables.WITHOUT_PADDING:
        is_same = 0 < dropped_rows <= tables.MOST_PADDING_TOKENS
    elif tensor.name == "position_embd.weight":
        is_same = 0 < dropped_rows == get_own(declared, "gguf_padding_rows")
    else:
        is_same = False
    is_same = is_same or drop_leading_ones(shape) == drop_leading_ones(tensor.shape)
    return tensor._replace(matrix=shape, stacked=None) if is_same else tensor


def drop_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without its outermost axes of 1, except the last axis."""
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape
