"""Muse Spark: Muse Glimmer's attention under one more norm, experts in a latent, and learned gates between the residual
stream and what a layer adds; an encoder of convolutions reads the samples of a sound.
"""

from typing import Any

from paramcount.architectures.muse_glimmer import Muse, MuseGlimmerVision, unrotated
from paramcount.errors import ParamcountError, count_noun, describe_value
from paramcount.flow import (
    Data,
    Size,
    Unknown,
    add_by_gate,
    block,
    convolve_frames,
    experts,
    given,
    insert,
    layers,
    linear,
    merge_rows,
    norm_of_scaled,
    patch_places,
    plain_norm,
    rms_norm,
    route,
    scale_by,
    share,
)
from paramcount.parts.attentions import sigmoid_gate
from paramcount.parts.decoder import Kinds
from paramcount.parts.feed_forward import plain_mlp, routing_bias
from paramcount.parts.stacked import packed_mlp
from paramcount.sizes import (
    ConfigJson,
    FieldValues,
    Indices,
    Natural,
    Positive,
    Sizes,
    Widths,
    derived,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.derivations import part_of
from paramcount.sizes.layer_types import dense_by_type
from paramcount.sizes.rules import check_active_experts, check_equal

ROPE = {"rope_type": "default", "rope_theta": 500_000.0}


def ff_dims(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    return tuple(part_of(dim, js.get("mlp_ratio", 4.0), "mlp_ratio") for dim in c["dims"])


def one_per_stage(js: ConfigJson, c: FieldValues) -> None:
    n = js.get("num_hidden_layers", 4)
    for key, field in (("hidden_sizes", "dims"), ("patch_sizes", "factors"), ("depths", "depths")):
        if len(c[field]) != n:
            found, expected = f"has {count_noun(len(c[field]), 'entry')}", f"num_hidden_layers = {describe_value(n)}"
            raise ParamcountError(found, where=key, expected=expected)


class MuseSparkVision(MuseGlimmerVision):
    """Glimmer's, whose patches have the positions that they would have if the image lay on its side."""

    config_class = "MuseSparkVisionConfig"

    def places_in_grid(c, pixels: Data) -> Data:
        return patch_places(pixels, c.patch_size, c.patch_size, on_its_side=True)


class MuseSparkAudio(Sizes):
    """Stages that merge so many rows each (`factors`), with convolutions over earlier rows. It has no attention."""

    config_class = "MuseSparkAudioConfig"

    section = "audio_config"
    unused_keys = ("num_hidden_layers",)
    conditions = (one_per_stage,)

    factors: Widths = hf("patch_sizes")
    dims: Widths = hf("hidden_sizes")
    ff_dims: Indices = derived(ff_dims)
    depths: Indices = hf("depths")
    d_conv: Positive = hf("conv_kernel_size")
    d_out: Positive = hf("out_hidden_size")

    activation = setting("hidden_act", default="gelu")
    norm_eps = setting("rms_norm_eps", default=1e-6)

    def forward(c, samples: Data) -> Data:
        """[samples, 1] to [samples / all factors, d_out]."""
        x = samples
        for i, depth in enumerate(c.depths):
            prefix = f"layers.{i}."
            merged = merge_rows(x, c.factors[i])
            x = c.norm(
                linear(merged, prefix + "patch_embedder.proj", "mixer", c.dims[i], bias=True),
                prefix + "patch_embedder.norm",
            )
            if depth:
                name, kinds = prefix + "conv_blocks.{layer}.", [("layer", depth)]
                x = layers(x, name, kinds, lambda kind, x, d_ff=c.ff_dims[i]: c.layer(x, d_ff))
        return c.norm(linear(c.norm(x, "norm"), "proj", "mixer", c.d_out, bias=True), "post_proj_norm")

    def layer(c, x: Data, d_ff: Size) -> Data:
        h = convolve_frames(x, "conv", x.shape[-1], c.d_conv, zeros="before", group=1)
        names = ("mlp.fc1", "mlp.fc2")
        return x + plain_mlp(c.norm(h, "norm"), names, "mlp", d_ff, activation=c.activation, bias=True)

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps)


class MuseSpark(Muse):
    """Source: modeling_muse_spark.py of the reference."""

    reference = "MuseSparkForConditionalGeneration"
    float32 = (
        "post_attention_residual_gate", "post_feedforward_residual_gate", "mlp.gate.weight", "e_score_correction_bias",
    )  # fmt: skip
    defaults = {"d_head": 64}  # fmt: skip

    unrotated_layers: Indices = derived(unrotated(ROPE))
    dense_layers: Indices = derived(dense_by_type(lambda js, c: ()))
    d_expert: Natural = hf()
    d_expert_latent: Positive = hf("moe_hidden_size")
    n_routed_experts: Positive = hf("num_local_experts")
    n_active_experts: Natural = hf()
    vision: MuseSparkVision
    audio: MuseSparkAudio

    audio_token = setting("/audio_token_id", default=200038)
    qk_scale = setting("qk_scale_factor", default=5.4730064863875)
    logit_scale = setting("output_multiplier", default=0.1767766952966369)
    routed_scale = setting("routed_scaling_factor", default=1.0)
    gate_temperature = setting("residual_gate_temperature", default=0.3)
    rope = rotary(positions=1_048_576, absent=ROPE)

    def forward(c, tokens: Data) -> Data:
        x = insert(c.embed(tokens), tokens, c.see(), c.image_token)
        return c.decode(insert(x, tokens, c.hear(), c.audio_token))

    def hear(c) -> Data:
        """Samples of a sound to vectors of the language model's size."""
        sound = block(given("samples", "samples", 1), "model.audio_tower.", c.audio.forward, part="audio")
        return plain_norm(sound, "rms", c.norm_eps)

    def placeholders(c) -> tuple[int | Unknown, ...]:
        return *super().placeholders(), c.audio_token

    def kinds(c) -> Kinds:
        unrotated, dense = set(c.unrotated_layers), set(c.dense_layers)
        return [
            ((word, i not in unrotated, "dense" if i in dense else "moe"), 1) for i, word in enumerate(c.layer_types)
        ]

    def layer(c, x: Data, kind: tuple[str, bool, str]) -> Data:
        word, rotated, mlp = kind
        a = c.attend(c.centred(x, "input_layernorm", c.norm_eps), word, rotated=rotated, gate=c.gate)
        x = c.add(x, plain_norm(a, "rms", c.post_norm_eps), "post_attention_residual_gate.gate")
        h = c.centred(x, "pre_feedforward_layernorm", c.norm_eps)
        h = c.moe(h) if mlp == "moe" else c.gated_mlp(h)
        h = norm_of_scaled(h, "post_feedforward_layernorm", c.post_norm_eps)
        return c.add(x, h, "post_feedforward_residual_gate.gate")

    def gate(c, x: Data, a: Data) -> Data:
        """A norm of every head, then one factor for each value."""
        return sigmoid_gate("self_attn.gate_proj")(x, plain_norm(a, "rms", c.norm_eps))

    def add(c, x: Data, y: Data, name: str) -> Data:
        stored = f"{c.prefix}{c.names[1]}.{{layer}}.{name}"
        return add_by_gate(x, y, name, stored, c.gate_temperature, least=1e-3)

    def moe(c, x: Data) -> Data:
        """Experts that read and write a latent, whose outputs share a norm."""
        n, active = c.n_routed_experts, c.n_active_experts
        logits = scale_by(linear(x, "mlp.gate", "router", n), c.logit_scale, "times output_multiplier")
        bias = routing_bias(c, "mlp.gate.e_score_correction_bias")
        rules = {"normalise": True, "factor": c.routed_scale, "least_sum": 1e-15}
        scores = route(logits, active, "sigmoid", bias=bias, **rules)
        h = linear(x, "mlp.pre_expert_proj", "other", c.d_expert_latent)
        h = c.centred(h, "mlp.pre_expert_norm", c.norm_eps)
        y = experts(h, scores, "mlp.experts.", n, active, c.expert, stored="stacked")
        return linear(y, "mlp.post_expert_proj", "other", c.d_model)

    def expert(c, x: Data) -> Data:
        y = packed_mlp(x, "experts", c.d_expert, activation=c.activation)
        return share(norm_of_scaled(y, "post_expert_norm", c.post_norm_eps))

    def check(c: Any) -> None:
        super().check()
        check_active_experts(c, "n_active_experts", "n_routed_experts")
        check_equal(c, "audio.d_out", "d_model")
