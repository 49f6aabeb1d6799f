"""The tensors of released files, written out by hand from a config.json: names, types and shapes as their indices list
them.

Sources: the modules of transformers before version 5, under whose names these files were saved; of DeepSeek-V3 its
README_WEIGHTS.md, for the layer of multi-token prediction and the FP8 scales; of gpt-oss github openai/gpt-oss,
gpt_oss/torch/weights.py. What else a release holds, a stored copy of a tied head, causal masks, rotary frequencies, is
in tests/data/published_totals.csv.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, TypeAlias

from tests.headers import Tensors

Shaped: TypeAlias = Iterator[tuple[str, tuple[int, ...]]]
BLOCK = 128


def make_release(c: dict[str, Any], beside: str = "") -> Tensors:
    """The tensors of a model of this config.json. `beside`: what the release holds besides them."""
    c = {"num_key_value_heads": c.get("num_attention_heads"), **c}
    writer = {"gpt2": gpt2_tensors, "openai-gpt": gpt1_tensors, "qwen": qwen_tensors}.get(
        c["model_type"], decoder_tensors
    )
    found: Tensors = {name: ("BF16", shape) for name, shape in writer(c)}
    if c["model_type"] == "gpt_oss":
        found = quantise_mxfp4(found)
    elif "quantization_config" in c:
        found = quantise_fp8(found)
    match beside:
        case "head":
            found["lm_head.weight"] = found["model.embed_tokens.weight"]
        case "masks":
            found |= {
                f"h.{i}.attn.bias": ("F32", (1, 1, c["n_positions"], c["n_positions"])) for i in range(c["n_layer"])
            }
        case "frequencies":
            half = c["hidden_size"] // c["num_attention_heads"] // 2
            found |= {
                f"model.layers.{i}.self_attn.rotary_emb.inv_freq": ("F32", (half,))
                for i in range(c["num_hidden_layers"])
            }
    return found


def count_hub_values(tensors: Tensors) -> int:
    """As the Hub counts them: a byte of MXFP4 holds two."""
    return sum(prod(shape) * (2 if name.endswith("_blocks") else 1) for name, (_, shape) in tensors.items())


# ---- decoders of the usual names


def decoder_tensors(c: dict[str, Any]) -> Shaped:
    d, vocab = c["hidden_size"], c["vocab_size"]
    yield "model.embed_tokens.weight", (vocab, d)
    for i in range(c["num_hidden_layers"] + c.get("num_nextn_predict_layers", 0)):
        layer = f"model.layers.{i}."
        if i >= c["num_hidden_layers"]:
            yield layer + "embed_tokens.weight", (vocab, d)
            yield layer + "enorm.weight", (d,)
            yield layer + "hnorm.weight", (d,)
            yield layer + "eh_proj.weight", (d, 2 * d)
            yield layer + "shared_head.norm.weight", (d,)
            yield layer + "shared_head.head.weight", (vocab, d)
        yield layer + "input_layernorm.weight", (d,)
        yield layer + "post_attention_layernorm.weight", (d,)
        yield from (mla_tensors if c.get("kv_lora_rank") else attention_tensors)(c, layer + "self_attn.")
        yield from moe_tensors(c, layer) if is_sparse(c, i) else mlp_tensors(layer + "mlp.", c["intermediate_size"], d)
    yield "model.norm.weight", (d,)
    if not c.get("tie_word_embeddings", False):
        yield "lm_head.weight", (vocab, d)


def attention_tensors(c: dict[str, Any], prefix: str) -> Shaped:
    d, kind = c["hidden_size"], c["model_type"]
    width = c.get("head_dim") or d // c["num_attention_heads"]
    q, kv = c["num_attention_heads"] * width, c["num_key_value_heads"] * width
    for name, out, into in (("q_proj", q, d), ("k_proj", kv, d), ("v_proj", kv, d), ("o_proj", d, q)):
        yield f"{prefix}{name}.weight", (out, into)
        if kind == "gpt_oss" or (kind in ("qwen2", "qwen2_moe") and name != "o_proj"):
            yield f"{prefix}{name}.bias", (out,)
    if kind in ("qwen3", "qwen3_moe"):
        yield prefix + "q_norm.weight", (width,)
        yield prefix + "k_norm.weight", (width,)
    if kind == "gpt_oss":
        yield prefix + "sinks", (c["num_attention_heads"],)


def mla_tensors(c: dict[str, Any], prefix: str) -> Shaped:
    d, heads, rank = c["hidden_size"], c["num_attention_heads"], c["kv_lora_rank"]
    q = heads * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    if c["q_lora_rank"]:
        yield prefix + "q_a_proj.weight", (c["q_lora_rank"], d)
        yield prefix + "q_a_layernorm.weight", (c["q_lora_rank"],)
        yield prefix + "q_b_proj.weight", (q, c["q_lora_rank"])
    else:
        yield prefix + "q_proj.weight", (q, d)
    yield prefix + "kv_a_proj_with_mqa.weight", (rank + c["qk_rope_head_dim"], d)
    yield prefix + "kv_a_layernorm.weight", (rank,)
    yield prefix + "kv_b_proj.weight", (heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), rank)
    yield prefix + "o_proj.weight", (d, heads * c["v_head_dim"])


def is_sparse(c: dict[str, Any], layer: int) -> bool:
    match c["model_type"]:
        case "mixtral" | "gpt_oss" | "qwen2_moe" | "qwen3_moe":
            return True
        case "deepseek" | "deepseek_v2" | "deepseek_v3":
            return bool(layer >= c["first_k_dense_replace"])
        case _:
            return False


def moe_tensors(c: dict[str, Any], layer: str) -> Shaped:
    d, kind = c["hidden_size"], c["model_type"]
    experts = c.get("num_local_experts") or c.get("num_experts") or c.get("n_routed_experts")
    assert experts
    if kind == "mixtral":
        yield layer + "block_sparse_moe.gate.weight", (experts, d)
        for e in range(experts):
            yield from mlp_tensors(
                f"{layer}block_sparse_moe.experts.{e}.", c["intermediate_size"], d, ("w1", "w3", "w2")
            )
        return
    if kind == "gpt_oss":
        ff = c["intermediate_size"]
        yield layer + "mlp.router.weight", (experts, d)
        yield layer + "mlp.router.bias", (experts,)
        yield layer + "mlp.experts.gate_up_proj", (experts, 2 * ff, d)
        yield layer + "mlp.experts.gate_up_proj_bias", (experts, 2 * ff)
        yield layer + "mlp.experts.down_proj", (experts, d, ff)
        yield layer + "mlp.experts.down_proj_bias", (experts, d)
        return
    yield layer + "mlp.gate.weight", (experts, d)
    if kind == "deepseek_v3":
        yield layer + "mlp.gate.e_score_correction_bias", (experts,)
    for e in range(experts):
        yield from mlp_tensors(f"{layer}mlp.experts.{e}.", c["moe_intermediate_size"], d)
    if kind == "qwen2_moe":
        yield from mlp_tensors(layer + "mlp.shared_expert.", c["shared_expert_intermediate_size"], d)
        yield layer + "mlp.shared_expert_gate.weight", (1, d)
    elif kind.startswith("deepseek"):
        yield from mlp_tensors(layer + "mlp.shared_experts.", c["n_shared_experts"] * c["moe_intermediate_size"], d)


def mlp_tensors(
    prefix: str, ff: int, d: int, names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
) -> Shaped:
    gate, up, down = names
    yield f"{prefix}{gate}.weight", (ff, d)
    yield f"{prefix}{up}.weight", (ff, d)
    yield f"{prefix}{down}.weight", (d, ff)


# ---- of other names


def gpt2_tensors(c: dict[str, Any]) -> Shaped:
    d = c["n_embd"]
    yield "wte.weight", (c["vocab_size"], d)
    yield "wpe.weight", (c["n_positions"], d)
    yield from gpt_layer_tensors(c)
    yield "ln_f.weight", (d,)
    yield "ln_f.bias", (d,)


def gpt1_tensors(c: dict[str, Any]) -> Shaped:
    yield "tokens_embed.weight", (c["vocab_size"], c["n_embd"])
    yield "positions_embed.weight", (c["n_positions"], c["n_embd"])
    yield from gpt_layer_tensors(c)


def gpt_layer_tensors(c: dict[str, Any]) -> Shaped:
    d = c["n_embd"]
    for i in range(c["n_layer"]):
        for name, into, out in (
            ("attn.c_attn", d, 3 * d),
            ("attn.c_proj", d, d),
            ("mlp.c_fc", d, 4 * d),
            ("mlp.c_proj", 4 * d, d),
        ):
            yield f"h.{i}.{name}.weight", (into, out)
            yield f"h.{i}.{name}.bias", (out,)
        for name in ("ln_1", "ln_2"):
            yield f"h.{i}.{name}.weight", (d,)
            yield f"h.{i}.{name}.bias", (d,)


def qwen_tensors(c: dict[str, Any]) -> Shaped:
    d, ff = c["hidden_size"], c["intermediate_size"] // 2
    yield "transformer.wte.weight", (c["vocab_size"], d)
    for i in range(c["num_hidden_layers"]):
        layer = f"transformer.h.{i}."
        yield layer + "ln_1.weight", (d,)
        yield layer + "attn.c_attn.weight", (3 * d, d)
        yield layer + "attn.c_attn.bias", (3 * d,)
        yield layer + "attn.c_proj.weight", (d, d)
        yield layer + "ln_2.weight", (d,)
        yield from mlp_tensors(layer + "mlp.", ff, d, ("w1", "w2", "c_proj"))
    yield "transformer.ln_f.weight", (d,)
    yield "lm_head.weight", (c["vocab_size"], d)


# ---- quantised


def quantise_fp8(tensors: Tensors) -> Tensors:
    """Every matrix of the layers in blocks with a scale each, but for routers and what multi-token prediction adds."""
    found: Tensors = {}
    for name, (dtype, shape) in tensors.items():
        if name.endswith(("_proj.weight", "_with_mqa.weight")) and "eh_proj" not in name:
            found[name] = "F8_E4M3", shape
            found[name + "_scale_inv"] = "F32", (-(-shape[0] // BLOCK), -(-shape[1] // BLOCK))
        else:
            found[name] = dtype, shape
    return found


def quantise_mxfp4(tensors: Tensors) -> Tensors:
    """The experts in blocks of 32 values, two in a byte, with a scale each."""
    found: Tensors = {}
    for name, (dtype, shape) in tensors.items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            found[name + "_blocks"] = "U8", (*shape[:2], shape[2] // 32, 16)
            found[name + "_scales"] = "U8", (*shape[:2], shape[2] // 32)
        else:
            found[name] = dtype, shape
    return found
