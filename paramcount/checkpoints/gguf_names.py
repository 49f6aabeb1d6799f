"""Declared tensors as llama.cpp's converter names and shapes them in a GGUF file.

Source: as of gguf_tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from paramcount.checkpoints import gguf_tables as tables
from paramcount.checkpoints.gguf_tables import ADDED as ADDED
from paramcount.checkpoints.rewriting import apart, fused, split, together, turned
from paramcount.errors import ParamcountError, near, quoted
from paramcount.stored import TOWERS, Tensor

if TYPE_CHECKING:
    from paramcount.counting import Count

ENDINGS = (".weight", ".bias")
INDEX = re.compile(r"(?<![^.])\d+(?![^.])")  # a word of a name
EXPERTS = ("ffn_gate", "ffn_up", "ffn_down")
QKV = ("attn_q", "attn_k", "attn_v")


def gguf_tensors(tensors: Sequence[Tensor], held: Collection[str], architecture: str | None, count: Count) -> list[Tensor]:
    """The declared tensors as they stand in a GGUF file, shapes outermost axis first. What GGUF has no name for keeps its own.

    Where converters differ, `held`, the names in the file, decides: experts together or one by one, gate and up or q, k and v fused,
    latent attention split or not, MTP layers or none. Parts that stand in an mmproj file of their own are left out.
    `architecture`: what the file says of itself. `count`: of which these are the tensors.

    Raises: ParamcountError where the file is of another architecture than the declared one.

    >>> from paramcount.counting import count
    >>> deepseek = count("deepseek-v3")
    >>> next(t.shape for t in gguf_tensors(deepseek.tensors, (), "deepseek2", deepseek) if t.name == "blk.{layer}.attn_k_b.weight")
    (128, 512, 128)
    """
    layout = layout_of(count.architecture, architecture)
    names = {folded(name) for name in held}
    layers = {int(index) for name in held for index in INDEX.findall(name)[:1]}
    found: list[Tensor] = []
    for tensor in tensors:
        if tensor.part in TOWERS or tensor.role == "legacy_buffer" or is_dropped(tensor, layout):
            continue
        if tensor.part == "mtp" and layers.isdisjoint(i for repeat in tensor.repeats if repeat.axis == "layer" for i in repeat.indices):
            continue
        name = gguf_name(tensor.name, layout)
        tied = tensor.tied_to and (gguf_name(tensor.tied_to, layout) or tensor.tied_to)
        if name is None:
            if tensor.role == "parameter":
                found.append(tensor._replace(tied_to=tied))
        elif tied != name:
            found += shaped(tensor._replace(name=name, tied_to=tied), layout, names, count.sizes)
    if layout.startswith("granite") and not any("_exps" in tensor.name for tensor in found):
        found = [tensor._replace(name=tensor.name.replace("_shexp", "")) for tensor in found]
    for choose in (one_by_one, gate_and_up, q_k_and_v):
        found = choose(found, names)
    return found if layout not in tables.SHORTER_TABLE else [shortened(tensor, held) for tensor in found]


def left_out(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    """Parts of a declaration that stand in an mmproj file of their own.

    >>> from paramcount.counting import count
    >>> left_out(count("gpt2-small").tensors)
    ()
    """
    return tuple(part for part in TOWERS if any(tensor.part == part for tensor in tensors))


def layout_of(declared: str, architecture: str | None) -> str:
    """The architecture that llama.cpp takes a declared one for; what a file says of itself, where it may say that.

    >>> layout_of("mixtral", "llama")
    'llama'
    """
    fitting = tables.LAYOUTS.get(declared, ())
    if not fitting:
        raise ParamcountError(f"llama.cpp is not known to convert the architecture {declared}", nearest=near(declared, tables.LAYOUTS))
    if architecture is not None and architecture not in fitting:
        raise ParamcountError(
            f"a GGUF file of the architecture {quoted(architecture)} cannot hold the declared {declared}",
            where="general.architecture",
            accepted=" or ".join(fitting),
        )
    return architecture or fitting[0]


def folded(name: str) -> str:
    """A name in a file with its indices as a declaration writes them.

    >>> folded("blk.31.ffn_gate.7.weight"), folded("enc.blk.0.attn_q.weight")
    ('blk.{layer}.ffn_gate.{expert}.weight', 'enc.blk.{layer}.attn_q.weight')
    """
    return INDEX.sub("{expert}", INDEX.sub("{layer}", name, count=1))


@cache
def modules(outside: bool) -> dict[str, str]:
    """{declared module: GGUF's name}"""
    return {module: name for name, declared in (tables.OUTSIDE if outside else tables.IN_LAYER).items() for module in declared.split()}


@cache
def parameters() -> dict[str, str]:
    return {parameter: name for name, declared in tables.PARAMETERS.items() for parameter in declared.split()}


@cache
def elsewhere(layout: str) -> dict[str, str]:
    """What modules are called in this layout alone."""
    return {module: name for (module, name), layouts in tables.ELSEWHERE.items() if layout in layouts.split()}


@cache
def gguf_name(name: str, layout: str) -> str | None:
    """What a declared tensor is called; None where GGUF has no name for it.

    >>> gguf_name("model.layers.{layer}.self_attn.q_proj.weight", "llama"), gguf_name("lm_head.weight", "llama")
    ('blk.{layer}.attn_q.weight', 'output.weight')
    """
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), "")
    before, layer, tail = name.rpartition("{layer}.")
    stack = next((side for side in ("enc", "dec") if layout in ("t5", "t5encoder") and name.startswith(f"{side}oder.") and "embed_tokens" not in name), "")
    block = f"{stack}.blk" if stack else "blk"
    if not ending and layer:
        found = longest(tail, parameters())
        return found and f"{block}.{{layer}}.{found}"
    found = longest(name.removesuffix(ending), elsewhere(layout)) or longest(tail.removesuffix(ending), modules(not layer))
    if found is None:
        return None
    if layer:
        return f"{block}.{{layer}}.{'attn_o' if stack and found == 'attn_output' else found}{ending}"
    return f"{stack}.{found}{ending}" if stack and found == "output_norm" else f"{found}{ending}"


def longest(name: str, known: Mapping[str, str]) -> str | None:
    """What the most of a name's last words are known as."""
    words = name.split(".")
    return next((found for i in range(len(words)) if (found := known.get(".".join(words[i:])))), None)


def is_dropped(tensor: Tensor, layout: str) -> bool:
    """Whether the converter reads a tensor and does not write it."""
    words = tensor.name.split(".")
    return not set(words).isdisjoint(tables.DROPPED) or (layout in tables.HEADLESS and "lm_head" in words)


# ---- shapes


def shaped(tensor: Tensor, layout: str, held: Collection[str], sizes: Any) -> Iterator[Tensor]:
    """A tensor that has its name, in the shape that it is written in; several where it is taken apart."""
    stem, ending = tensor.name, ""
    for ending in ENDINGS:
        if tensor.name.endswith(ending):
            stem = tensor.name.removesuffix(ending)
            break
    base = stem.rpartition(".")[2]
    if any(repeat.axis == "expert" for repeat in tensor.repeats):
        tensor = together(tensor, tensor.name)
    elif tensor.stacked and tensor.splits:
        tensor = outputs_first(tensor)
    elif beside := next((repeat for repeat in tensor.repeats if repeat.axis in ("head", "stream")), None):
        tensor = tensor._replace(shape=(beside.count, *tensor.shape), repeats=tuple(repeat for repeat in tensor.repeats if repeat is not beside))
    if base == "attn_kv_b" and layout not in tables.KEPT_WHOLE and tensor.name not in held:
        yield from absorbed(tensor, sizes)
    elif base == "attn_qkv" and tensor.splits and layout in tables.QKV_APART and tensor.name not in held:
        yield from named_pieces(tensor, [stem.replace("attn_qkv", name) + ending for name in QKV])
    ...
