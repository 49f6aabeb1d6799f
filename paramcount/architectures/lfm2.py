"""LFM2: short gated convolutions with attention in some layers; with a mixture of experts in its larger version."""

from collections.abc import Callable
from typing import ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, rope, route
from paramcount.parts.decoder import Decoder, Kinds
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import mixture, routing_bias
from paramcount.parts.state_space import short_convolution
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, d_model_per_head, derived, hf, per_layer, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import part_of
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.mixers import if_no_attention
from paramcount.sizes.rules import check_layer_types
from paramcount.sizes.types import Flag, Indices, Natural, Positive, Words

KINDS = ("conv", "full_attention", "attention")  # the last is the older word for the second
NAMES = ("w1", "w3", "w2")


def kinds(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """full_attn_idxs names the layers of attention; without it all are."""
    indices = js.get("full_attn_idxs")
    if indices is not None and not (isinstance(indices, list) and all(type(i) is int for i in indices)):
        raise ParamcountError(
            f"= {describe_value(indices)}", where="full_attn_idxs", expected="a list of layer indices"
        )
    return tuple(KINDS[indices is None or i in indices] for i in per_layer(c))


def adjusted(js: ConfigJson, c: FieldValues) -> int:
    """MLP hidden size: two thirds of config.json's size times a factor, rounded up to a multiple.

    With block_auto_adjust_ff_dim = false it is config.json's size itself.
    """
    width = check_no_types(js, "block_ff_dim" if "block_ff_dim" in js else "intermediate_size", 12288)
    factor, multiple = js.get("block_ffn_dim_multiplier", 1.0), check_no_types(js, "block_multiple_of", 256)
    if js.get("block_auto_adjust_ff_dim", True):
        width = part_of(int(2 * width / 3), factor, "block_ffn_dim_multiplier")
        width = -(-width // multiple) * multiple
    return width


class Lfm2(Decoder):
    """Source: Lfm2DecoderLayer of the reference."""

    reference = "Lfm2ForCausalLM"
    gguf = "lfm2"
    is_section_type = True
    names = ("embed_tokens", "layers", "embedding_norm")
    choose: ClassVar[Callable[..., Data]]  # router logits to the weights of the experts, if there are any
    unused_keys = ("block_dim", "conv_dim", "conv_dim_out")
    rotated = "d_head"
    conditions = (padding_in_table(0),)

    layer_types: Words = hf(absent=kinds, null=ABSENT)
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf(absent=d_model_per_head, null=if_no_attention)
    d_conv: Positive = hf("conv_L_cache")
    mixer_bias: Flag = hf("conv_bias")
    d_ff: Natural = derived(adjusted)
    tie_word_embeddings: Flag = hf("tie_embedding", "tie_word_embeddings")

    activation = "silu"
    norm_eps = setting("norm_eps", default=1e-5)
    rope = rotary(1_000_000, positions=128_000)

    def kinds(c) -> Kinds:
        return [((word, "dense"), 1) for word in c.layer_types]

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        h = c.norm(x, "operator_norm")
        if word == "conv":
            x = x + short_convolution(h, "conv.", c.d_conv, bias=c.mixer_bias)
        else:
            x = x + c.self_attention(h, o_name="out_proj", prepare=c.prepare)
        h = c.norm(x, "ffn_norm")
        if density == "moe":
            return x + mixture(c, h, "feed_forward.", names=NAMES, choose=c.choose)
        return x + c.gated_mlp(h, "feed_forward.", names=NAMES)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        q, k = c.norm(q, "self_attn.q_layernorm"), c.norm(k, "self_attn.k_layernorm")
        return rope(q, c.rope), rope(k, c.rope)

    def unused_fields(c) -> tuple[str, ...]:
        return () if set(c.layer_types) - {"conv"} else ("n_kv_heads", "d_head")

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)


class Lfm2MoE(Lfm2):
    """Source: Lfm2MoeDecoderLayer of the reference. There is no default for the kinds of layers."""

    reference = "Lfm2MoeForCausalLM"
    model_types = ("lfm2_moe",)
    gguf = "lfm2moe"
    is_section_type = True

    layer_types: Words = hf()
    d_ff: Natural = hf()
    dense_layers: Indices = derived(
        lambda js, c: tuple(range(min(check_no_types(js, "num_dense_layers", 2), c["n_layers"])))
    )
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf()
    expert_bias: Flag = hf("use_expert_bias")

    norm_topk_prob = setting("norm_topk_prob", default=True)
    routed_scale = setting("routed_scaling_factor", default=1.0)
    kinds = layers_by_type_and_mlp

    def choose(c, logits: Data) -> Data:
        bias = routing_bias(c, "feed_forward.expert_bias") if c.expert_bias else None
        rules = {"normalise": c.norm_topk_prob, "factor": c.routed_scale, "least_sum": 1e-6}
        return route(logits, c.n_active_experts, "sigmoid", bias=bias, **rules)

    def unused_fields(c) -> tuple[str, ...]:
        attention = () if set(c.layer_types) - {"conv"} else ("n_kv_heads", "d_head")
        return (*attention, *(("n_active_experts",) if len(c.dense_layers) == len(c.layer_types) else ()))
