"""Inkling 2: every sublayer attends to the outputs of earlier blocks of layers instead of adding to one stream.

It has gated attention with sinks that depend on the token, short convolutions, a learned bias by distance and experts.
"""

from typing import Any, NamedTuple

from paramcount.architectures.inkling_text import KINDS, InklingBody, convolved, heads_of, mix_profiles
from paramcount.declare import Data, ops, parts, sizes


def opening(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers whose input becomes one of the blocks that later layers attend to."""
    n = sizes.check_no_types(js, "n_layers_per_attn_res_block", 6)
    return tuple(sizes.per_layer(c))[::n]


class InklingLayer(NamedTuple):
    """Of a layer. Its input is mixed at the end of the layer before, where the file counts the weights for it."""

    word: str
    following: str | None  # the next layer's word
    first: bool
    opens_block: bool


class Inkling2Text(InklingBody):
    """Source: modeling_inkling2.py of the reference; attention over blocks arXiv:2603.15031. Names as the reference
    saves them.
    """

    reference = "Inkling2ForCausalLM"
    reference_names = {
        "model.llm.lm_head.": "lm_head.",
        "model.llm.": "model.",
        ".attn.k_sconv.": ".self_attn.k_sconv.",
        ".attn.v_sconv.": ".self_attn.v_sconv.",
    }
    modules = {
        ".attn.wq_du": (".self_attn.q_proj",), ".attn.wk_dv": (".self_attn.k_proj",),
        ".attn.wv_dv": (".self_attn.v_proj",), ".attn.wr_du": (".self_attn.r_proj",),
        ".attn.wo_ud": (".self_attn.o_proj",), ".attn.gate_attn": (".self_attn.gate_proj",),
        ".attn.attn_sink_proj": (".self_attn.sink_proj",),
        ".experts.w13": (".experts.gate_up_proj",), ".experts.w2": (".experts.down_proj",),
        ".embed": (".embed_tokens",), ".unembed": (".lm_head",),
    }  # fmt: skip
    base_model = "Inkling2TextModel"
    linear_by_component = False
    linear_subclasses = (".weight_proj",)
    float32 = (
        "e_score_correction_bias",
        "mlp.gate.weight",
        "post_attention_convolution",
        "post_mlp_convolution",
        "k_sconv.conv1d",
        "v_sconv.conv1d",
        "attention_input",
        "mlp_input",
        "final_input",
        *("gate.bias", "attn_sconv", "mlp_sconv", "k_sconv.weight", "v_sconv.weight"),  # as saved
        *("attn_queries", "mlp_queries", "output_query"),
    )
    unused_keys = ("log_scaling_n_floor",)

    opening_layers: sizes.Indices = sizes.derived(opening)
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts")
    n_active_experts: sizes.Natural = sizes.hf()
    d_expert: sizes.Natural = sizes.hf("intermediate_size", "moe_intermediate_size")

    norm_eps = sizes.setting("rms_norm_eps")
    scoring = sizes.setting("scoring_func")
    route_scale = sizes.setting("routed_scaling_factor", "route_scale", kind=sizes.FACTOR)
    gate_cap = sizes.setting("mlp_gate_softcap")
    up_cap = sizes.setting("mlp_up_softcap")
    soft_cap = sizes.setting("final_logit_softcapping")
    unpadded_vocab_size = sizes.setting("unpadded_vocab_size")

    def forward(c, tokens: Data) -> Data:
        return c.decode(c.embed(tokens))

    def embed(c, tokens: Data) -> Data:
        x = ops.lookup(tokens, "model.llm.embed.weight", "embedding", c.vocab_size, c.d_model)
        return c.norm(x, "model.llm.embed_norm")

    def decode(c, x: Data) -> Data:
        """Embedded tokens to logits."""
        opening, following = set(c.opening_layers), (*c.layer_types[1:], None)
        kinds = [
            (InklingLayer(word, after, i == 0, i in opening), 1)
            for i, (word, after) in enumerate(zip(c.layer_types, following))
        ]
        carry = (("blocks", c.d_model), ("inputs", c.d_model))
        name = "model.llm.layers.{layer}."
        x = ops.layers(x, name, kinds, lambda kind, *values: layer(c, kind, *values), carry=carry)
        x = x if kinds else over_blocks(x, x, "output_query", c.d_model)  # else in the last layer
        logits = parts.head(c, c.norm(x, "model.llm.norm"), "model.llm.embed.weight", "model.llm.unembed")
        n = c.unpadded_vocab_size
        logits = ops.split(logits, n, c.vocab_size - n)[0] if isinstance(n, int) and n < c.vocab_size else logits
        return ops.soft_cap(logits, c.soft_cap)

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps)

    def choose(c, logits: Data) -> Data:
        bias = parts.routing_bias(c, "mlp.gate.bias")
        return ops.route(
            logits, c.n_active_experts, c.scoring, bias=bias, normalise=True, least_sum=1e-20, factor=c.route_scale
        )

    def expert(c, x: Data) -> Data:
        """A gated MLP whose gate and up are limited, but not inside of the sigmoid."""
        halves, names = {"experts.gate": c.d_expert, "experts.up": c.d_expert}, ("", "")
        gate, up = ops.fused(x, "w13_weight", halves, suffixes=names)  # [n, d_expert]
        y = ops.soft_cap(gate, c.gate_cap) * ops.activate(gate, "sigmoid") * ops.soft_cap(up, c.up_cap)
        return ops.fused(y, "w2_weight", {"experts.down": c.d_model}, suffixes=names)[0]  # [n, d_model]

    def check(c) -> None:
        super().check()
        sizes.check_layer_indices(c, "opening_layers", "n_layers")


def layer(c: Any, kind: InklingLayer, x: Data, blocks: Data, inputs: Data) -> tuple[Data, Data, Data]:
    """`blocks`: what earlier blocks came to.

    `inputs`: what this layer's attention reads, one vector a token, or one each for q, k and v.
    """
    slides = kind.word == KINDS[1]
    if slides:
        one = c.norm(x if kind.first else Data("residual sum", (inputs,), x.shape), "attn_norm")
        read = (one, one, one)
    else:
        q, k, v = (
            c.norm(x if kind.first else Data(f"residual sum for {name}", (inputs,), x.shape), f"{name}_input_norm")
            for name in "qkv"
        )
        read = (q, k, v)
    y = convolved(attention(c, *read, slides=slides), "attn_sconv", c.d_conv)
    if kind.opens_block:
        blocks = Data("append to block outputs", (blocks, x), blocks.shape)
    else:
        y = x + y
    h = c.norm(over_blocks(y, blocks, "mlp_queries.{layer}", c.d_model), "mlp_norm")
    y = y + convolved(moe(c, h), "mlp_sconv", c.d_conv)
    if kind.following is None:
        return over_blocks(y, blocks, "output_query", c.d_model), blocks, inputs
    width = (c.d_model,) if kind.following == KINDS[1] else (3, c.d_model)
    return y, blocks, over_blocks(y, blocks, "attn_queries.{layer}", *width, shape=inputs.shape)


def over_blocks(x: Data, blocks: Data, name: str, *width: Any, shape: tuple[Any, ...] | None = None) -> Data:
    """A learned query attends to the blocks and to x, which are keys and values at once."""
    return Data(
        "attention over block outputs",
        (x, blocks),
        shape or x.shape,
        (ops.Weight("/model.llm.attn_res." + name, "other", width),),
    )


def attention(c: Any, x: Data, to_k: Data, to_v: Data, *, slides: bool) -> Data:
    heads = heads_of(c, slides=slides)

    def kept(source: Data, name: str) -> Data:
        y = ops.linear(source, f"attn.w{name}_dv", f"qkv.{name}", heads.n_kv_heads * heads.d_head)
        sconv = f"attn.{name}_sconv"
        y = convolved(y, sconv, c.d_conv) if slides else convolved_by(c, y, source, sconv, heads.n_kv_heads)
        return ops.to_heads(y, heads.n_kv_heads, heads.d_head)

    q = clipped(ops.linear(x, "attn.wq_du", "qkv.q", (heads.n_heads, heads.d_head)), "attn.q_l2_clip")
    k, v = ops.activate(kept(to_k, "k"), "clip"), ops.plain_norm(kept(to_v, "v"), "rms", c.norm_eps)
    of_heads = clipped(ops.linear(x, "attn.wr_du", "qkv.relative", (heads.n_heads, c.d_relative)), "attn.rel_l2_clip")
    bias = mix_profiles(c, of_heads, "attn.", slides=slides)
    q = Data("attention sink", (q, ops.linear(x, "attn.attn_sink_proj", "other", heads.n_heads)), q.shape)
    mask = ops.see_earlier(c.window if slides else None)
    k, v = ops.cache(k, mask), ops.cache(v, mask)  # [m, n_kv_heads, d_head]
    a = ops.attend(q, k, v, ops.bias_by_distance(bias, k), mask=mask)  # [n, n_heads, d_head]
    a = parts.sigmoid_gate("attn.gate_attn")(x, a)
    return ops.linear(a, "attn.wo_ud", "output_projection", c.d_model)


def clipped(x: Data, name: str) -> Data:
    """A learned scale, then no head longer than a limit."""
    return ops.activate(ops.multiply_vector(x, name + ".scale", "norm", *x.shape[1:]), "clip")


def convolved_by(c: Any, x: Data, by: Data, name: str, n_heads: Any) -> Data:
    """As `convolved`, with weights that are learned for each channel plus others that each token gives to each head."""
    weight = ops.Weight(name + ".weight_proj", "mixer.convolution", (n_heads * c.d_conv, c.d_model))
    given = Data(ops.Linear(), (by,), (x.shape[0], n_heads, c.d_conv), (weight,))
    learned = ops.Weight(name + ".static_w", "mixer.convolution", (c.d_conv, x.shape[-1]))
    return x + Data(ops.Undescribed("convolve", ((x.shape[-1], c.d_conv - 1),)), (x, given), x.shape, (learned,))


def moe(c: Any, x: Data) -> Data:
    chosen = c.choose(ops.linear(x, "mlp.gate", "router", c.n_routed_experts))  # [n, experts], 0 if not chosen
    n, active = c.n_routed_experts, c.n_active_experts
    return ops.experts(x, chosen, "mlp.experts.", n, active, c.expert, stored="stacked")  # [n, d_model]
