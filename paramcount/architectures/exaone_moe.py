"""K-EXAONE: sliding windows with rotary positions, every fourth layer global without them, DeepSeek-V3's experts."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import choose_in_groups, routing_bias, shared_mixture
from paramcount.sizes import ABSENT, Flag, Indices, Natural, Positive, Words, derived, hf, rotary, setting
from paramcount.sizes.conditions import even_where_rotated, grouped_routing, not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, first_dense, full_every_key
from paramcount.sizes.rules import check_sliding_or_full


class ExaoneMoe(AttentionDecoder):
    """Source: ExaoneMoeAttention and ExaoneMoeTopkRouter of the reference, modeling_exaone_moe.py."""

    reference = "ExaoneMoeForCausalLM"
    gguf = "exaone-moe"
    is_section_type = True
    adapts_experts = True
    conditions = (
        grouped_routing(1, 1),
        padding_in_table(0),
        even_where_rotated("sliding_attention"),
        not_null("n_group", "topk_group"),
    )

    layer_types: Words = hf(absent=full_every_key("sliding_window_pattern", 4), null=ABSENT)
    window: Positive = hf()
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(first_dense(1)))
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf()
    n_shared_experts: Natural = hf("num_shared_experts")
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=2048)
    norm_topk_prob = setting("norm_topk_prob", default=True)
    routed_scale = setting("routed_scaling_factor", default=2.5)
    n_groups = setting("n_group", default=1)
    n_active_groups = setting("topk_group", default=1)
    kinds = layers_by_type_and_mlp
    check = check_sliding_or_full

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        sliding = word == "sliding_attention"
        window = c.window if sliding else None
        x = x + c.self_attention(c.norm(x, "input_layernorm"), qk_norm=True, rotate=sliding, window=window)
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "moe":
            return x + shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def choose(c, logits: Data) -> Data:
        return choose_in_groups(c, logits, routing_bias(c, "mlp.e_score_correction_bias"))
