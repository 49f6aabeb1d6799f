"""The language models of GLM-4.1V and GLM-4.5V: GLM-4-0414 and GLM-4.5 with positions in time, height and width."""

from paramcount.architectures.glm import Glm4
from paramcount.architectures.glm4_moe import Glm4Moe
from paramcount.flow import Data, linear
from paramcount.parts.feed_forward import shared_experts
from paramcount.parts.stacked import stacked_experts
from paramcount.sizes import ConfigJson, Derivation, FieldValues, Flag, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import grouped_routing, not_null, padding_in_table
from paramcount.sizes.derivations import class_ends, d_model_per_head, equal_to
from paramcount.sizes.rotary_sizes import in_pairs, sections_fill


def rotated(absent: float) -> Derivation:
    """How much of a head is rotated, which is of the width that head_dim says, if anything does.

    `absent`: without a share.
    """

    def width(js: ConfigJson, c: FieldValues) -> int:
        rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
        share = rope.get("partial_rotary_factor", js.get("partial_rotary_factor", absent))
        return in_pairs(js.get("head_dim") or c["d_head"], 1.0 if share is None else share)

    return width


class Glm4vText(Glm4):
    """Source: arXiv:2507.01006, section 2."""

    reference = "Glm4vForConditionalGeneration"
    base_model = "Glm4vTextModel"
    conditions = (padding_in_table(None), sections_fill(8, 12, 12))

    n_kv_heads: Positive = hf(absent=2, null=equal_to("n_heads"))
    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural = derived(rotated(1.0))
    qkv_bias: Flag = derived(lambda js, c: True)
    tie_word_embeddings: Flag = hf(absent=False, null=False)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=32768)


class Glm4vMoeText(Glm4Moe):
    """Source: arXiv:2507.01006, section 2; Glm4vMoeTextDecoderLayer of the reference."""

    reference = "Glm4vMoeForConditionalGeneration"
    adapts_experts = False
    base_model = "Glm4vMoeTextModel"
    conditions = (
        grouped_routing(1, 1), padding_in_table(None), not_null("n_routed_experts", "n_group", "topk_group"),
        sections_fill(8, 12, 12),
    )  # fmt: skip
    defaults = {"vocab_size": 151424, "attention_bias": True}

    d_rope: Natural = derived(rotated(0.5))
    n_mtp_layers: Natural = derived(lambda js, c: 0)
    qk_norm: Flag = derived(lambda js, c: False)
    stacked: Flag = derived(
        class_ends("TextModel")
    )  # alone, it is saved with one tensor for each projection of all experts

    rope = rotary(positions=65536)

    def layer(c, x: Data, kind: str) -> Data:
        """GLM-4.5's, with all experts in one tensor for each projection if the language model is saved alone."""
        if kind == "dense" or not c.stacked:
            return super().layer(x, kind)
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, o_bias=False, rotate=c.rotate)
        h = c.norm(x, "post_attention_layernorm")
        chosen = c.choose(linear(h, "mlp.gate", "router", c.n_routed_experts))
        return x + stacked_experts(c, h, chosen, "mlp.experts.") + shared_experts(c, h, "mlp.")
