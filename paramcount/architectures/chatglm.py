"""ChatGLM, 2 and 3, and GLM-4-9B: fused q, k and v.

From ChatGLM2 on: multi-query or grouped-query attention with half of each head rotated, and a gated MLP.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


def is_first(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """Whether the keys are ChatGLM-6B's, whose modeling code has the same model type and class."""
    return "inner_hidden_size" in js or "position_encoding_2d" in js


def by_version(first: sizes.Derivation, later: sizes.Derivation) -> sizes.Derivation:
    return lambda js, c: (first if is_first(js, c) else later)(js, c)


def kv_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    few = not c["first"] and sizes.flag(js, "multi_query_attention", False)
    return js.get("multi_query_group_num", 1) if few else c["n_heads"]


def not_another_glm(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Rejects configs with a trained prefix, and of ChatGLM-6B those with other positions."""
    if js.get("pre_seq_len") is not None:
        raise ParamcountError("enables prefix tuning, which is not supported", where="pre_seq_len", expected="null")
    if c["first"] and not sizes.flag(js, "position_encoding_2d", True):
        raise ParamcountError("= false is not supported", where="position_encoding_2d", expected="true")


def rotary_of_later_ones(js: sizes.ConfigJson, c: Any) -> ops.Rope:
    """Of ChatGLM2 and later; ChatGLM-6B has two positions per token."""
    if c.first or js.get("rope_ratio", 1) != 1:
        raise ValueError("some releases multiply the base by rope_ratio, others divide positions by it")
    return ops.Rope(10_000.0)


class ChatGLM(parts.Decoder):
    """Source: modeling_chatglm.py of THUDM/chatglm-6b, THUDM/chatglm2-6b, THUDM/chatglm3-6b and THUDM/glm-4-9b-chat;
    arXiv:2406.12793, section 2. `ChatGLMModel` holds the head too.
    """

    reference = "ChatGLMForConditionalGeneration of THUDM/chatglm2-6b"
    gguf = "chatglm"
    published_heads = "CHATGLM"
    equivalent_classes = ("ChatGLMModel",)
    conditions = (not_another_glm,)
    defaults = {"d_model": 4096}

    first: sizes.Flag = sizes.derived(is_first)
    vocab_size: sizes.Positive = sizes.hf(
        "padded_vocab_size", absent=by_version(lambda js, c: js.get("vocab_size", 150528), lambda js, c: 65024)
    )
    n_layers: sizes.Natural = sizes.hf("num_layers", absent=28)
    n_heads: sizes.Positive = sizes.hf(absent=32)
    n_kv_heads: sizes.Positive = sizes.derived(kv_heads)
    d_head: sizes.Positive = sizes.hf("kv_channels", absent=by_version(sizes.d_model_per_head, lambda js, c: 128))
    d_rope: sizes.Positive = sizes.derived(by_version(lambda js, c: c["d_head"], lambda js, c: c["d_head"] // 2))
    d_ff: sizes.Natural = sizes.hf(
        "ffn_hidden_size", absent=by_version(lambda js, c: js.get("inner_hidden_size", 16384), lambda js, c: 13696)
    )
    bias: sizes.Flag = sizes.derived(lambda js, c: c["first"] or sizes.flag(js, "add_bias_linear", False))
    qkv_bias: sizes.Flag = sizes.derived(lambda js, c: c["bias"] or sizes.flag(js, "add_qkv_bias", False))
    norm_bias: sizes.Flag = sizes.derived(lambda js, c: c["first"] or not sizes.flag(js, "rmsnorm", True))
    last_norm: sizes.Flag = sizes.derived(lambda js, c: c["first"] or sizes.flag(js, "post_layer_norm", True))
    norm_in_residual: sizes.Flag = sizes.derived(
        lambda js, c: c["first"] or sizes.flag(js, "apply_residual_connection_post_layernorm", False)
    )
    # From ChatGLM2 on the LM head is a matrix of its own whatever the config says.
    tie_word_embeddings: sizes.Flag = sizes.derived(
        lambda js, c: c["first"] and sizes.flag(js, "tie_word_embeddings", True)
    )

    prefix = "transformer."
    activation = sizes.setting(default=lambda js, c: "gelu_new" if c.first else "silu")
    norm_eps = sizes.setting("layernorm_epsilon", default=1e-5)
    rope = sizes.setting(default=rotary_of_later_ones)

    def embed(c, tokens: Data) -> Data:
        name = "word_embeddings" if c.first else "embedding.word_embeddings"
        return ops.lookup(tokens, f"transformer.{name}.weight", "embedding", c.vocab_size, c.d_model)

    def decode(c, x: Data) -> Data:
        stack = "transformer." if c.first else "transformer.encoder."
        x = ops.layers(x, stack + "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        if c.last_norm:
            x = c.norm(x, stack + "final_layernorm")
        table = "transformer.word_embeddings.weight"  # read by ChatGLM-6B's LM head alone
        return parts.head(c, x, table, "lm_head" if c.first else "transformer.output_layer")

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps) if c.norm_bias else ops.rms_norm(x, name, c.norm_eps)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = c.residual(x, h) + c.attention(h)
        h = c.norm(x, "post_attention_layernorm")
        return c.residual(x, h) + c.mlp(h)

    def residual(c, x: Data, normed: Data) -> Data:
        """ChatGLM-6B scales it by the number of layers."""
        if c.first:
            return ops.scale_by_root(normed, c.n_layers + c.n_layers, "times √(2 · n_layers)")
        return normed if c.norm_in_residual else x

    def mlp(c, x: Data) -> Data:
        names = ("dense_h_to_4h", "dense_4h_to_h")
        if c.first:
            matrices = ("mlp." + names[0], "mlp." + names[1])
            return parts.plain_mlp(x, matrices, "mlp", c.d_ff, activation=c.activation, bias=True)
        return parts.fused_gated_mlp(x, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.bias, names=names)

    def attention(c, x: Data) -> Data:
        """In ChatGLM-6B each head has its q, k and v side by side."""
        prefix = "attention." if c.first else "self_attention."
        few, groups = (c.n_kv_heads, c.d_head), c.n_heads if c.first else 1
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}
        q, k, v = ops.fused(x, prefix + "query_key_value", shares, bias=c.qkv_bias, groups=groups)
        a = (
            ops.attend_causally(ops.rope(q), ops.rope(k), v)
            if c.first
            else ops.attend_causally(c.rotate(q), c.rotate(k), v)
        )
        return ops.linear(a, prefix + "dense", "output_projection", c.d_model, bias=c.bias)

    def rotate(c, x: Data) -> Data:
        return parts.partial_rope(x, c.d_rope, c.rope, "interleaved")

    def legacy_buffers(c) -> sizes.Buffers:
        if c.first:
            return (("transformer.layers.{layer}.attention.rotary_emb.inv_freq", (c.d_head // 4,), c.n_layers),)
        return (("transformer.rotary_pos_emb.inv_freq", (c.d_rope // 2,), 1),)

    def check(c) -> None:
        if c.d_head % 4:
            raise ParamcountError(
                f"= {c.d_head} cannot be split into two halves of rotary pairs",
                where=FieldName("d_head"),
                expected="a multiple of 4",
            )
        if c.first:
            sizes.check_heads_fill(c)
