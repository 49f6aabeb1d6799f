"""ChatGLM2, ChatGLM3 and GLM-4-9B: one matrix for q, k and v of few key heads, half of each head rotated, gate and up in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data, attend, fused, linear, norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import fused_gated_mlp
from paramcount.sizes import Condition, Flag, Positive, Sizes, derived, flag, hf


def kv_heads(js: Mapping[str, Any], c: Mapping[str, Any]) -> Any:
    return js.get("multi_query_group_num", 1) if flag(js, "multi_query_attention", False) else c["n_heads"]


def not_another_glm(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Other modelling code under the same model type, or weights beside the model's: the first ChatGLM, GLM-4V, a trained prefix."""
    for key in ("inner_hidden_size", "position_encoding_2d", "vision_config"):
        if key in js:
            raise ParamcountError("belongs to another model of this type", where=key, accepted="ChatGLM2, ChatGLM3 or GLM-4-9B")
    if js.get("pre_seq_len") is not None:
        raise ParamcountError("asks for a trained prefix, which is not supported", where="pre_seq_len", accepted="null")


class ChatGLM(Sizes):
    """Source: modeling_chatglm.py of THUDM/chatglm2-6b, THUDM/chatglm3-6b and THUDM/glm-4-9b-chat; arXiv:2406.12793, section 2.
    `ChatGLMModel` holds the head too."""

    reference: ClassVar[str] = "ChatGLMForConditionalGeneration of THUDM/chatglm2-6b"
    same: ClassVar[tuple[str, ...]] = ("ChatGLMModel",)
    conditions: ClassVar[tuple[Condition, ...]] = (not_another_glm,)

    vocab_size: Positive = hf("padded_vocab_size", absent=65024)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf("num_layers", absent=28)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = derived(kv_heads)
    d_head: Positive = hf("kv_channels", absent=128)
    d_rope: Positive = derived(lambda js, c: c["d_head"] // 2)
    d_ff: Positive = hf("ffn_hidden_size", absent=13696)
    bias: Flag = hf("add_bias_linear", absent=False)
    qkv_bias: Flag = derived(lambda js, c: c["bias"] or flag(js, "add_qkv_bias", False))
    norm_bias: Flag = derived(lambda js, c: not flag(js, "rmsnorm", True))
    last_norm: Flag = hf("post_layer_norm", absent=True)
    norm_in_residual: Flag = hf("apply_residual_connection_post_layernorm", absent=False)
    tie_word_embeddings: Flag = derived(lambda js, c: False)  # the head is a matrix of its own whatever the config says

    def forward(c, tokens: Data) -> Data:
        leave = None if c.last_norm else lambda x: x
        names = ("embedding.word_embeddings", "encoder.layers", "encoder.final_layernorm")
        return decoder(c, tokens, layer, prefix="transformer.", names=names, head_name="transformer.output_layer", norm_bias=c.norm_bias, leave=leave)

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        return (("transformer.rotary_pos_emb.inv_freq", (c.d_rope // 2,), 1),)

    def check(c) -> None:
        if c.d_head % 4:
            raise ParamcountError(f"= {c.d_head} cannot be halved and rotated in pairs", where="d_head", accepted="a multiple of 4")


def layer(c: Any, kind: str, x: Data) -> Data:
    h = norm(x, "input_layernorm", bias=c.norm_bias)
    x = (h if c.norm_in_residual else x) + attention(c, h)
    h = norm(x, "post_attention_layernorm", bias=c.norm_bias)
    return (h if c.norm_in_residual else x) + fused_gated_mlp(h, "mlp.", "mlp", c.d_ff, bias=c.bias, names=("dense_h_to_4h", "dense_4h_to_h"))


def attention(c: Any, x: Data) -> Data:
    few = (c.n_kv_heads, c.d_head)
    q, k, v = fused(x, "self_attention.query_key_value", {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}, bias=c.qkv_bias)
    a = attend(partial_rope(q, c.d_rope), partial_rope(k, c.d_rope), v)
    return linear(a, "self_attention.dense", "output_projection", c.d_model, bias=c.bias)
