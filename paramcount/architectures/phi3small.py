"""Phi-3 small: attention to near blocks and every eighth, in every other layer to all, and a GELU with two inputs."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def dense_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    every = js.get("dense_attention_every_n_layers", 2)
    if every is not None and (type(every) is not int or every < 0):
        raise sizes.make_value_error(every, "dense_attention_every_n_layers", "a non-negative integer or null")
    return tuple("full_attention" if every and (i + 1) % every == 0 else "block_sparse" for i in sizes.per_layer(c))


def mlp_as_stated(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The hidden size of the MLP is the one that is stated: no release multiplies it or rounds it up."""
    if (value := js.get("ff_dim_multiplier")) is not None:
        raise sizes.make_value_error(value, "ff_dim_multiplier", "null")
    if c["d_ff"] % 256 and sizes.flag(js, "gegelu_pad_to_256", True):
        raise sizes.make_value_error(c["d_ff"], "ff_intermediate_size", "a multiple of 256")


def attention_scale(js: sizes.ConfigJson, c: Any) -> float:
    factor: float = js.get("mup_attn_multiplier", 1.0)
    return factor / c.d_head if js.get("mup_use_scaling", True) else c.d_head**-0.5


class Phi3Small(parts.AttentionDecoder):
    """Source: arXiv:2404.14219, section 2; modeling_phi3_small.py of microsoft/Phi-3-small-8k-instruct."""

    reference = "Phi3SmallForCausalLM of microsoft/Phi-3-small-8k-instruct"
    names = ("embed_tokens", "layers", "final_layernorm")
    is_section_type = False
    unused_keys = (
        "blocksparse_block_size", "blocksparse_num_local_blocks", "blocksparse_triton_kernel_block_size",
        "blocksparse_vert_stride",
    )  # fmt: skip
    conditions = (sizes.one_of("hidden_act", ("gegelu",), "gegelu"), mlp_as_stated)
    defaults = {"tie_word_embeddings": True}

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("ff_intermediate_size", "intermediate_size")
    layer_types: sizes.Words = sizes.derived(dense_layers)

    activation: ClassVar[str] = "quick_gelu"
    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-5)
    limit = sizes.setting("gegelu_limit", default=20.0)
    embedding_scale = sizes.setting("mup_embedding_multiplier", default=10.0)
    width_scale = sizes.setting("mup_width_multiplier", default=8.0)
    attention_scale = sizes.setting(default=attention_scale)
    rope = sizes.rotary(10_000, positions=8192, key="rope_embedding_base")
    own_layer_types = True
    norm = parts.use_layer_norm
    kinds = parts.layers_by_type

    def embed(c, tokens: Data) -> Data:
        return ops.scale_by(super().embed(tokens), c.embedding_scale, "times mup_embedding_multiplier")

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"), kind)
        return x + c.mlp(c.norm(x, "post_attention_layernorm"))

    def attend(c, x: Data, kind: str) -> Data:
        few = (c.n_kv_heads, c.d_head)
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}
        q, k, v = ops.fused(x, "self_attn.query_key_value", shares, bias=True, groups=c.n_kv_heads)
        q, k = c.rotate(q), c.rotate(k)
        if kind == "full_attention":
            a = c.mix_heads(q, k, v, None)  # [n, n_heads, d_head]
        else:
            a = Data("attention to near blocks and to every few earlier ones", (q, ops.cache(k), ops.cache(v)), q.shape)
        return ops.linear(a, "self_attn.dense", "output_projection", c.d_model, bias=True)

    def mlp(c, x: Data) -> Data:
        """Every value of gate is followed by one of up in the matrix."""
        halves = {"mlp.gate": c.d_ff, "mlp.up": c.d_ff}
        gate, up = ops.fused(x, "mlp.up_proj", halves, bias=True, groups=c.d_ff)
        gate, up = ops.clip(gate, None, c.limit), ops.clip(up, -c.limit, c.limit)
        h = ops.activate(gate, c.activation) * ops.scale_by(up, 1.0, "plus 1", shift=1.0)
        return ops.linear(h, "mlp.down_proj", "mlp.down", c.d_model, bias=True)

    def head(c, x: Data) -> Data:
        scale = 1 / c.width_scale if isinstance(c.width_scale, (int, float)) else c.width_scale
        return ops.scale_by(super().head(x), scale, "over mup_width_multiplier")

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if set(c.layer_types) - {"full_attention", "block_sparse"}:
            raise ParamcountError("has other words", where="layer_types", expected="full_attention or block_sparse")
