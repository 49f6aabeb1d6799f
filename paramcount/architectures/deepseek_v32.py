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
    defaults = {"vocab_size": 129280, "d_model": 7168, "n_layers": 61}

    n_heads: Positive = hf(absent=128)
    d_q_lora: Positive = hf(absent=1536)
    d_kv_lora: Positive = hf(absent=512)
    d_nope: Positive = hf(absent=128)
    d_rope: Positive = hf(absent=64)
    d_v: Positive = hf(absent=128)
    n_index_heads: Positive = hf("index_n_heads", absent=64)
    d_index: Positive = hf("index_head_dim", absent=128)
    n_chosen: Positive = hf("index_topk", absent=2048)
    d_ff: Natural = hf(absent=18432)
    dense_layers: Indices = derived(dense_by_type(first_dense(3)))
    d_expert: Natural = hf(absent=2048)
    n_routed_experts: Natural = hf("num_local_experts", "num_experts", "n_routed_experts", absent=256, null=256)
    n_active_experts: Natural = hf(absent=8)
    n_shared_experts: Natural = hf(absent=1)
    n_mtp_layers: Natural = hf("num_nextn_predict_layers", absent=0, null=0)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

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
