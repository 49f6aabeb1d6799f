"""Mixtral: Mistral with a mixture of experts in every layer."""

from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import ABSENT, Flag, Natural, Positive, d_model_per_head, hf, rotary, setting
from paramcount.sizes.conditions import one_mask, padding_in_table


class Mixtral(AttentionDecoder):
    """Source: arXiv:2401.04088, section 2. In the released files w1 is the gate, w3 up and w2 down."""

    reference = "MixtralForCausalLM"
    gguf = "llama"
    is_section_type = True
    task_heads = "GENERIC_SPAN"
    modules = {".block_sparse_moe.experts": (".mlp.experts",), ".block_sparse_moe.gate": (".mlp.gate",)}
    adapts_experts = True
    rotated = "d_head"
    conditions = (padding_in_table(None), one_mask())

    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("num_experts", "num_local_experts")
    n_active_experts: Natural = hf()
    window: Positive | None = hf(absent=None)
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(1_000_000, positions=131072)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window)
        h = c.norm(x, "post_attention_layernorm")
        return x + mixture(c, h, "block_sparse_moe.", choose=c.choose, names=("w1", "w3", "w2"))

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=True)
