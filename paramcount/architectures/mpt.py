"""MPT: ALiBi instead of positions, no bias anywhere, tied head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import make_choice_error
from paramcount.flow import Data, attend, linear
from paramcount.parts.attentions import alibi, fused_qkv
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill

ATTENTIONS = ("multihead_attention", "multiquery_attention")  # the reference reads the word and then builds the first


def known_attention(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    word = (js.get("attn_config") or {}).get("attn_type", ATTENTIONS[0])
    if word not in ATTENTIONS:
        raise make_choice_error(word, ATTENTIONS, where="attn_config.attn_type")


class MPT(Sizes):
    """Source: modeling_mpt.py of the reference, which reads neither learned_pos_emb nor no_bias nor expansion_ratio."""

    reference: ClassVar[str] = "MptForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (known_attention,)

    vocab_size: Positive = hf(absent=50368)
    d_model: Positive = hf("hidden_size", "d_model", absent=2048)
    n_layers: Positive = hf("num_hidden_layers", "n_layers", absent=24)
    n_heads: Positive = hf("num_attention_heads", "n_heads", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = derived(lambda js, c: 4 * c["d_model"])
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, prefix="transformer.", names=("wte", "blocks", "norm_f"))

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    names = ("ffn.up_proj", "ffn.down_proj")
    return pre_norm(x, lambda h: attention(c, h), lambda h: plain_mlp(h, names, "mlp", c.d_ff), ("norm_1", "norm_2"))


def attention(c: Any, x: Data) -> Data:
    q, k, v = fused_qkv(c, x, "attn.Wqkv", bias=False)
    return linear(attend(alibi(q), k, v), "attn.out_proj", "output_projection", c.d_model)
