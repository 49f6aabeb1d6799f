"""Qwen 1.5 and 2 MoE: many small experts and one wide shared expert behind a gate of its own."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def window_is_given(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference builds the mask of a window that is used even if no layer has it."""
    if js.get("use_sliding_window", False) and js.get("sliding_window", 4096) is None:
        raise ParamcountError("= null with use_sliding_window = true", where="sliding_window", expected="an integer")


class Qwen2MoE(parts.RoutedExperts, parts.AttentionDecoder):
    """Source: arXiv:2407.10671, section 2.2.2; Qwen2MoeDecoderLayer of the reference.

    `d_shared_expert` is a size of its own, not a number of experts.
    """

    reference = "Qwen2MoeForCausalLM"
    gguf = "qwen2moe"
    task_heads = "GENERIC_SPAN"
    linear_routers = (".shared_expert_gate.weight",)
    conditions = (
        sizes.attention_words("full_attention", "sliding_attention"),
        window_is_given,
        sizes.sliding_layers_have_a_window,
        sizes.one_rope,
        sizes.padding_in_table(None),
    )

    n_kv_heads: sizes.Positive = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.scattered_dense_layers)
    d_shared_expert: sizes.Natural = sizes.hf("shared_expert_intermediate_size")
    qkv_bias: sizes.Flag = sizes.hf()

    norm_topk_prob = sizes.setting("norm_topk_prob")
    # Every other layer before max_window_layers. Source: configuration_qwen2_moe.py of the reference.
    layer_types = sizes.setting(default=sizes.sliding_types(slides=lambda i, limit: i % 2 == 0 and i < limit))
    window = sizes.setting(default=sizes.used_window(4096))
    kinds = parts.layers_by_setting_and_mlp

    def layer(c, x: Data, kind: str | tuple[str, str]) -> Data:
        word, mlp = kind if isinstance(kind, tuple) else ("full_attention", kind)
        window = c.window if word == "sliding_attention" else None
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=window, bias=c.qkv_bias, o_bias=False)
        h = c.norm(x, "post_attention_layernorm")
        return x + (moe(c, h) if mlp == "moe" else c.gated_mlp(h))


def moe(c: Any, x: Data) -> Data:
    """Routed experts, and one that every token visits, behind a gate."""

    def choose(logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "softmax", normalise=parts.get_setting(c, "norm_topk_prob"))

    activation = parts.get_setting(c, "activation")
    shared = parts.gated_mlp(x, "mlp.shared_expert.", "shared_experts", c.d_shared_expert, activation=activation)
    gate = ops.activate(ops.linear(x, "mlp.shared_expert_gate", "router", 1), "sigmoid")
    return parts.mixture(c, x, "mlp.", choose=choose) + ops.scale(shared, gate)
