"""Granite 3 MoE and PowerMoE: a mixture of experts in every layer, all experts of a layer stored as one tensor.

Embeddings, residuals, attention scores and logits are multiplied by constants.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes

RELEASED = ("router.layer", "input_linear.weight", "output_linear.weight")  # router, gate and up, down
SHARED = ("shared_mlp.input_linear.weight", "shared_mlp.output_linear.weight")


def inverse_scaling(config: Mapping[str, Any], c: Any) -> float:
    return float(1 / config.get("logits_scaling", 1.0))


class GraniteMoe(parts.AttentionBias, parts.MixtureDecoder):
    """Source: GraniteMoeDecoderLayer of the reference, modeling_granitemoe.py."""

    reference = "GraniteMoeForCausalLM"
    gguf = "granitemoe"
    modules = {
        ".block_sparse_moe.input_linear": (".block_sparse_moe.experts.gate_up_proj",),
        ".block_sparse_moe.output_linear": (".block_sparse_moe.experts.down_proj",),
        ".router.layer": (".router",),
    }
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.padding_in_table(None),
        sizes.not_null("embedding_multiplier", "residual_multiplier", "logits_scaling"),
    )
    moe_names: ClassVar[tuple[str, str, str]] = RELEASED

    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts")

    embedding_scale = sizes.setting("embedding_multiplier")
    residual_scale = sizes.setting("residual_multiplier")
    attention_scale = sizes.setting("attention_multiplier")
    logits_scale = sizes.setting(default=inverse_scaling)

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return ops.scale_by(x, c.embedding_scale)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + ops.scale_by(c.self_attention(h, bias=c.attention_bias), c.residual_scale)
        return x + ops.scale_by(c.feed_forward(c.norm(x, "post_attention_layernorm")), c.residual_scale)

    def feed_forward(c, x: Data) -> Data:
        return moe(c, x, c.moe_names)

    def head(c, x: Data) -> Data:
        return ops.scale_by(parts.Decoder.head(c, x), c.logits_scale)


class GraniteMoeShared(GraniteMoe):
    """Beside the routed experts one of a width of its own that every token visits.

    Source: GraniteMoeSharedDecoderLayer of the reference, modeling_granitemoeshared.py.
    """

    reference = "GraniteMoeSharedForCausalLM"
    model_types = ("granitemoeshared",)
    gguf = "granitemoe"

    d_shared_expert: sizes.Natural = sizes.hf("shared_intermediate_size")

    def feed_forward(c, x: Data) -> Data:
        return shared_moe(c, x, c.moe_names)


def moe(c: Any, x: Data, names: tuple[str, str, str]) -> Data:
    """`names`: of the router, of gate and up, of down."""
    logits = ops.linear(x, "block_sparse_moe." + names[0], "router", c.n_routed_experts)
    scores = ops.softmax_of_top(logits, c.n_active_experts)
    return parts.stacked_experts(c, x, scores, "block_sparse_moe.", names[1:])


def shared_moe(c: Any, x: Data, names: tuple[str, str, str]) -> Data:
    activation = parts.get_setting(c, "activation")
    return moe(c, x, names) + parts.packed_mlp(x, "shared_experts", c.d_shared_expert, SHARED, activation=activation)
