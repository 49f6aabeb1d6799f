"""ChatGLM, 2 and 3, and GLM-4-9B: fused q, k and v.

From ChatGLM2 on: multi-query or grouped-query attention with half of each head rotated, and a gated MLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data, activate, attend, fused, linear, norm, rope
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import fused_gated_mlp, plain_mlp
from paramcount.sizes import Condition, Derivation, Flag, Positive, Sizes, d_model_per_head, derived, flag, hf
from paramcount.sizes.rules import check_heads_fill


def is_first(js: Mapping[str, Any], c: Mapping[str, Any]) -> bool:
    """Whether the keys are ChatGLM-6B's, whose modeling code has the same model type and class."""
    return "inner_hidden_size" in js or "position_encoding_2d" in js


def by_version(first: Derivation, later: Derivation) -> Derivation:
    return lambda js, c: (first if c["first"] else later)(js, c)


def kv_heads(js: Mapping[str, Any], c: Mapping[str, Any]) -> Any:
    few = not c["first"] and flag(js, "multi_query_attention", False)
    return js.get("multi_query_group_num", 1) if few else c["n_heads"]


def not_another_glm(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Rejects configs of other modeling code with this model type (GLM-4V) and those with a trained prefix."""
    if "vision_config" in js:
        raise ParamcountError(
            "belongs to another model of this type", where="vision_config", expected="ChatGLM or GLM-4-9B"
        )
    if js.get("pre_seq_len") is not None:
        raise ParamcountError("asks for a trained prefix, which is not supported", where="pre_seq_len", expected="null")
    if c["first"] and not flag(js, "position_encoding_2d", True):
        raise ParamcountError("= false is not supported", where="position_encoding_2d", expected="true")


class ChatGLM(Sizes):
    """Source: modeling_chatglm.py of THUDM/chatglm-6b, THUDM/chatglm2-6b, THUDM/chatglm3-6b and THUDM/glm-4-9b-chat;
    arXiv:2406.12793, section 2. `ChatGLMModel` holds the head too.
    """

    reference: ClassVar[str] = "ChatGLMForConditionalGeneration of THUDM/chatglm2-6b"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("ChatGLMModel",)
    conditions: ClassVar[tuple[Condition, ...]] = (not_another_glm,)

    first: Flag = derived(is_first)
    vocab_size: Positive = hf(
        "padded_vocab_size", absent=by_version(lambda js, c: js.get("vocab_size", 150528), lambda js, c: 65024)
    )
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf("num_layers", absent=28)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = derived(kv_heads)
    d_head: Positive = hf("kv_channels", absent=by_version(d_model_per_head, lambda js, c: 128))
    d_rope: Positive = derived(by_version(lambda js, c: c["d_head"], lambda js, c: c["d_head"] // 2))
    d_ff: Positive = hf(
        "ffn_hidden_size", absent=by_version(lambda js, c: js.get("inner_hidden_size", 16384), lambda js, c: 13696)
    )
    bias: Flag = derived(lambda js, c: c["first"] or flag(js, "add_bias_linear", False))
    qkv_bias: Flag = derived(lambda js, c: c["bias"] or flag(js, "add_qkv_bias", False))
    norm_bias: Flag = derived(lambda js, c: c["first"] or not flag(js, "rmsnorm", True))
    last_norm: Flag = derived(lambda js, c: c["first"] or flag(js, "post_layer_norm", True))
    norm_in_residual: Flag = derived(
        lambda js, c: c["first"] or flag(js, "apply_residual_connection_post_layernorm", False)
    )
    # From ChatGLM2 on the LM head is a matrix of its own whatever the config says.
    tie_word_embeddings: Flag = derived(lambda js, c: c["first"] and flag(js, "tie_word_embeddings", True))

    def forward(c, tokens: Data) -> Data:
        leave = None if c.last_norm else lambda x: x
        if c.first:
            names, head = ("word_embeddings", "layers", "final_layernorm"), "lm_head"
        else:
            names, head = (
                ("embedding.word_embeddings", "encoder.layers", "encoder.final_layernorm"),
                "transformer.output_layer",
            )
        return decoder(
            c, tokens, layer, prefix="transformer.", names=names, head_name=head, norm_bias=c.norm_bias, leave=leave
        )

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        if c.first:
            return (("transformer.layers.{layer}.attention.rotary_emb.inv_freq", (c.d_head // 4,), c.n_layers),)
        return (("transformer.rotary_pos_emb.inv_freq", (c.d_rope // 2,), 1),)

    def check(c) -> None:
        if c.d_head % 4:
            raise ParamcountError(
                f"= {c.d_head} cannot be halved and rotated in pairs", where="d_head", expected="a multiple of 4"
            )
        if c.first:
            check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    h = norm(x, "input_layernorm", bias=c.norm_bias)
    x = residual(c, x, h) + attention(c, h)
    h = norm(x, "post_attention_layernorm", bias=c.norm_bias)
    return residual(c, x, h) + feed_forward(c, h)


def residual(c: Any, x: Data, normed: Data) -> Data:
    """ChatGLM-6B scales it by the number of layers."""
    if c.first:
        return activate(normed, "times √(2 · n_layers)")
    return normed if c.norm_in_residual else x


def feed_forward(c: Any, x: Data) -> Data:
    names = ("dense_h_to_4h", "dense_4h_to_h")
    if c.first:
        return plain_mlp(x, ("mlp." + names[0], "mlp." + names[1]), "mlp", c.d_ff, bias=True)
    return fused_gated_mlp(x, "mlp.", "mlp", c.d_ff, bias=c.bias, names=names)


def attention(c: Any, x: Data) -> Data:
    few, prefix = (c.n_kv_heads, c.d_head), "attention." if c.first else "self_attention."
    q, k, v = fused(
        x, prefix + "query_key_value", {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}, bias=c.qkv_bias
    )
    q, k = (rope(q), rope(k)) if c.first else (partial_rope(q, c.d_rope), partial_rope(k, c.d_rope))
    return linear(attend(q, k, v), prefix + "dense", "output_projection", c.d_model, bias=c.bias)
