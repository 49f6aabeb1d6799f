"""StableLM: LayerNorms around Llama's layer, a quarter of each head rotated.

The 12B norms every head by itself and runs attention and MLP side by side.
"""

from paramcount.flow import Data, for_each_head, layer_norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import use_layer_norm
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, hf, rotary, rotary_part, setting
from paramcount.sizes.conditions import padding_in_table, rotates_stated_share
from paramcount.sizes.rules import check_at_most, check_heads_fill


class StableLm(AttentionDecoder):
    """Source: arXiv:2402.17834; for the 12B modeling_stablelm.py of the reference."""

    reference = "StableLmForCausalLM"
    gguf = "stablelm"
    is_section_type = True
    task_heads = "GENERIC"
    rotated = "d_rope"
    conditions = (padding_in_table(None), rotates_stated_share(0.25))

    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural = derived(rotary_part(0.25))
    d_ff: Natural = hf()
    qkv_bias: Flag = hf("use_qkv_bias")
    qk_norm: Flag = hf("qk_layernorm")
    parallel_residual: Flag = hf("use_parallel_residual")
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("layer_norm_eps", default=1e-5)
    rope = rotary(positions=4096, share=0.25)
    norm = use_layer_norm

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        a = c.self_attention(h, bias=c.qkv_bias, o_bias=False, prepare=c.prepare)
        return x + a + c.gated_mlp(h if c.parallel_residual else c.norm(x + a, "post_attention_layernorm"))

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """A layer norm of its own for each head if there is any, then the rotation."""
        if c.qk_norm:
            q = for_each_head(q, "self_attn.q_layernorm.norms.{head}", c.normalise_head)
            k = for_each_head(k, "self_attn.k_layernorm.norms.{head}", c.normalise_head)
        return partial_rope(q, c.d_rope, c.rope), partial_rope(k, c.d_rope, c.rope)

    def normalise_head(c, x: Data) -> Data:
        return layer_norm(x, "", c.norm_eps, bias=False)

    def check(c) -> None:
        check_heads_fill(c)
        check_at_most(c, "d_rope", "d_head")
