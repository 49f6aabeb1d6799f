"""Persimmon: fused q, k and v, LayerNorms on queries and keys, and a squared ReLU.

Half of each head is rotated.
"""

from typing import ClassVar

from paramcount.architectures.phi import prepare
from paramcount.flow import Data, attend, linear
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Condition, Flag, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table, rotates_stated_share
from paramcount.sizes.derivations import d_model_per_head, rotary_part
from paramcount.sizes.rules import check_at_most, check_heads_fill


class Persimmon(Decoder):
    """Source: modeling_persimmon.py of the reference."""

    reference = "PersimmonForCausalLM"
    is_section_type = True
    task_heads = "GENERIC"
    names = ("embed_tokens", "layers", "final_layernorm")
    rotated = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None), rotates_stated_share(0.5))

    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural = derived(rotary_part(0.5))
    d_ff: Natural = hf()
    qk_norm: Flag = hf("qk_layernorm")
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="relu2")
    norm_eps = setting("layer_norm_eps", default=1e-5)
    rope = rotary(positions=16384, share=0.5)
    norm = use_layer_norm

    def layer(c, x: Data) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"))
        h, names = c.norm(x, "post_attention_layernorm"), ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        return x + plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=True)

    def attend(c, x: Data) -> Data:
        q, k, v = fused_qkv(c, x, "self_attn.query_key_value", groups=c.n_heads)
        q, k = prepare(c, q, k)
        return linear(attend(q, k, v), "self_attn.dense", "output_projection", c.d_model, bias=True)

    def check(c) -> None:
        check_heads_fill(c)
        check_at_most(c, "d_rope", "d_head")
