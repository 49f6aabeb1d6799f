"""Inkling 2: every sublayer attends to the outputs of earlier blocks of layers instead of adding to one stream.

It has gated attention with sinks that depend on the token, short convolutions, a learned bias by distance and experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from paramcount.architectures.inkling_text import KINDS, InklingBody, convolved, heads_of, mix_profiles
from paramcount.flow import Data, Weight, activate, attend, elementwise, linear, norm
from paramcount.parts.attentions import sigmoid_gate
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import correction
from paramcount.parts.stacked import stacked_experts
from paramcount.sizes import Indices, Positive, derived, hf, per_layer
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_layer_indices


def opening(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """The layers whose input becomes one of the blocks that later layers attend to."""
    n = check_no_types(js, "n_layers_per_attn_res_block", 6)
    return tuple(per_layer(c))[::n]


class Kind(NamedTuple):
    """Of a layer. Its input is mixed at the end of the layer before, where the file counts the weights for it."""

    word: str
    following: str | None  # the next layer's word
    first: bool
    opens_block: bool


class Inkling2Text(InklingBody):
    """Source: modeling_inkling2.py of the reference; attention over blocks arXiv:2603.15031. Names as the reference
    saves them.
    """

    reference: ClassVar[str] = "Inkling2ForCausalLM"
    base_model: ClassVar[str | None] = "Inkling2TextModel"
    linear_by_component: ClassVar[bool] = False
    float32: ClassVar[tuple[str, ...]] = (
        "e_score_correction_bias",
        "mlp.gate.weight",
        "post_attention_convolution",
        "post_mlp_convolution",
        "k_sconv.conv1d",
        "v_sconv.conv1d",
        "attention_input",
        "mlp_input",
        "final_input",
    )
    unused_keys: ClassVar[tuple[str, ...]] = ("log_scaling_n_floor", "unpadded_vocab_size")
    defaults: ClassVar[Mapping[str, Any]] = {
        "d_model": 4608, "n_layers": 48, "n_heads": 48, "n_sliding_heads": 48, "n_sliding_kv_heads": 8, "window": 1024,
    }  # fmt: skip

    opening_layers: Indices = derived(opening)
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", absent=384)
    n_active_experts: Positive = hf(absent=8)
    d_expert: Positive = hf("intermediate_size", "moe_intermediate_size", absent=2304)

    def forward(c, tokens: Data) -> Data:
        opening, following = set(c.opening_layers), (*c.layer_types[1:], None)
        kinds = [
            (Kind(word, after, i == 0, i in opening), 1)
            for i, (word, after) in enumerate(zip(c.layer_types, following))
        ]
        return decoder(
            c,
            tokens,
            layer,
            kinds,
            prefix="model.llm.",
            names=("embed", "layers", "norm"),
            head_name="model.llm.unembed",
            enter=lambda x: norm(x, "model.llm.embed_norm"),
            carry=(("blocks", c.d_model), ("inputs", c.d_model)),
        )

    def check(c) -> None:
        super().check()
        check_layer_indices(c, "opening_layers", "n_layers")


def layer(c: Any, kind: Kind, x: Data, blocks: Data, inputs: Data) -> tuple[Data, Data, Data]:
    """`blocks`: what earlier blocks came to.

    `inputs`: what this layer's attention reads, one vector a token, or one each for q, k and v.
    """
    slides = kind.word == KINDS[1]
    if slides:
        one = norm(x if kind.first else Data("the input", (inputs,), x.shape), "attn_norm")
        read = (one, one, one)
    else:
        q, k, v = (
            norm(x if kind.first else Data(f"the input of {name}", (inputs,), x.shape), f"{name}_input_norm")
            for name in "qkv"
        )
        read = (q, k, v)
    y = convolved(attention(c, *read, slides=slides), "attn_sconv", c.d_conv)
    if kind.opens_block:
        blocks = Data("append", (blocks, x), blocks.shape)
    else:
        y = x + y
    h = norm(over_blocks(y, blocks, "mlp_queries.{layer}", c.d_model), "mlp_norm")
    y = y + convolved(moe(c, h), "mlp_sconv", c.d_conv)
    if kind.following is None:
        return over_blocks(y, blocks, "output_query", c.d_model), blocks, inputs
    width = (c.d_model,) if kind.following == KINDS[1] else (3, c.d_model)
    return y, blocks, over_blocks(y, blocks, "attn_queries.{layer}", *width, shape=inputs.shape)


def over_blocks(x: Data, blocks: Data, name: str, *width: Any, shape: tuple[Any, ...] | None = None) -> Data:
    """A learned query attends to the blocks and to x, which are keys and values at once."""
    return Data(
        "attend to blocks", (x, blocks), shape or x.shape, (Weight("/model.llm.attn_res." + name, "other", width),)
    )


def attention(c: Any, x: Data, to_k: Data, to_v: Data, *, slides: bool) -> Data:
    heads = heads_of(c, slides=slides)

    def kept(source: Data, name: str) -> Data:
        y = linear(source, f"attn.w{name}_dv", f"qkv.{name}", heads.n_kv_heads * heads.d_head)
        sconv = f"attn.{name}_sconv"
        y = convolved(y, sconv, c.d_conv) if slides else convolved_by(c, y, source, sconv, heads.n_kv_heads)
        return Data("to heads", (y,), (x.shape[0], heads.n_kv_heads, heads.d_head))

    q = clipped(linear(x, "attn.wq_du", "qkv.q", (heads.n_heads, heads.d_head)), "attn.q_l2_clip")
    k, v = activate(kept(to_k, "k"), "clip"), activate(kept(to_v, "v"), "norm")
    of_heads = clipped(linear(x, "attn.wr_du", "qkv.relative", (heads.n_heads, c.d_relative)), "attn.rel_l2_clip")
    bias = mix_profiles(c, of_heads, "attn.", slides=slides)
    q = Data("beside a sink", (q, linear(x, "attn.attn_sink_proj", "other", heads.n_heads)), q.shape)
    a = attend(q, k, v, bias, by_distance=True, window=c.window if slides else None)
    a = sigmoid_gate("attn.gate_attn")(x, a)
    return linear(a, "attn.wo_ud", "output_projection", c.d_model)


def clipped(x: Data, name: str) -> Data:
    """A learned scale, then no head longer than a limit."""
    return activate(elementwise(x, "scale", name + ".scale", "norm", *x.shape[1:]), "clip")


def convolved_by(c: Any, x: Data, by: Data, name: str, n_heads: Any) -> Data:
    """As `convolved`, with weights that are learned for each channel plus others that each token gives to each head."""
    given = Data(
        "linear",
        (by,),
        (x.shape[0], n_heads, c.d_conv),
        (Weight(name + ".weight_proj", "mixer.convolution", (n_heads * c.d_conv, c.d_model)),),
    )
    learned = Weight(name + ".static_w", "mixer.convolution", (c.d_conv, x.shape[-1]))
    return x + Data("convolve", (x, given), x.shape, (learned,), states=((x.shape[-1], c.d_conv - 1),))


def moe(c: Any, x: Data) -> Data:
    scores = correction(c, "mlp.gate.bias")(linear(x, "mlp.gate", "router", c.n_routed_experts))
    return stacked_experts(c, x, scores, "mlp.experts.", ("w13_weight", "w2_weight"))
