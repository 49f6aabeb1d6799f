"""RWKV-6: time mixing whose decay and mixtures with the token before depend on the token; channel mixing."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.parts.rwkv import STREAMS


class Rwkv6(parts.RwkvDecoder):
    """Source: arXiv:2404.05892, section 4; RWKV6Attention in fla/layers/rwkv6.py and RWKV6FeedForward in
    fla/models/rwkv6/modeling_rwkv6.py of fla-org/flash-linear-attention."""

    reference = "RWKV6ForCausalLM of fla-org/flash-linear-attention"

    d_ff: sizes.Natural = sizes.hf(absent=parts.rounded_to_32(3.5), null=sizes.ABSENT)
    n_heads: sizes.Positive = sizes.hf("num_heads", absent=4)
    d_linear_k: sizes.Positive = sizes.derived(parts.head_share("expand_k", 0.5))
    d_linear_v: sizes.Positive = sizes.derived(parts.head_share("expand_v", 1.0))
    mix_rank: sizes.Positive = sizes.hf("proj_low_rank_dim", absent=32)
    decay_rank: sizes.Positive = sizes.hf("gate_low_rank_dim", absent=64)

    def layer(c, x: Data, *kind: str) -> Data:
        word = kind[0].removeprefix(parts.rwkv.FIRST) if kind else "mixer"
        if kind and kind[0] != word:
            x = c.norm(x, "pre_norm")
        return super().layer(x, *([word] if c.attention_layers else ()))

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        d, n = x.shape[-1], c.n_heads
        k_heads, v_heads = (n, c.d_linear_k), (n, c.d_linear_v)
        difference = parts.difference_to_last(x)
        mixed = parts.mix_with_last(x, difference, prefix + "x_proj.0.mu", "mixer.mix")
        mixed = ops.linear(mixed, prefix + "x_proj.0.linear", "mixer.mix", STREAMS * c.mix_rank)
        mixed = ops.to_groups(ops.activate(mixed, "tanh"), STREAMS, c.mix_rank)
        mixed = ops.linear_by_stream(mixed, prefix + "x_proj.2", "mixer.mix", d)
        mixed = ops.add_vector(mixed, prefix + "x_bias", "mixer.mix", STREAMS, d)
        r, w, k, v, g = (x + difference * m for m in ops.split(ops.reshape(mixed, STREAMS * d), *[d] * STREAMS))
        r = ops.linear(r, prefix + "r_proj.linear", "mixer.r", k_heads)  # [n, n_heads, d_linear_k]
        decay = parts.low_rank(
            w, prefix + "w_proj.linear", "mixer.step", c.decay_rank, n * c.d_linear_k, activation="tanh"
        )
        decay = ops.minus_exp(ops.to_heads(decay, *k_heads))
        k = ops.linear(k, prefix + "k_proj.linear", "mixer.k", k_heads)
        v = ops.linear(v, prefix + "v_proj.linear", "mixer.v", v_heads)
        g = ops.activate(ops.linear(g, prefix + "g_proj.linear", "mixer.gate", n * c.d_linear_v), "silu")
        bonus = ops.Weight(prefix + "bonus", "mixer.state", k_heads)
        y = Data(ops.BonusState(*k_heads, c.d_linear_v, False), (r, k, v, decay), v.shape, (bonus,))
        y = parts.normalise_heads_apart(y, prefix + "g_norm", c.norm_eps) * g
        return ops.linear(y, prefix + "o_proj", "mixer.out", d)

    def feed_forward(c: Any, x: Data) -> Data:
        difference = parts.difference_to_last(x)
        k = parts.mix_with_last(x, difference, "ffn.key.mu", "mlp.mix")
        r = parts.mix_with_last(x, difference, "ffn.receptance.mu", "mlp.mix")
        k = c.activate(ops.linear(k, "ffn.key.linear", "mlp.up", c.d_ff))
        r = ops.activate(ops.linear(r, "ffn.receptance.linear", "mlp.gate", x.shape[-1]), "sigmoid")
        return r * ops.linear(k, "ffn.value", "mlp.down", x.shape[-1])


class Rwkv6World(parts.RwkvWorld):
    """RWKV-6 as the World models are published. Source: modeling_rwkv6.py of RWKV/rwkv-6-world-1b6."""

    reference = "Rwkv6ForCausalLM of RWKV/rwkv-6-world-1b6"
    model_types = ("rwkv6.Rwkv6ForCausalLM",)

    mix_rank: sizes.Positive = sizes.derived(lambda js, c: 64 if c["d_model"] == 4096 else 32)
    decay_rank: sizes.Positive = sizes.derived(lambda js, c: 128 if c["d_model"] == 4096 else 64)

    def mix_time(c: Any, x: Data, prefix: str) -> Data:
        d, heads = x.shape[-1], (c.n_heads, c.d_head)
        difference = parts.difference_to_last(x)
        mixed = parts.mix_with_last(x, difference, prefix + "time_maa_x", "mixer.mix", 1, 1)
        mixed = ops.activate(
            parts.multiply_raw(mixed, prefix + "time_maa_w1", "mixer.mix", STREAMS * c.mix_rank), "tanh"
        )
        weight = ops.Weight(prefix + "time_maa_w2", "mixer.mix", (STREAMS, c.mix_rank, d))
        mixed = ops.linear_by_head(ops.to_groups(mixed, STREAMS, c.mix_rank), d, weight, transposed=True)
        shares = ops.split(ops.reshape(mixed, STREAMS * d), *[d] * STREAMS)
        w, k, v, r, g = (
            x + difference * ops.add_vector(share, f"{prefix}time_maa_{name}", "mixer.mix", 1, 1, d)
            for name, share in zip("wkvrg", shares, strict=True)
        )
        decay = ops.activate(parts.multiply_raw(w, prefix + "time_decay_w1", "mixer.step", c.decay_rank), "tanh")
        decay = parts.multiply_raw(decay, prefix + "time_decay_w2", "mixer.step", c.n_heads * c.d_head)
        decay = ops.add_vector(decay, prefix + "time_decay", "mixer.step", 1, 1, c.n_heads * c.d_head)
        decay = ops.minus_exp(ops.to_heads(decay, *heads))
        bonus = ops.Weight(prefix + "time_faaaa", "mixer.state", heads)
        r, k, v, g = c.project(prefix, r, k, v, g)
        return c.mix_out(Data(ops.BonusState(*heads, c.d_head, False), (r, k, v, decay), v.shape, (bonus,)), g, prefix)

    def mix_channels(c: Any, x: Data, prefix: str) -> Data:
        difference = parts.difference_to_last(x)
        k = parts.mix_with_last(x, difference, prefix + "time_maa_k", "mlp.mix", 1, 1)
        r = parts.mix_with_last(x, difference, prefix + "time_maa_r", "mlp.mix", 1, 1)
        return c.gate_channels(k, r, prefix)
