"""DeepSeek-V3.2: DeepSeek-V3 whose attention looks only at the tokens that a small indexer chooses."""

from paramcount.declare import Data, parts, sizes


class DeepseekV32(parts.LatentMixture):
    """Source: arXiv:2512.02556, section 2.1; DeepseekV32DecoderLayer. `n_chosen`: how many tokens a token looks at."""

    reference = "DeepseekV32ForCausalLM"
    gguf = "deepseek32"
    float32_if_float16 = ("indexer.weights_proj",)
    conditions = sizes.routed_sparse_attention(8, 4, 128)

    d_q_lora: sizes.Positive = sizes.hf()
    n_index_heads: sizes.Positive = sizes.hf("index_n_heads")
    d_index: sizes.Positive = sizes.hf("index_head_dim")
    n_chosen: sizes.Positive = sizes.hf("index_topk")
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.first_dense(3)))
    n_routed_experts: sizes.Natural = sizes.hf("num_local_experts", "num_experts", "n_routed_experts", null=256)
    n_shared_experts: sizes.Natural = sizes.hf()
    n_mtp_layers: sizes.Natural = sizes.hf("num_nextn_predict_layers", absent=0, null=0)

    rope = sizes.rotary()
    pairing = sizes.setting(default="interleaved")
    kinds = parts.layers_by_mlp

    def attend(c, x: Data) -> Data:
        return parts.sparse_attention(c, x, "self_attn.", bias=c.attention_bias)

    def mtp(c, tokens: Data) -> Data | None:
        return parts.next_token_layers(c, tokens, lambda x: c.layer(x, "moe"))

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_rope")
        sizes.check_at_most(c, "d_rope", "d_index")
