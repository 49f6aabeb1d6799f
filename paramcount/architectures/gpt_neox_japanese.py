"""GPT-NeoX Japanese: GPT-NeoX one after the other and without biases, but for one behind the last layer's attention."""

from paramcount.architectures.gpt_neox import rotary_width, rotation_fits
from paramcount.flow import Data, add_vector, attend, linear
from paramcount.parts.attentions import fused_qkv, partial_rope
from paramcount.parts.decoder import Decoder, Kinds
from paramcount.parts.decoders import head, last_differs, use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, hf, rotary, setting
from paramcount.sizes.conditions import rotates_stated_share
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_heads_fill


class GPTNeoXJapanese(Decoder):
    """Source: modeling_gpt_neox_japanese.py of the reference, GPTNeoXJapaneseLayer."""

    reference = "GPTNeoXJapaneseForCausalLM"
    conditions = (rotates_stated_share(1.0, "rotary_pct"),)

    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural | None = derived(rotary_width(1.0))
    d_ff: Natural = derived(lambda js, c: c["d_model"] * check_no_types(js, "intermediate_multiple_size", 4))
    tie_word_embeddings: Flag = hf()

    prefix = "gpt_neox_japanese."
    names = ("embed_in", "layers", "final_layer_norm")
    activation = setting("hidden_act", default="gelu")
    norm_eps = setting("layer_norm_eps", default=1e-5)
    rope = rotary(key="rotary_emb_base", share=1.0, share_key="rotary_pct")
    norm = use_layer_norm

    def kinds(c) -> Kinds:
        return last_differs(c.n_layers)

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"), bias=kind == "last")
        h = c.norm(x, "post_attention_layernorm")
        return x + plain_mlp(h, ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"), "mlp", c.d_ff, activation=c.activation)

    def attention(c, x: Data, *, bias: bool) -> Data:
        q, k, v = fused_qkv(c, x, "attention.query_key_value", bias=False, groups=c.n_heads)
        a = attend(partial_rope(q, c.d_rope, c.rope), partial_rope(k, c.d_rope, c.rope), v)
        y = linear(a, "attention.dense", "output_projection", c.d_model)
        return add_vector(y, "attention.dense_bias", "output_projection", c.d_model) if bias else y

    def head(c, x: Data) -> Data:
        return head(c, x, "gpt_neox_japanese.embed_in.weight", "embed_out")

    def check(c) -> None:
        check_heads_fill(c)
        rotation_fits(c)
