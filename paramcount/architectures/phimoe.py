"""Phi-3.5-MoE: LayerNorms with a bias, a bias on the head if wanted, and a router that always picks two experts."""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


def visited(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Active experts: 2. The reference's sparse mixer always takes the two best and ignores num_experts_per_tok."""
    if js.get("num_experts_per_tok", 2) is None:
        raise ParamcountError("= null", where="num_experts_per_tok", expected="an integer")
    return 2 if c["n_routed_experts"] > 1 else 1


def scaled_rope_has_magnitudes(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Scaled rotary positions of every kind have two numbers that scale q and k.

    Source: validate_rope in configuration_phimoe.py of the reference.
    """
    key = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
    rope = js.get(key)
    if not isinstance(rope, Mapping) or rope.get("rope_type", rope.get("type", "default")) == "default":
        return
    for name in ("short_mscale", "long_mscale"):
        if not isinstance(value := rope.get(name), (int, float)):
            found = "is missing" if value is None else f"= {describe_value(value)}"
            raise ParamcountError(found, where=f"{key}.{name}", expected="a number")


def scaled_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Rotary positions whose magnitude is stated, not derived. Source: PhimoeRotaryEmbedding of the reference."""
    parameters = config.get("rope_parameters") or config.get("rope_scaling") or {}
    base = parameters.get("rope_theta", config.get("rope_theta", 1_000_000.0))
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "default":
        return ops.Rope(base)
    if parameters["short_mscale"] != parameters["long_mscale"]:
        raise ValueError("differs with the length of the text")
    return sizes.make_rope(kind, base, {**parameters, "attention_factor": parameters["long_mscale"]}, config, 131072)


class Phimoe(parts.AttentionBias, parts.MixtureDecoder):
    """Source: arXiv:2404.14219, section 2; routing arXiv:2409.12136. In the released files w1 is the gate, w3 up and w2
    down.
    """

    reference = "PhimoeForCausalLM"
    gguf = "phimoe"
    gguf_rope_factors = "longrope"
    task_heads = "SCORED"
    copied_modules = ("modeling_slimmoe",)
    modules = {".block_sparse_moe.gate": (".mlp.router",), ".block_sparse_moe.experts": (".mlp.experts",)}
    linear_subclasses = (".block_sparse_moe.gate.weight",)
    conditions = (sizes.padding_in_table(None), sizes.one_mask(), scaled_rope_has_magnitudes)

    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts")
    n_active_experts: sizes.Natural = sizes.derived(visited)
    window: sizes.Positive | None = sizes.hf(absent=None)
    lm_head_bias: sizes.Flag = sizes.hf("lm_head_bias")

    rope = sizes.setting(default=scaled_rope)
    tolerance = sizes.setting("router_jitter_noise")
    norm = parts.use_layer_norm

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, window=c.window)
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.mixture(c, h, "block_sparse_moe.", choose=c.choose, names=("w1", "w3", "w2"))

    def choose(c, logits: Data) -> Data:
        return ops.sparse_mixer(logits, c.n_active_experts, c.tolerance)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "model.embed_tokens.weight", bias=c.lm_head_bias)
