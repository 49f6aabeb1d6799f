"""K-EXAONE: sliding windows with rotary positions, every fourth layer global without them, DeepSeek-V3's experts."""

from paramcount.declare import Data, parts, sizes


class ExaoneMoe(parts.GroupedExperts, parts.AttentionDecoder):
    """Source: ExaoneMoeAttention and ExaoneMoeTopkRouter of the reference, modeling_exaone_moe.py."""

    reference = "ExaoneMoeForCausalLM"
    gguf = "exaone-moe"
    gguf_rope_factors = "llama3"
    rotated = None
    routing_bias = "mlp.e_score_correction_bias"
    conditions = (
        sizes.grouped_routing(1, 1),
        sizes.padding_in_table(0),
        sizes.even_where_rotated("sliding_attention"),
        sizes.not_null("n_group", "topk_group"),
    )

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every_key("sliding_window_pattern", 4), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.first_dense(1)))
    n_shared_experts: sizes.Natural = sizes.hf("num_shared_experts")

    kinds = parts.layers_by_type_and_mlp
    check = sizes.check_sliding_or_full
    norms_heads = True

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        sliding = word == "sliding_attention"
        window = c.window if sliding else None
        x = x + c.self_attention(c.norm(x, "input_layernorm"), prepare=c.prepare_by(sliding), window=window)
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "moe":
            return x + parts.shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)
