"""GLM-4.5 and GLM-4.5-Air: DeepSeek-V3's experts behind grouped-query attention, half of each head rotated."""

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import dense_first
from paramcount.parts.feed_forward import choose_in_groups, routing_bias, shared_mixture
from paramcount.parts.mtp import next_token_layers
from paramcount.sizes import Condition, ConfigJson, FieldValues, Flag, Natural, derived, hf, rotary, setting
from paramcount.sizes.conditions import grouped_routing, not_null, padding_in_table
from paramcount.sizes.layer_types import needed
from paramcount.sizes.rotary_sizes import rotary_width
from paramcount.sizes.rules import check_at_most, check_experts_exist


def rotated(js: ConfigJson, c: FieldValues) -> int:
    """How much of each head is rotated: half by default.

    Rotation works on pairs unless the head has a single element.
    """
    width: int = rotary_width(0.5)(js, c)
    return min(width, 1) if c["d_head"] == 1 else width


class Glm4Moe(AttentionDecoder):
    """Source: arXiv:2508.06471; Glm4MoeAttention and Glm4MoeTopkRouter of the reference."""

    reference = "Glm4MoeForCausalLM"
    gguf = "glm4moe"
    is_section_type = True
    adapts_experts = True
    conditions: ClassVar[tuple[Condition, ...]] = (
        grouped_routing(1, 1),
        padding_in_table(None),
        not_null("n_routed_experts", "n_group", "topk_group"),
    )

    d_rope: Natural = derived(rotated)
    d_ff: Natural = hf()
    n_dense_layers: Natural = hf(at_most="n_layers")
    d_expert: Natural = hf()
    n_routed_experts: Natural = hf("num_local_experts", "n_routed_experts", null=needed("num_local_experts"))
    n_active_experts: Natural = hf()
    n_shared_experts: Natural = hf()
    n_mtp_layers: Natural = hf("num_nextn_predict_layers", "num_mtp_layers", null=0)
    attention_bias: Flag = hf()
    qk_norm: Flag = hf("use_qk_norm")
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=131072, share=0.5)
    axes: ClassVar[Any] = None  # of the rotation, if positions have several
    norm_topk_prob = setting("norm_topk_prob", default=True)
    routed_scale = setting("routed_scaling_factor", default=1.0)
    n_groups = setting("n_group", default=1)
    n_active_groups = setting("topk_group", default=1)
    kinds = dense_first

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer."""
        *places, kind = reads
        x = x + c.attend(c.norm(x, "input_layernorm"), *places)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def attend(c, x: Data, *places: Data) -> Data:
        rotate = lambda y: partial_rope(y, c.d_rope, c.rope, "halves", *places, axes=c.axes)  # noqa: E731
        return c.self_attention(x, bias=c.attention_bias, o_bias=False, qk_norm=c.qk_norm, rotate=rotate)

    def choose(c, logits: Data) -> Data:
        return choose_in_groups(c, logits, routing_bias(c, "mlp.gate.e_score_correction_bias"))

    def mtp(c, tokens: Data) -> Data:
        return next_token_layers(c, tokens, lambda x: c.layer(x, "moe"))

    def check(c) -> None:
        check_at_most(c, "d_rope", "d_head")
        check_experts_exist(c)
