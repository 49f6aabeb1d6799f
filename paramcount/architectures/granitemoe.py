"""Granite 3 MoE and PowerMoE: a mixture of experts in every layer, all experts of a layer stored as one tensor.

Embeddings, residuals, attention scores and logits are multiplied by constants.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data, linear, route, scale_by
from paramcount.parts.decoder import AttentionDecoder, Decoder
from paramcount.parts.settings import get_setting
from paramcount.parts.stacked import packed_mlp, stacked_experts
from paramcount.sizes import ABSENT, Condition, Flag, Natural, Positive, equal_to, hf, setting
from paramcount.sizes.conditions import not_null, padding_in_table

RELEASED = ("router.layer", "input_linear.weight", "output_linear.weight")  # router, gate and up, down
SHARED = ("shared_mlp.input_linear.weight", "shared_mlp.output_linear.weight")


def inverse_scaling(config: Mapping[str, Any], c: Any) -> float:
    return float(1 / config.get("logits_scaling", 1.0))


class GraniteMoe(AttentionDecoder):
    """Source: GraniteMoeDecoderLayer of the reference, modeling_granitemoe.py."""

    reference = "GraniteMoeForCausalLM"
    gguf = "granitemoe"
    is_section_type = True
    modules = {
        ".block_sparse_moe.input_linear": (".block_sparse_moe.experts.gate_up_proj",),
        ".block_sparse_moe.output_linear": (".block_sparse_moe.experts.down_proj",),
        ".router.layer": (".router",),
    }
    rotated = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (
        padding_in_table(None),
        not_null("embedding_multiplier", "residual_multiplier", "logits_scaling"),
    )
    moe_names: ClassVar[tuple[str, str, str]] = RELEASED

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("num_local_experts")
    n_active_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    embedding_scale = setting("embedding_multiplier", default=1.0)
    residual_scale = setting("residual_multiplier", default=1.0)
    attention_scale = setting("attention_multiplier", default=1.0)
    logits_scale = setting(default=inverse_scaling)

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return scale_by(x, c.embedding_scale)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + scale_by(c.self_attention(h, bias=c.attention_bias, scale=c.attention_scale), c.residual_scale)
        return x + scale_by(c.feed_forward(c.norm(x, "post_attention_layernorm")), c.residual_scale)

    def feed_forward(c, x: Data) -> Data:
        return moe(c, x, c.moe_names)

    def head(c, x: Data) -> Data:
        return scale_by(Decoder.head(c, x), c.logits_scale)


class GraniteMoeShared(GraniteMoe):
    """Beside the routed experts one of a width of its own that every token visits.

    Source: GraniteMoeSharedDecoderLayer of the reference, modeling_granitemoeshared.py.
    """

    reference = "GraniteMoeSharedForCausalLM"
    model_types = ("granitemoeshared",)
    gguf = "granitemoe"
    is_section_type = True

    d_shared_expert: Natural = hf("shared_intermediate_size")

    def feed_forward(c, x: Data) -> Data:
        return shared_moe(c, x, c.moe_names)


def moe(c: Any, x: Data, names: tuple[str, str, str]) -> Data:
    """`names`: of the router, of gate and up, of down."""
    logits = linear(x, "block_sparse_moe." + names[0], "router", c.n_routed_experts)
    scores = route(logits, c.n_active_experts, "softmax over chosen")
    return stacked_experts(c, x, scores, "block_sparse_moe.", names[1:])


def shared_moe(c: Any, x: Data, names: tuple[str, str, str]) -> Data:
    activation = get_setting(c, "activation")
    return moe(c, x, names) + packed_mlp(x, "shared_experts", c.d_shared_expert, SHARED, activation=activation)
