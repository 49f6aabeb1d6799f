"""Granite 4: Mamba 2 layers with a few attention layers, which have no positions.

Each layer has a shared MLP, with or without routed experts.
"""

from paramcount.architectures.granitemoe import RELEASED, SHARED, GraniteMoe, inverse_scaling, moe
from paramcount.flow import Data, scale_by
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_type
from paramcount.parts.stacked import packed_mlp
from paramcount.parts.state_space import mamba2
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Natural, Positive, Word, Words, derived, hf
from paramcount.sizes.conditions import not_null, padding_in_table
from paramcount.sizes.derivations import d_model_per_head, equal_to, per_layer
from paramcount.sizes.mixers import (
    check_mamba_heads,
    if_no_attention,
    if_no_mixer,
    list_unused_fields,
    mamba_head,
    null_counts,
    time_step_limit,
)
from paramcount.sizes.rotary_settings import rotary
from paramcount.sizes.rules import check_layer_types
from paramcount.sizes.setting_fields import setting

KINDS = ("linear_attention", "full_attention", "mamba", "attention")  # the last two are the older words


def all_mamba(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    return tuple(KINDS[0] for _ in per_layer(c))


class GraniteMoeHybrid(Decoder):
    """Source: GraniteMoeHybridDecoderLayer of the reference."""

    reference = "GraniteMoeHybridForCausalLM"
    gguf = "granitehybrid granitemoe granite"
    is_section_type = True
    modules = GraniteMoe.modules
    rotated = "d_head"
    own_layer_types = True  # it has another name that counts before it
    conditions = (
        padding_in_table(None),
        check_mamba_heads,
        null_counts("layers_block_type"),
        not_null("embedding_multiplier", "residual_multiplier", "logits_scaling"),
    )

    layer_types: Words = hf("layers_block_type", "layer_types", absent=all_mamba, null=ABSENT)
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head, null=if_no_attention)
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Natural = hf("num_local_experts")
    has_experts: Flag = derived(lambda js, c: c["n_routed_experts"] > 0)
    n_active_experts: Natural = hf(null=lambda js, c: None if c["has_experts"] else 0)
    d_shared_expert: Natural = hf("shared_intermediate_size")
    positions: Word | None = hf("position_embedding_type", absent=None)  # "rope": queries and keys are rotated
    n_mamba_heads: Positive = hf()
    d_mamba_head: Positive = derived(mamba_head)
    n_groups: Positive = hf(null=if_no_mixer)
    d_state: Positive = hf(null=if_no_mixer)
    d_conv: Positive = hf(null=if_no_mixer)
    conv_bias: Flag = hf(null=False)
    mixer_bias: Flag = hf(null=False)
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=2048)
    time_step_limit = setting(default=time_step_limit)
    embedding_scale = setting("embedding_multiplier", default=1.0)
    residual_scale = setting("residual_multiplier", default=1.0)
    attention_scale = setting("attention_multiplier", default=1.0)
    logits_scale = setting(default=inverse_scaling)
    kinds = layers_by_type

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return scale_by(x, c.embedding_scale)

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        if kind in ("linear_attention", "mamba"):
            h = mamba2(c, h, "mamba.", groups=c.n_groups)
        else:
            rotate = c.positions == "rope"
            h = c.self_attention(h, bias=c.attention_bias, rotate=rotate, scale=c.attention_scale)
        x = x + scale_by(h, c.residual_scale)
        return x + scale_by(c.feed_forward(c.norm(x, "post_attention_layernorm")), c.residual_scale)

    def feed_forward(c, x: Data) -> Data:
        component = "shared_experts" if c.has_experts else "mlp"
        shared = packed_mlp(x, component, c.d_shared_expert, SHARED, activation=c.activation)
        return moe(c, x, RELEASED) + shared if c.has_experts else shared

    def head(c, x: Data) -> Data:
        return scale_by(Decoder.head(c, x), c.logits_scale)

    def unused_fields(c) -> tuple[str, ...]:
        experts = () if c.has_experts else ("n_active_experts",)
        positions = () if c.positions == "rope" else ("d_head",)
        return (*list_unused_fields(c.layer_types), *experts, *positions)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
