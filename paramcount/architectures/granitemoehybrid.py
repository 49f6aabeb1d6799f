"""Granite 4: Mamba 2 layers with a few attention layers, which have no positions.

Each layer has a shared MLP, with or without routed experts.
"""

from paramcount.architectures.granitemoe import RELEASED, SHARED, GraniteMoe, inverse_scaling, moe
from paramcount.declare import Data, ops, parts, sizes

KINDS = ("linear_attention", "full_attention", "mamba", "attention")  # the last two are the older words


class GraniteMoeHybrid(parts.AttentionBias, parts.Decoder):
    """Source: GraniteMoeHybridDecoderLayer of the reference."""

    reference = "GraniteMoeHybridForCausalLM"
    gguf = "granitehybrid granitemoe granite"
    gguf_kv_heads_by_layer = True
    is_section_type = True
    modules = GraniteMoe.modules
    rotated = "d_head"
    own_layer_types = True  # it has another name that counts before it
    conditions = (
        sizes.padding_in_table(None),
        sizes.check_mamba_heads,
        sizes.null_counts("layers_block_type"),
        sizes.not_null("embedding_multiplier", "residual_multiplier", "logits_scaling"),
    )

    layer_types: sizes.Words = sizes.hf(
        "layers_block_type", "layer_types", absent=sizes.words_by(lambda i, n: 0, KINDS), null=sizes.ABSENT
    )
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.if_no_attention)
    d_expert: sizes.Natural = sizes.hf("intermediate_size")
    n_routed_experts: sizes.Natural = sizes.hf("num_local_experts")
    has_experts: sizes.Flag = sizes.derived(lambda js, c: c["n_routed_experts"] > 0)
    n_active_experts: sizes.Natural = sizes.hf(null=lambda js, c: None if c["has_experts"] else 0)
    d_shared_expert: sizes.Natural = sizes.hf("shared_intermediate_size")
    positions: sizes.Word | None = sizes.hf(
        "position_embedding_type", absent=None
    )  # "rope": queries and keys are rotated
    n_mamba_heads: sizes.Positive = sizes.hf()
    d_mamba_head: sizes.Positive = sizes.derived(sizes.mamba_head)
    n_groups: sizes.Positive = sizes.hf(null=sizes.if_no_mixer)
    d_state: sizes.Positive = sizes.hf(null=sizes.if_no_mixer)
    d_conv: sizes.Positive = sizes.hf(null=sizes.if_no_mixer)
    conv_bias: sizes.Flag = sizes.hf(null=False)
    mixer_bias: sizes.Flag = sizes.hf(null=False)

    rope = sizes.rotary()
    time_step_limit = sizes.setting(default=sizes.time_step_limit)
    embedding_scale = sizes.setting("embedding_multiplier")
    residual_scale = sizes.setting("residual_multiplier")
    attention_scale = sizes.setting("attention_multiplier")
    logits_scale = sizes.setting(default=inverse_scaling)
    kinds = parts.layers_by_type

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return ops.scale_by(x, c.embedding_scale)

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        if kind in ("linear_attention", "mamba"):
            h = parts.mamba2(c, h, "mamba.")
        else:
            rotate = c.positions == "rope"
            h = c.self_attention(h, bias=c.attention_bias, prepare=c.prepare_by(rotate))
        x = x + ops.scale_by(h, c.residual_scale)
        return x + ops.scale_by(c.feed_forward(c.norm(x, "post_attention_layernorm")), c.residual_scale)

    def feed_forward(c, x: Data) -> Data:
        component = "shared_experts" if c.has_experts else "mlp"
        shared = parts.packed_mlp(x, component, c.d_shared_expert, SHARED, activation=c.activation)
        return moe(c, x, RELEASED) + shared if c.has_experts else shared

    def head(c, x: Data) -> Data:
        return ops.scale_by(parts.Decoder.head(c, x), c.logits_scale)

    def unused_fields(c) -> tuple[str, ...]:
        experts = () if c.has_experts else ("n_active_experts",)
        positions = () if c.positions == "rope" else ("d_head",)
        return (*sizes.list_unused_fields(c.layer_types), *experts, *positions)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
