"""Qwen 1.5 and 2 MoE: many small experts and one wide shared expert behind a gate of its own."""

from typing import Any

from paramcount.errors import ParamcountError
from paramcount.flow import Data, activate, linear, route, scale
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_setting_and_mlp
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.parts.settings import get_setting
from paramcount.sizes import ConfigJson, FieldValues, Flag, Indices, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import attention_words, one_rope, padding_in_table, sliding_layers_have_a_window
from paramcount.sizes.derivations import scattered_dense_layers
from paramcount.sizes.layer_types import sliding_types, used_window


def window_is_given(js: ConfigJson, c: FieldValues) -> None:
    """The reference builds the mask of a window that is used even if no layer has it."""
    if js.get("use_sliding_window", False) and js.get("sliding_window", 4096) is None:
        raise ParamcountError("= null with use_sliding_window = true", where="sliding_window", expected="an integer")


def slides(i: int, limit: int) -> bool:
    """Every other layer before max_window_layers. Source: configuration_qwen2_moe.py of the reference."""
    return i % 2 == 0 and i < limit


class Qwen2MoE(AttentionDecoder):
    """Source: arXiv:2407.10671, section 2.2.2; Qwen2MoeDecoderLayer of the reference.

    `d_shared_expert` is a size of its own, not a number of experts.
    """

    reference = "Qwen2MoeForCausalLM"
    gguf = "qwen2moe"
    is_section_type = True
    task_heads = "GENERIC_SPAN"
    linear_routers = (".shared_expert_gate.weight",)
    rotated = "d_head"
    conditions = (
        attention_words("full_attention", "sliding_attention"),
        window_is_given,
        sliding_layers_have_a_window,
        one_rope,
        padding_in_table(None),
    )

    d_ff: Natural = hf()
    dense_layers: Indices = derived(scattered_dense_layers)
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf()
    d_shared_expert: Natural = hf("shared_expert_intermediate_size")
    qkv_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_topk_prob = setting("norm_topk_prob", default=False)
    rope = rotary(positions=32768)
    layer_types = setting(default=sliding_types(slides=slides))
    window = setting(default=used_window(4096))
    kinds = layers_by_setting_and_mlp

    def layer(c, x: Data, kind: str | tuple[str, str]) -> Data:
        word, mlp = kind if isinstance(kind, tuple) else ("full_attention", kind)
        window = c.window if word == "sliding_attention" else None
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=window, bias=c.qkv_bias, o_bias=False)
        h = c.norm(x, "post_attention_layernorm")
        return x + (moe(c, h) if mlp == "moe" else c.gated_mlp(h))


def moe(c: Any, x: Data) -> Data:
    """Routed experts, and one that every token visits, behind a gate."""

    def choose(logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=get_setting(c, "norm_topk_prob"))

    activation = get_setting(c, "activation")
    shared = gated_mlp(x, "mlp.shared_expert.", "shared_experts", c.d_shared_expert, activation=activation)
    gate = activate(linear(x, "mlp.shared_expert_gate", "router", 1), "sigmoid")
    return mixture(c, x, "mlp.", choose=choose) + scale(shared, gate)
