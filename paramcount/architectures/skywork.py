"""Skywork-13B: Llama's layers, deeper and narrower, without any bias."""

from paramcount.declare import Data, parts, sizes


class Skywork(parts.EqualHeads, parts.AttentionDecoder):
    """Source: arXiv:2310.19341; modeling_skywork.py of Skywork/Skywork-13B-base."""

    reference = "SkyworkForCausalLM of Skywork/Skywork-13B-base"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    d_ff: sizes.Natural = sizes.hf(absent=11008)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
