"""DeepSeek-V3.2: DeepSeek-V3 whose attention looks only at the tokens that a small indexer chooses."""

from paramcount.flow import Data
from paramcount.parts.decoders import layers_by_mlp
from paramcount.parts.latent_decoder import LatentMixture
from paramcount.parts.mla import sparse_attention
from paramcount.parts.mtp import next_token_layers
from paramcount.sizes import Flag, Indices, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import routed_sparse_attention
from paramcount.sizes.layer_types import dense_by_type, first_dense
from paramcount.sizes.rules import check_at_most, check_experts_exist, check_rotated_in_pairs


class DeepseekV32(LatentMixture):
    """Source: arXiv:2512.02556, section 2.1; DeepseekV32DecoderLayer. `n_chosen`: how many tokens a token looks at."""

    reference = "DeepseekV32ForCausalLM"
    gguf = "deepseek32"
    is_section_type = True
    adapts_experts = True
    float32_if_float16 = ("indexer.weights_proj",)
    rotated = "d_rope"
    conditions = routed_sparse_attention(8, 4, 128)

    n_heads: Positive = hf()
    d_q_lora: Positive = hf()
    d_kv_lora: Positive = hf()
    d_nope: Positive = hf()
    d_rope: Positive = hf()
    d_v: Positive = hf()
    n_index_heads: Positive = hf("index_n_heads")
    d_index: Positive = hf("index_head_dim")
    n_chosen: Positive = hf("index_topk")
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(first_dense(3)))
    d_expert: Natural = hf()
    n_routed_experts: Natural = hf("num_local_experts", "num_experts", "n_routed_experts", null=256)
    n_active_experts: Natural = hf()
    n_shared_experts: Natural = hf()
    n_mtp_layers: Natural = hf("num_nextn_predict_layers", absent=0, null=0)
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=163840)
    pairing = setting(default="interleaved")
    n_groups = setting("n_group", default=8)
    n_active_groups = setting("topk_group", default=4)
    kinds = layers_by_mlp

    def attend(c, x: Data) -> Data:
        return sparse_attention(c, x, "self_attn.", bias=c.attention_bias, scale=c.attention_scale)

    def mtp(c, tokens: Data) -> Data | None:
        return next_token_layers(c, tokens, lambda x: c.layer(x, "moe"))

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_rope")
        check_at_most(c, "d_rope", "d_index")
        check_experts_exist(c)
