"""StripedHyena and Evo: gated long convolutions, computed as recurrences, with attention in some layers."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def inner_size(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    multiple = js.get("inner_size_multiple_of", 64) * js.get("model_parallel_size", 1)
    return -(-int(2 * c["d_model"] * 4 / 3) // multiple) * multiple


def every_layer(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Each layer is in attn_layer_idxs or in hyena_layer_idxs, which may be left out: it has the others."""
    listed = {*c["attention_layers"], *(js.get("hyena_layer_idxs") or ())}
    missing = [i for i in sizes.per_layer(c) if i not in listed] if "hyena_layer_idxs" in js else []
    if missing:
        raise ParamcountError(f"does not contain layer {missing[0]}", where="hyena_layer_idxs", expected="each layer")


def read_rope(config: Any, c: Any) -> ops.Rope:
    base = float(config.get("rotary_emb_base", 10_000))
    factor = config.get("rotary_emb_scaling_factor", 1.0)
    is_scaled = config.get("use_interpolated_rotary_pos_emb", False)
    return sizes.make_rope("linear" if is_scaled else "default", base, {"factor": factor}, {}, 8192)


class StripedHyena(parts.Decoder):
    """Source: model.py and engine.py of togethercomputer/stripedhyena; for the filters arXiv:2310.18780."""

    reference = "StripedHyenaModelForCausalLM of togethercomputer/StripedHyena-Nous-7B"
    prefix = "backbone."
    names = ("embedding_layer", "blocks", "norm")
    head_name = "backbone.unembed"
    rotated = "d_head"
    base_model = ""
    unused_keys = ("num_filters", "make_vocab_size_divisible_by", "model_parallel_size", "pipe_parallel_size")
    conditions = (
        every_layer,
        parts.only("hyena_filter_groups", 1),
        parts.only("column_split_hyena", True),
        parts.only("final_norm", True),
        parts.only("smeared_gqa", False),
    )

    n_layers: sizes.Natural = sizes.hf("num_layers")
    attention_layers: sizes.Indices = sizes.hf("attn_layer_idxs")
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    proj_groups: sizes.Positive = sizes.hf("proj_groups", absent=1)
    n_kv_heads: sizes.Positive = sizes.derived(lambda js, c: c["n_heads"] // c["proj_groups"])
    d_ff: sizes.Natural = sizes.hf("inner_mlp_size", absent=inner_size, null=sizes.ABSENT)
    d_state: sizes.Positive = sizes.hf("state_size")
    d_conv: sizes.Positive = sizes.hf("short_filter_length")
    conv_bias: sizes.Flag = sizes.hf("short_filter_bias")
    attention_bias: sizes.Flag = sizes.hf("qkv_proj_bias", absent=True)
    o_bias: sizes.Flag = sizes.hf("mha_out_proj_bias", absent=True)
    tie_word_embeddings: sizes.Flag = sizes.hf("tie_embeddings")

    activation = sizes.setting("mlp_activation", default="silu", kind=sizes.choice("silu", "gelu"))
    norm_eps = sizes.setting("eps", default=1e-5)
    rope = sizes.setting(default=read_rope)

    def kinds(c) -> parts.Kinds:
        return parts.mix_kinds(c.attention_layers, c.n_layers)

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "pre_norm")
        x = x + (c.attention(h, "inner_mha_cls.") if kind == "attention" else c.hyena(h, "filter."))
        return x + c.gated_mlp(c.norm(x, "post_norm"), names=("l1", "l2", "l3"))

    def norm(c, x: Data, name: str) -> Data:
        weight = ops.Weight(name + ".scale", "norm", x.shape[-1:])
        return Data(ops.Norm("rms", c.norm_eps), (x,), x.shape, (weight,))

    def attention(c: Any, x: Data, prefix: str) -> Data:
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": (c.n_kv_heads, c.d_head), "qkv.v": (c.n_kv_heads, c.d_head)}
        q, k, v = ops.fused(x, prefix + "Wqkv", shares, bias=c.attention_bias)
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)
        return parts.project_output(a, prefix + "out_proj", c.d_model, bias=c.o_bias)

    def hyena(c: Any, x: Data, prefix: str) -> Data:
        """A short convolution of three streams; the product of two of them goes through a long one."""
        d, triple = c.d_model, 3 * c.d_model
        z = ops.linear(x, "projections", "mixer.x", triple, bias=True)
        stored = [ops.Weight(prefix + "short_filter_weight", "mixer.convolution", (triple, 1, c.d_conv))]
        if c.conv_bias:
            stored.append(ops.Weight(prefix + "short_filter_bias", "mixer.convolution", (triple,)))
        z = Data(ops.CausalConvolution(c.d_conv, triple), (z,), z.shape, tuple(stored))
        names = ("mixer.gate", "mixer.k", "mixer.v")  # head by head
        gate, k, v = (Data(ops.Split((d, d, d), i, c.n_heads, name), (z,), x.shape) for i, name in enumerate(names))
        u = k * v
        modes = tuple(ops.Weight(prefix + name, "mixer.state", (d, c.d_state, 1, 2)) for name in ("poles", "residues"))
        y = Data(ops.ModalState(d, c.d_state), (u,), u.shape, modes)
        y = (y + ops.multiply_vector(u, prefix + "D", "mixer.state", d)) * gate
        return ops.linear(y, "out_filter_dense", "mixer.out", d, bias=True)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_layer_indices(c, "attention_layers", "n_layers")
        sizes.check_divides(c, "proj_groups", "n_heads")
