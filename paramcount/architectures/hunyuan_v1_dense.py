"""Hunyuan 0.5B to 7B: the Llama layout with norms over q and k that stand behind the rotation."""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def rope_with_alpha(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Dynamic scaling with a fixed alpha is a larger base. Source: HunYuanDenseV1RotaryEmbedding of the reference."""
    parameters = config.get("rope_scaling") or config.get("rope_parameters") or {}
    base = parameters.get("rope_theta") or config.get("rope_theta") or 10_000.0
    kind, alpha = parameters.get("rope_type", parameters.get("type", "default")), parameters.get("alpha")
    if kind == "dynamic" and alpha:
        return ops.Rope(base * alpha ** (c.d_head / (c.d_head - 2)))
    return sizes.make_rope(kind, base, parameters, config, 2048)


class HunYuanDenseV1(parts.AttentionBias, parts.AttentionDecoder):
    """Source: modeling_hunyuan_v1_dense.py of the reference."""

    reference = "HunYuanDenseV1ForCausalLM"
    gguf = "hunyuan-dense"
    task_heads = "SCORED"
    conditions = (sizes.padding_in_table(0),)
    required_keys = ("rope_scaling.factor",)  # of dynamic scaling

    d_head: sizes.Positive = sizes.hf()  # the reference has no default and derives none

    rope = sizes.setting(default=rope_with_alpha)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, prepare=c.prepare)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        q = c.norm(ops.rope(q, c.rope), "self_attn.query_layernorm")
        return q, c.norm(ops.rope(k, c.rope), "self_attn.key_layernorm")
