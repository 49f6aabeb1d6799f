"""Phi 1 and 1.5 in their first form: the layers are one sequence that begins with the embedding and ends with the head.

They compute what Phi's layers compute, with other names.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes

OVERRIDES = {"mixer": ("n_head", "head_dim", "rotary_dim", "bias", "causal"), "mlp": ("n_inner", "act_fn")}


def list_blocks(js: sizes.ConfigJson) -> list[Mapping[str, Any]]:
    """What `architecture` says of each block, or of all."""
    key = "architecture" if "architecture" in js else "blocks"
    blocks = js.get(key)
    found = blocks if isinstance(blocks, list) else [blocks or {}]
    if not all(isinstance(block, Mapping) for block in found):
        raise sizes.make_value_error(blocks, key, "a JSON object, or a list of one per layer")
    return found


def alike(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """No block has sizes of its own."""
    blocks = list_blocks(js)
    if len(blocks) not in (1, c["n_layers"]):
        raise sizes.make_value_error(js.get("architecture"), "architecture", f"1 or {c['n_layers']} blocks")
    for block in blocks:
        for part, keys in OVERRIDES.items():
            for key in keys:
                if (value := (block.get(part) or {}).get(key)) is not None:
                    raise sizes.make_value_error(value, f"architecture.{part}.{key}", "no such key")


def is_fused(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    kinds = {(block.get("mlp") or {}).get("mlp_cls") == "fused_mlp" for block in list_blocks(js)}
    if len(kinds) > 1:
        raise sizes.make_value_error(js.get("architecture"), "architecture", "the same mlp_cls in all blocks")
    return kinds == {True}


class MixFormerSequential(parts.PartlyRotated):
    """Source: arXiv:2309.05463, section 2.1; modeling_mixformer_sequential.py of microsoft/phi-1_5."""

    reference = "MixFormerSequentialForCausalLM of microsoft/phi-1_5"
    model_types = ("mixformer-sequential",)
    base_model = ""
    rotated = "d_rope"
    is_section_type = False
    conditions = (alike,)
    unused_keys = ("architectures",)
    defaults = {"vocab_size": 50304, "d_model": 1024, "n_layers": 20, "n_heads": 16, "tie_word_embeddings": False}
    n_kv_heads = sizes.constant(None)

    d_model: sizes.Positive = sizes.hf("n_embd", "hidden_size")
    n_layers: sizes.Natural = sizes.hf("n_layer", "num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf("n_head", "num_attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Natural = sizes.hf("rotary_dim", absent=32)
    d_ff: sizes.Natural = sizes.hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)
    fused_names: sizes.Flag = sizes.derived(is_fused)

    activation = sizes.setting("activation_function", default="gelu_new")
    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-5)
    rope = ops.Rope(10_000.0)
    norm = parts.use_layer_norm

    def embed(c, tokens: Data) -> Data:
        return ops.lookup(tokens, "layers.0.wte.weight", "embedding", c.vocab_size, c.d_model)

    def decode(c, x: Data) -> Data:
        x = ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x), first=1)
        last = f"layers.{c.n_layers + 1}."
        return parts.head(c, c.norm(x, last + "ln"), "layers.0.wte.weight", last + "linear", bias=True)

    def layer(c, x: Data) -> Data:
        h, inner = c.norm(x, "ln"), "mlp.mlp." if c.fused_names else "mlp."
        q, k, v = parts.fused_qkv(c, h, "mixer.Wqkv")  # [n, n_heads, d_head]
        a = ops.attend_causally(c.rotate(q), c.rotate(k), v)  # [n, n_heads, d_head]
        a = ops.linear(a, "mixer.out_proj", "output_projection", c.d_model, bias=True)
        names = (inner + "fc1", inner + "fc2")
        return x + a + parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=True)

    def legacy_buffers(c) -> sizes.Buffers:
        return (("layers.{layer}.mixer.rotary_emb.inv_freq", (c.d_rope // 2,), c.n_layers),)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_at_most(c, "d_rope", "d_head")
        sizes.check_rotated_in_pairs(c, "d_rope")
