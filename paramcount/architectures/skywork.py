"""Skywork-13B: Llama's layers, deeper and narrower, without any bias."""

from paramcount.declare import Data, parts, sizes


class Skywork(parts.AttentionDecoder):
    """Source: arXiv:2310.19341; modeling_skywork.py of Skywork/Skywork-13B-base."""

    reference = "SkyworkForCausalLM of Skywork/Skywork-13B-base"
    rotated = "d_head"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf(absent=11008)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=False)

    check = sizes.check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
