"""DBRX: experts in every layer, and fused q, k and v that are clipped.

The matrices of all experts are stored one after the other in one matrix per projection.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value


def can_run(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Requirements of the reference: it reads rope_theta from attn_config and clips q, k and v unconditionally.

    The experts read d_model under a key of its own.
    """
    inner = js.get("attn_config") or {}
    if "rope_theta" not in inner:
        raise ParamcountError("is missing", where="attn_config.rope_theta", expected="a number")
    if type(inner.get("clip_qkv")) not in (int, float):
        raise sizes.make_value_error(inner.get("clip_qkv"), "attn_config.clip_qkv", "a number")
    if js.get("d_model", 2048) != c["d_model"]:
        raise ParamcountError(
            f"= {c['d_model']}, but d_model = {describe_value(js.get('d_model', 2048))}",
            where="hidden_size",
            expected="the same value",
        )


def normalises(config: Mapping[str, Any], c: Any) -> bool:
    """Whether the weights of the chosen experts sum to 1; other norms than the sum are not described."""
    order = config.get("ffn_config", {}).get("moe_normalize_expert_weights", 1.0)
    if order not in (None, 1):
        raise ValueError("is not the sum")
    return order is not None


class Dbrx(parts.Decoder):
    """Source: DbrxBlock of the reference, modeling_dbrx.py."""

    reference = "DbrxForCausalLM"
    gguf = "dbrx"
    linear_routers = (".router.layer.weight",)
    rotated = "d_head"
    conditions = (can_run,)
    required_keys = ("attn_config.rope_theta",)

    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_heads")
    n_kv_heads: sizes.Positive = sizes.hf("attn_config.kv_n_heads", absent=1)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_expert: sizes.Natural = sizes.hf("ffn_config.ffn_hidden_size", absent=3584)
    n_routed_experts: sizes.Positive = sizes.hf("ffn_config.moe_num_experts", absent=4)
    n_active_experts: sizes.Natural = sizes.hf("ffn_config.moe_top_k", absent=1)

    prefix = "transformer."
    names = ("wte", "blocks", "norm_f")
    activation = sizes.setting(
        default=lambda config, c: str((config.get("ffn_config", {}).get("ffn_act_fn") or {}).get("name", "silu"))
    )
    norm_eps = sizes.setting(default=1e-5)
    limit = sizes.setting(default=lambda config, c: config["attn_config"]["clip_qkv"])
    norm_topk_prob = sizes.setting(default=normalises)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "norm_attn_norm.norm_1"))
        return x + c.moe(c.norm(x, "norm_attn_norm.norm_2"))

    def attention(c, x: Data) -> Data:
        prefix, shared = "norm_attn_norm.attn.", (c.n_kv_heads, c.d_head)
        shares = ops.fused(x, prefix + "Wqkv", {"qkv.q": (c.n_heads, c.d_head), "qkv.k": shared, "qkv.v": shared})
        q, k, v = (ops.clip(y, -c.limit, c.limit) for y in shares)
        return ops.linear(
            ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v),
            prefix + "out_proj",
            "output_projection",
            c.d_model,
        )

    def moe(c, x: Data) -> Data:
        logits = ops.linear(x, "ffn.router.layer", "router", c.n_routed_experts)  # [n, experts]
        scores = ops.route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)
        return ops.experts(
            x, scores, "ffn.experts.mlp.", c.n_routed_experts, c.n_active_experts, c.expert, stored="merged"
        )

    def expert(c, x: Data) -> Data:
        """w1 is the gate, v1 up and w2 down, stored [in, out]."""
        (gate,) = ops.fused(x, "w1", {"experts.gate": c.d_expert}, suffixes=("", ""))
        (up,) = ops.fused(x, "v1", {"experts.up": c.d_expert}, suffixes=("", ""))
        h, out = ops.activate(gate, c.activation) * up, {"experts.down": c.d_model}
        return ops.fused(h, "w2", out, transposed=True, suffixes=("", ""))[0]  # [n, d_model]

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps, bias=False)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.tie_word_embeddings:
            raise ParamcountError("= true", where=FieldName("tie_word_embeddings"), expected="false")
