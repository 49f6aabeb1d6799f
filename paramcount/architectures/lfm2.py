"""LFM2: short gated convolutions with attention in some layers; with a mixture of experts in its larger version."""

from collections.abc import Callable
from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes

KINDS = ("conv", "full_attention", "attention")  # the last is the older word for the second
NAMES = ("w1", "w3", "w2")


def kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """full_attn_idxs names the layers of attention; without it all are."""
    indices = js.get("full_attn_idxs")
    if indices is not None and not (isinstance(indices, list) and all(type(i) is int for i in indices)):
        raise sizes.make_value_error(indices, "full_attn_idxs", "a list of layer indices")
    return tuple(KINDS[indices is None or i in indices] for i in sizes.per_layer(c))


def adjusted(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """MLP hidden size: two thirds of config.json's size times a factor, rounded up to a multiple.

    With block_auto_adjust_ff_dim = false it is config.json's size itself.
    """
    width = sizes.check_no_types(js, "block_ff_dim" if "block_ff_dim" in js else "intermediate_size", 12288)
    factor, multiple = js.get("block_ffn_dim_multiplier", 1.0), sizes.check_no_types(js, "block_multiple_of", 256)
    if js.get("block_auto_adjust_ff_dim", True):
        width = sizes.part_of(int(2 * width / 3), factor, "block_ffn_dim_multiplier")
        width = -(-width // multiple) * multiple
    return width


class Lfm2(parts.AttentionDecoder):
    """Source: Lfm2DecoderLayer of the reference."""

    reference = "Lfm2ForCausalLM"
    gguf = "lfm2"
    gguf_kv_heads_by_layer = True
    names = ("embed_tokens", "layers", "embedding_norm")
    o_name = "out_proj"
    choose: ClassVar[Callable[..., Data]]  # router logits to the weights of the experts, if there are any
    unused_keys = ("block_dim", "conv_dim", "conv_dim_out")
    conditions = (sizes.padding_in_table(0),)

    layer_types: sizes.Words = sizes.hf(absent=kinds, null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.if_no_attention, late=True)
    d_conv: sizes.Positive = sizes.hf("conv_L_cache")
    mixer_bias: sizes.Flag = sizes.hf("conv_bias")
    d_ff: sizes.Natural = sizes.derived(adjusted)
    tie_word_embeddings: sizes.Flag = sizes.hf("tie_embedding", "tie_word_embeddings")

    activation = "silu"
    norm_eps = sizes.setting("norm_eps")

    def kinds(c) -> parts.Kinds:
        return [((word, "dense"), 1) for word in c.layer_types]

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        h = c.norm(x, "operator_norm")
        if word == "conv":
            x = x + parts.short_convolution(h, "conv.", c.d_conv, bias=c.mixer_bias)
        else:
            x = x + c.self_attention(h)
        h = c.norm(x, "ffn_norm")
        if density == "moe":
            return x + parts.mixture(c, h, "feed_forward.", names=NAMES, choose=c.choose)
        return x + c.gated_mlp(h, "feed_forward.", names=NAMES)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        q, k = c.norm(q, "self_attn.q_layernorm"), c.norm(k, "self_attn.k_layernorm")
        return ops.rope(q, c.rope), ops.rope(k, c.rope)

    def unused_fields(c) -> tuple[str, ...]:
        return () if set(c.layer_types) - {"conv"} else ("n_kv_heads", "d_head")

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)


class Lfm2MoE(parts.RoutedExperts, Lfm2):
    """Source: Lfm2MoeDecoderLayer of the reference. There is no default for the kinds of layers."""

    reference = "Lfm2MoeForCausalLM"
    model_types = ("lfm2_moe",)
    gguf = "lfm2moe"

    layer_types: sizes.Words = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(
        lambda js, c: tuple(range(min(sizes.check_no_types(js, "num_dense_layers", 2), c["n_layers"])))
    )
    expert_bias: sizes.Flag = sizes.hf("use_expert_bias")

    norm_topk_prob = sizes.setting("norm_topk_prob")
    routed_scale = sizes.setting("routed_scaling_factor")
    kinds = parts.layers_by_type_and_mlp

    def choose(c, logits: Data) -> Data:
        bias = parts.routing_bias(c, "feed_forward.expert_bias") if c.expert_bias else None
        return ops.route(
            logits,
            c.n_active_experts,
            "sigmoid",
            bias=bias,
            normalise=c.norm_topk_prob,
            least_sum=1e-6,
            factor=c.routed_scale,
        )

    def unused_fields(c) -> tuple[str, ...]:
        attention = () if set(c.layer_types) - {"conv"} else ("n_kv_heads", "d_head")
        return (*attention, *(("n_active_experts",) if len(c.dense_layers) == len(c.layer_types) else ()))
