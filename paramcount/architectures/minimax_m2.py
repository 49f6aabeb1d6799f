"""MiniMax-M2: 256 small experts, a norm over all queries and one over all keys, half of each head rotated."""

from typing import Any

from paramcount.flow import Data, route
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import mixture, routing_bias
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, derived, hf, rotary
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rotary_sizes import rotary_width
from paramcount.sizes.rules import check_at_most
from paramcount.sizes.setting_fields import Setting


def rotated(js: ConfigJson, c: FieldValues) -> int:
    turned: int = rotary_width(share_of_width(js, c["d_head"]))(js, c)
    return turned


def share_of_width(js: ConfigJson, d_head: int) -> float:
    """The part of a head that rotates, if partial_rotary_factor is missing: released files have rotary_dim, a width."""
    width = js.get("rotary_dim")
    return 1.0 if width is None else width / d_head


def rotary_by_width() -> Any:
    usual = rotary(5_000_000, positions=196608, share=1.0)
    read = lambda js, c: usual.default({"partial_rotary_factor": share_of_width(js, c.d_head), **js}, c)  # noqa: E731
    return Setting((), read, check=usual.check)


class MiniMaxM2(AttentionDecoder):
    """Source: MiniMaxM2Attention and MiniMaxM2TopKRouter of the reference, modeling_minimax_m2.py.

    In the released files w1 is the gate, w3 up and w2 down.
    """

    reference = "MiniMaxM2ForCausalLM"
    gguf = "minimax-m2"
    is_section_type = True
    copied_modules = ("modeling_minimax_m2",)
    modules = {".block_sparse_moe.experts": (".mlp.experts",), ".block_sparse_moe.gate": (".mlp.gate",)}
    adapts_experts = True
    unused_keys = ("num_mtp_modules",)
    conditions = (padding_in_table(None),)
    defaults = {"d_head": 128}

    d_rope: Natural = derived(rotated)
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("num_experts", "num_local_experts")
    n_active_experts: Natural = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary_by_width()

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), qk_norm="wide", rotate=c.rotate)
        h = c.norm(x, "post_attention_layernorm")
        return x + mixture(c, h, "block_sparse_moe.", choose=c.choose, names=("w1", "w3", "w2"))

    def rotate(c, x: Data) -> Data:
        return partial_rope(x, c.d_rope, c.rope)

    def choose(c, logits: Data) -> Data:
        bias = routing_bias(c, "block_sparse_moe.e_score_correction_bias")
        return route(logits, c.n_active_experts, "sigmoid", bias=bias, normalise=True)

    def check(c) -> None:
        check_at_most(c, "d_rope", "d_head")
