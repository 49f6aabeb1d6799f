"""MiniMax-M2: 256 small experts, a norm over all queries and one over all keys, half of each head rotated."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def rotated_dimension(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    turned: int = sizes.rotary_dimension(share_of_width(js, c["d_head"]))(js, c)
    return turned


def share_of_width(js: sizes.ConfigJson, d_head: int) -> float:
    """The part of a head that rotates, if partial_rotary_factor is missing: released files have rotary_dim, a width."""
    width = js.get("rotary_dim")
    return 1.0 if width is None else width / d_head


def rotary_by_width() -> Any:
    usual = sizes.rotary(5_000_000, positions=196608, share=1.0)
    read = lambda js, c: usual.default({"partial_rotary_factor": share_of_width(js, c.d_head), **js}, c)  # noqa: E731
    return sizes.Setting((), read, check=usual.check)


class MiniMaxM2(parts.MixtureDecoder, parts.PartlyRotated):
    """Source: MiniMaxM2Attention and MiniMaxM2TopKRouter of the reference, modeling_minimax_m2.py.

    In the released files w1 is the gate, w3 up and w2 down.
    """

    reference = "MiniMaxM2ForCausalLM"
    gguf = "minimax-m2"
    copied_modules = ("modeling_minimax_m2",)
    modules = {".block_sparse_moe.experts": (".mlp.experts",), ".block_sparse_moe.gate": (".mlp.gate",)}
    adapts_experts = True
    unused_keys = ("num_mtp_modules",)
    conditions = (sizes.padding_in_table(None),)
    defaults = {"d_head": 128}

    d_rope: sizes.Natural = sizes.derived(rotated_dimension)
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "num_local_experts")

    rope = rotary_by_width()
    norms_heads = "wide"

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"))
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.mixture(c, h, "block_sparse_moe.", choose=c.choose, names=("w1", "w3", "w2"))

    def choose(c, logits: Data) -> Data:
        bias = parts.routing_bias(c, "block_sparse_moe.e_score_correction_bias")
        return ops.route(logits, c.n_active_experts, "sigmoid", bias=bias, normalise=True)
