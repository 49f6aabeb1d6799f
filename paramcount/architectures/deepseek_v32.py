"""DeepSeek-V3.2: DeepSeek-V3 whose attention looks only at the tokens that a small indexer chooses."""

from paramcount.declare import Data, parts, sizes


class DeepseekV32(parts.LatentMixture):
    """Source: arXiv:2512.02556, section 2.1; DeepseekV32DecoderLayer. `n_chosen`: how many tokens a token looks at."""

    reference = "DeepseekV32ForCausalLM"
    gguf = "deepseek32"
    is_section_type = True
    adapts_experts = True
    float32_if_float16 = ("indexer.weights_proj",)
    rotated = "d_rope"
    conditions = sizes.routed_sparse_attention(8, 4, 128)

    n_heads: sizes.Positive = sizes.hf()
    d_q_lora: sizes.Positive = sizes.hf()
    d_kv_lora: sizes.Positive = sizes.hf()
    d_nope: sizes.Positive = sizes.hf()
    d_rope: sizes.Positive = sizes.hf()
    d_v: sizes.Positive = sizes.hf()
    n_index_heads: sizes.Positive = sizes.hf("index_n_heads")
    d_index: sizes.Positive = sizes.hf("index_head_dim")
    n_chosen: sizes.Positive = sizes.hf("index_topk")
    d_ff: sizes.Natural = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.first_dense(3)))
    d_expert: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Natural = sizes.hf("num_local_experts", "num_experts", "n_routed_experts", null=256)
    n_active_experts: sizes.Natural = sizes.hf()
    n_shared_experts: sizes.Natural = sizes.hf()
    n_mtp_layers: sizes.Natural = sizes.hf("num_nextn_predict_layers", absent=0, null=0)
    attention_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    rope = sizes.rotary(positions=163840)
    pairing = sizes.setting(default="interleaved")
    kinds = parts.layers_by_mlp

    def attend(c, x: Data) -> Data:
        return parts.sparse_attention(c, x, "self_attn.", bias=c.attention_bias)

    def mtp(c, tokens: Data) -> Data | None:
        return parts.next_token_layers(c, tokens, lambda x: c.layer(x, "moe"))

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_rope")
        sizes.check_at_most(c, "d_rope", "d_index")
        sizes.check_experts_exist(c)
