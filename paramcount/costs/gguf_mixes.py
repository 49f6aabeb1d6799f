"""llama.cpp's quantisation mixes: the type of every tensor of a GGUF file that llama-quantize writes.

Source: github ggml-org/llama.cpp, commit 0c1e57098, src/llama-quant.cpp: tensor_allows_quantization,
tensor_get_category, llama_tensor_get_type_impl and tensor_type_fallback; conversion/base.py for the types before
quantisation, and generate_extra_tensors of conversion/llama.py, deci.py, exaone.py, phi.py, minicpm.py and gemma.py;
src/llama-hparams.h for LLAMA_MAX_LAYERS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from paramcount.checkpoints.writers.gguf_names import find_layout, list_gguf_tensors
from paramcount.counting import Count
from paramcount.counting.quantisation.scales import select_layers
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError
from paramcount.flow import LongRopeScaling, Rope, TensorRow
from paramcount.formats.packing import Packing
from paramcount.formats.weights import compute_bytes
from paramcount.formats.weights.gguf import BLOCKS, EXPERT_MIXES, MIXES

# Mixes of fewer than 3 bits, whose rules differ from all others
SMALLEST = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")
# Mixes that leave the output projection as it is in a mixture of 8 experts
KEPT_FOR_EIGHT_EXPERTS = (
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K_S", "Q3_K_L", "Q5_K_S", "Q5_K_M", "Q6_K", "TQ1_0", "TQ2_0",
)  # fmt: skip
NEVER_QUANTISED = (
    "_norm.weight", "ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "altup", "laurel", "per_layer_model_proj",
    "ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "time_mix_first",
    "time_mix_w0", "time_mix_w1", "time_mix_w2", "time_mix_v0", "time_mix_v1", "time_mix_v2", "time_mix_a0",
    "time_mix_a1", "time_mix_a2", "time_mix_g1", "time_mix_g2", "time_mix_decay_w1", "time_mix_decay_w2",
    "time_mix_lerp_fused.weight", "attn_rel_b.weight", "position_embd", "patch_embd", "token_types.weight",
)  # fmt: skip
FLOAT32 = ("_norm.weight", "ffn_gate_inp", "position_embd", "token_types", "ssm_conv1d", "shortconv.conv")
# {type: the type for rows that its blocks do not divide}
FALLBACKS = {
    **dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"),
    **dict.fromkeys(("Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
    "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0",
}  # fmt: skip


MOST_LAYERS = 512  # of a model that llama.cpp loads (LLAMA_MAX_LAYERS)
# Architectures whose MTP layers the converter writes into the model's file; llama.cpp does not load them unless it
# drafts with them. Source: conversion/glm.py and conversion/deepseek.py (skip_mtp), src/models/glm4-moe.cpp
# (TENSOR_SKIP).
WITH_MTP = ("glm4moe", "glm-dsa", "deepseek32")


class Facts(NamedTuple):
    """What the rules know of a model."""

    mix: str
    layout: str  # llama.cpp's name of the architecture
    n_layers: int
    n_values: int  # tensors that the rules for the values of attention apply to
    n_gqa: int  # query heads per KV head
    n_experts: int
    is_tied: bool  # whether the token embedding is the LM head too
    is_70b: bool
    imatrix: bool  # whether an importance matrix is given


def list_mix(count: Count, mix: str, *, imatrix: bool = False) -> Iterator[StoredTensor]:
    """How llama-quantize stores each tensor of a model, those of MTP layers that it writes into the file included;
    equal copies of one tensor with one type are one row.

    Raises: ParamcountError for a model that llama.cpp does not support.
    """
    layout = find_layout(count.architecture, None, count.sizes)
    runs = (
        run for tensor in count.tensors for repeat in tensor.repeats if repeat.axis == "layer" for run in repeat.runs
    )
    n_layers = max((first + length for first, length in runs), default=0)
    if n_layers > MOST_LAYERS:
        expected = f"at most {MOST_LAYERS}, the most that llama.cpp loads"
        raise ParamcountError(f"has {n_layers:,} layers", where=count.id, expected=expected)
    kinds = ("total", "buffer", *list_mtp_kinds(count, layout))
    tensors = [tensor for tensor in list_gguf_tensors(count.tensors, (), layout, count) if tensor.kind in kinds]
    facts = find_facts(count, tensors, mix, layout, imatrix=imatrix)
    rows: dict[tuple[TensorRow, str], list[int]] = {}
    for layer, tensor, type in choose_layer_types(tensors, facts):
        rows.setdefault((tensor, type), []).append(layer)
    for (tensor, type), layers in rows.items():
        packing, copies = Packing("gguf", type), len(layers) * tensor.copies // count_layers(tensor)
        stored = select_layers(tensor, layers)
        yield StoredTensor(stored, copies, packing, copies * compute_bytes(tensor.shape, packing))


def list_mtp_kinds(count: Count, layout: str) -> tuple[str, ...]:
    """The kinds of tensors of MTP layers that a file contains: those of the release, if it is known."""
    if layout not in WITH_MTP or (count.release and "mtp" not in count.release):
        return ()
    has_copies = not count.release or "mtp_copies" in count.release
    return ("mtp", "mtp_buffer", "mtp_copy") if has_copies else ("mtp", "mtp_buffer")


def list_rope_tables(sizes: Any, architecture: str) -> Iterator[StoredTensor]:
    """The tables of rotary frequencies that llama.cpp's converter adds to a file. `sizes`: with their settings."""
    find_layout(architecture, None, sizes)  # there is one
    sizes = getattr(sizes, "language", sizes)
    rope = getattr(sizes, "rope", None)
    if not isinstance(rope, Rope) or rope.kind != sizes.gguf_rope_factors:
        return
    if isinstance(rope.scaling, LongRopeScaling):
        tables = {"rope_factors_long": len(rope.scaling.long), "rope_factors_short": len(rope.scaling.short)}
    else:
        d: int = sizes.d_global_head if rope.kind == "proportional" else sizes.d_head
        tables = {"rope_freqs": d // 2}
    packing = Packing("gguf", "F32")
    for name, n in tables.items():
        tensor = TensorRow(f"{name}.weight", (n,), "other", "decoder", "buffer")
        yield StoredTensor(tensor, 1, packing, compute_bytes(tensor.shape, packing))


def find_facts(count: Count, tensors: Sequence[TensorRow], mix: str, layout: str, *, imatrix: bool) -> Facts:
    """What the rules know of a model."""
    sizes = getattr(count.sizes, "language", count.sizes)
    names = [(tensor.name, count_layers(tensor)) for tensor in tensors]
    has_latents = any("attn_k_b." in name for name, _ in names)
    heads = getattr(sizes, "n_heads", 0) or 0
    kv_heads = 1 if has_latents else getattr(sizes, "n_kv_heads", None) or heads
    mtp_layers = {i for tensor in tensors if tensor.part == "mtp" for i in list_layers(tensor)}
    n_layers = getattr(sizes, "n_layers", 0) + len(mtp_layers)  # block_count of the file
    if sizes.gguf_kv_heads_by_layer and not any("attn_k." in t.name and 0 in list_layers(t) for t in tensors):
        kv_heads = 0  # of the first layer, which is what the rules look at
    return Facts(
        mix,
        layout,
        n_layers,
        sum(n for name, n in names if is_values(name)),
        heads // kv_heads if kv_heads else 0,
        getattr(sizes, "n_routed_experts", 0) or 0,
        not any(name == "output.weight" for name, _ in names),
        layout in ("llama", "qwen2", "deci", "olmo") and n_layers == 80 and heads != kv_heads,
        imatrix,
    )


def count_layers(tensor: TensorRow) -> int:
    """In how many layers a tensor is; 1 if it is outside of any."""
    return sum(length for _, length in tensor.layer.runs) if tensor.layer else 1


def list_layers(tensor: TensorRow) -> tuple[int, ...]:
    """The layers that have a tensor; -1 if it is outside of any."""
    return tensor.layer.indices if tensor.layer else (-1,)


def choose_layer_types(tensors: Iterable[TensorRow], facts: Facts) -> Iterator[tuple[int, TensorRow, str]]:
    """(layer, tensor, type) in llama.cpp's order: tensors outside of layers (-1) first, then by layer and name."""
    order = sorted(
        (
            (layer, tensor.name.replace("{layer}", str(layer)), tensor, quantised)
            for tensor in tensors
            for quantised in (is_quantised(tensor),)
            for layer in list_layers(tensor)
        ),
        key=lambda item: item[:2],
    )
    counters = dict.fromkeys(("values", "ffn_down", "ffn_gate", "ffn_up"), 0)
    for layer, name, tensor, quantised in order:
        if not quantised:
            is_float32 = len(tensor.shape) < 2 or not name.endswith(".weight") or any(part in name for part in FLOAT32)
            yield layer, tensor, "F32" if is_float32 else "F16"
            continue
        kind = "values" if is_values(name) else next((kind for kind in counters if kind in name), "")
        index = counters.get(kind, 0)
        type = choose_type(name, tensor, facts, index, layer if facts.n_experts > 1 else index)
        if kind:
            counters[kind] += 1
        yield layer, tensor, find_fitting_type(type, tensor.shape[-1])


def is_quantised(tensor: TensorRow) -> bool:
    """Whether llama-quantize changes the type of a tensor."""
    name = tensor.name
    return len(tensor.shape) > 1 and name.endswith("weight") and not any(part in name for part in NEVER_QUANTISED)


def is_values(name: str) -> bool:
    """Whether the rules for the values of attention apply: also to q, k and v in one matrix."""
    return bool(re.search(r"attn_(v|qkv|kv_b)\.weight", name))


def find_fitting_type(type: str, row: int) -> str:
    """The type itself, or the nearest one whose blocks divide a row."""
    if row % BLOCKS[type].values == 0:
        return type
    type = FALLBACKS.get(type, type)
    return type if row % BLOCKS[type].values == 0 else "F16"


def use_more_bits(i: int, n: int) -> bool:
    """The first and last eighth of the layers, and every third between them."""
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def choose_type(name: str, tensor: TensorRow, facts: Facts, index: int, layer: int) -> str:
    """The type of one tensor. `index`: among the tensors of its kind; `layer`: the same, or its block in a mixture."""
    mix, default = facts.mix, MIXES[facts.mix]
    if name == "output.weight" or (name == "token_embd.weight" and facts.is_tied):
        return choose_lm_head_type(facts, tensor.shape[-1])
    if mix in EXPERT_MIXES:
        return default if len(tensor.shape) > 2 else EXPERT_MIXES[mix]
    if name in ("token_embd.weight", "per_layer_token_embd.weight"):
        return choose_embedding_type(mix)
    if mix in SMALLEST:
        return choose_smallest_type(name, facts, index)
    if is_values(name):
        return choose_values_type(facts, index)
    if "attn_k.weight" in name or "attn_q.weight" in name:
        if facts.n_experts == 8 and "attn_k" in name:
            return "Q8_0"
        return {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}.get(mix, default)
    if "ffn_down" in name:
        return choose_down_type(facts, layer)
    if "attn_output.weight" in name:
        return choose_output_projection_type(facts)
    n = facts.n_layers
    if re.search("ffn_(gate|up)", name) and mix == "IQ3_XS" and n // 8 <= layer < 7 * n // 8:
        return "IQ3_XXS"
    return default


def choose_lm_head_type(facts: Facts, row: int) -> str:
    default = MIXES[facts.mix]
    if facts.mix in EXPERT_MIXES or facts.layout == "falcon" or row % BLOCKS[default].values:
        return "Q8_0"
    if facts.mix in (*SMALLEST, "IQ3_XXS"):
        return "Q5_K"
    return default if default == "Q8_0" else "Q6_K"


def choose_embedding_type(mix: str) -> str:
    if mix in ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS"):
        return "Q2_K"
    if mix in ("IQ2_S", "IQ2_M", "IQ3_XXS"):
        return "IQ3_S"
    return "Q4_K" if mix in ("TQ1_0", "TQ2_0") else MIXES[mix]


def choose_smallest_type(name: str, facts: Facts, index: int) -> str:
    is_larger = facts.mix in ("IQ2_S", "IQ2_M")
    better = "IQ3_S" if is_larger else "Q2_K"
    if is_values(name):
        return "Q4_K" if facts.n_gqa >= 4 or facts.n_experts >= 4 else better
    if "attn_k.weight" in name and facts.n_experts == 8:
        return "Q4_K"
    if "ffn_down" in name and index < facts.n_layers // 8:
        return better
    if "attn_output.weight" in name:
        if facts.n_experts == 8:
            return "Q5_K"
        if facts.mix in ("IQ1_S", "IQ1_M"):
            return "IQ2_XXS"
        if is_larger:
            return "IQ3_S"
    return MIXES[facts.mix]


def choose_values_type(facts: Facts, i: int) -> str:
    mix, type, is_grouped = facts.mix, MIXES[facts.mix], facts.n_gqa >= 4
    match mix:
        case "Q2_K":
            type = "Q4_K" if is_grouped else "Q3_K"
        case "IQ3_XXS":
            type = "Q4_K" if is_grouped else "IQ3_XXS" if facts.imatrix else "IQ3_S"
        case "Q2_K_S" | "IQ3_XS" | "IQ3_S" if is_grouped:
            type = "Q4_K"
        case "IQ3_M":
            type = "Q4_K"
        case "Q3_K_M":
            type = "Q5_K" if i < 2 else "Q4_K"
        case "Q3_K_L":
            type = "Q5_K"
        case "IQ4_NL" | "IQ4_XS" if is_grouped:
            type = "Q5_K"
        case "Q4_K_M" | "Q5_K_M" if use_more_bits(i, facts.n_values):
            type = "Q6_K"
        case "Q4_K_S" if i < 4:
            type = "Q5_K"
    if facts.is_70b and type in ("Q3_K", "Q4_K"):
        type = "Q5_K"
    return "Q8_0" if facts.n_experts == 8 else type


def choose_down_type(facts: Facts, i: int) -> str:
    mix, default, n, is_falcon = facts.mix, MIXES[facts.mix], facts.n_layers, facts.layout == "falcon"
    match mix:
        case "Q2_K":
            return "Q3_K"
        case "Q2_K_S" if i < n // 8:
            return "Q4_K"
        case "IQ3_XXS" if not facts.imatrix:
            return "Q4_K" if i < n // 8 else "Q3_K"
        case "Q3_K_M":
            return "Q5_K" if i < n // 16 else "Q4_K" if not is_falcon or use_more_bits(i, n) else "Q3_K"
        case "IQ3_M" if i < n // 8 or (facts.n_experts == 8 and use_more_bits(i, n)):
            return "Q4_K"
        case "Q3_K_L":
            return "Q4_K" if is_falcon else "Q5_K"
        case "Q4_K_M" if is_falcon:
            return "Q6_K" if i < n // 16 else "Q5_K" if use_more_bits(i, n) else "Q4_K"
        case "Q4_K_M" | "Q5_K_M" if use_more_bits(i, n):
            return "Q6_K"
        case "IQ4_NL" | "IQ4_XS" if i < n // 8 and not facts.imatrix:
            return "Q5_K"
        case "Q4_K_S" if not is_falcon and i < n // 8:
            return "Q5_K"
        case "Q4_0" | "Q5_0" if facts.imatrix and i < n // 8:
            return default.replace("_0", "_1")
    return default


def choose_output_projection_type(facts: Facts) -> str:
    mix, default = facts.mix, MIXES[facts.mix]
    if facts.layout == "falcon":
        return "Q4_K" if mix == "Q3_K_L" else default
    if facts.n_experts == 8:
        return default if mix in (*SMALLEST, *KEPT_FOR_EIGHT_EXPERTS) else "Q5_K"
    return {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K", "IQ3_M": "Q4_K"}.get(mix, default)
