"""Qwen 1: fused QKV with a bias although `no_bias` is set, a gated MLP whose config gives both halves together."""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def ntk_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Beyond the length of training the base grows step by step."""
    scaling = ops.StepScaling(config.get("seq_length", 2048))
    return ops.Rope(config.get("rotary_emb_base", 10_000), scaling if config.get("use_dynamic_ntk", True) else None)


class Qwen(parts.Decoder):
    """Source: arXiv:2309.16609, sections 2.3 and 2.4; modeling_qwen.py of Qwen/Qwen-7B. `d_ff` is the hidden size of
    the MLP, half of config.json's `intermediate_size`.
    """

    reference = "QWenLMHeadModel of Qwen/Qwen-7B"
    gguf = "qwen"
    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    rotated = "d_head"
    defaults = {"vocab_size": 151936, "d_model": 4096, "n_layers": 32}

    n_heads: sizes.Positive = sizes.hf(absent=32)
    d_head: sizes.Positive = sizes.hf("kv_channels", absent=128)
    d_ff: sizes.Natural = sizes.derived(lambda js, c: js.get("intermediate_size", 22016) // 2)

    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-6)
    activation = sizes.setting(default="silu")
    rope = sizes.setting(default=ntk_rope)
    # The length beyond which queries grow with the logarithm of their position.
    logn_length = sizes.setting(
        default=lambda config, c: config.get("seq_length", 2048) if config.get("use_logn_attn", True) else None
    )
    check = sizes.check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.attend(c.norm(x, "ln_1"))
        h, names = c.norm(x, "ln_2"), ("w2", "w1", "c_proj")
        return x + c.gated_mlp(h, names=names)

    def attend(c, x: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "attn.c_attn")  # [n, n_heads, d_head]
        length = c.logn_length if ops.is_known(c.logn_length) else None
        q = ops.scale_by_logarithm(ops.rope(q, c.rope), length)
        a = ops.attend_causally(q, ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return ops.linear(a, "attn.c_proj", "output_projection", c.d_model)
