"""Muse Spark: Muse Glimmer's attention under one more norm, experts in a latent, and learned gates between the residual
stream and what a layer adds; an encoder of convolutions reads the samples of a sound.
"""

from typing import Any

from paramcount.architectures.muse_glimmer import Muse, MuseGlimmerVision, unrotated
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, count_noun, describe_value

ROPE = {"rope_type": "default", "rope_theta": 500_000.0}


def ff_dims(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    return tuple(sizes.part_of(dim, js.get("mlp_ratio", 4.0), "mlp_ratio") for dim in c["dims"])


def one_per_stage(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n = js.get("num_hidden_layers", 4)
    for key, field in (("hidden_sizes", "dims"), ("patch_sizes", "factors"), ("depths", "depths")):
        if len(c[field]) != n:
            found, expected = f"has {count_noun(len(c[field]), 'entry')}", f"num_hidden_layers = {describe_value(n)}"
            raise ParamcountError(found, where=key, expected=expected)


class MuseSparkVision(MuseGlimmerVision):
    """Glimmer's, whose patches have the positions that they would have if the image lay on its side."""

    config_class = "MuseSparkVisionConfig"

    def places_in_grid(c, pixels: Data) -> Data:
        return ops.sideways_places(pixels, c.patch_size, c.patch_size)


class MuseSparkAudio(sizes.Sizes):
    """Stages that merge so many rows each (`factors`), with convolutions over earlier rows. It has no attention."""

    config_class = "MuseSparkAudioConfig"

    section = "audio_config"
    unused_keys = ("num_hidden_layers",)
    conditions = (one_per_stage,)

    factors: sizes.Widths = sizes.hf("patch_sizes")
    dims: sizes.Widths = sizes.hf("hidden_sizes")
    ff_dims: sizes.Indices = sizes.derived(ff_dims)
    depths: sizes.Indices = sizes.hf("depths")
    d_conv: sizes.Positive = sizes.hf("conv_kernel_size")
    d_out: sizes.Positive = sizes.hf("out_hidden_size")

    activation = sizes.setting("hidden_act")
    norm_eps = sizes.setting("rms_norm_eps")

    def forward(c, samples: Data) -> Data:
        """[samples, 1] to [samples / all factors, d_out]."""
        x = samples
        for i, depth in enumerate(c.depths):
            prefix = f"layers.{i}."
            merged = ops.merge_rows(x, c.factors[i])
            x = c.norm(
                ops.linear(merged, prefix + "patch_embedder.proj", "mixer", c.dims[i], bias=True),
                prefix + "patch_embedder.norm",
            )
            if depth:
                name, kinds = prefix + "conv_blocks.{layer}.", [("layer", depth)]
                x = ops.layers(x, name, kinds, lambda kind, x, d_ff=c.ff_dims[i]: c.layer(x, d_ff))
        return c.norm(ops.linear(c.norm(x, "norm"), "proj", "mixer", c.d_out, bias=True), "post_proj_norm")

    def layer(c, x: Data, d_ff: ops.Size) -> Data:
        h = ops.convolve_earlier_frames(x, "conv", c.d_conv, bias=True)
        names = ("mlp.fc1", "mlp.fc2")
        return x + parts.plain_mlp(c.norm(h, "norm"), names, "mlp", d_ff, activation=c.activation, bias=True)

    norm = parts.use_rms_norm


class MuseSpark(Muse):
    """Source: modeling_muse_spark.py of the reference."""

    reference = "MuseSparkForConditionalGeneration"
    tie_word_embeddings = sizes.constant(False)
    float32 = (
        "post_attention_residual_gate", "post_feedforward_residual_gate", "mlp.gate.weight", "e_score_correction_bias",
    )  # fmt: skip
    defaults = {"d_head": 64}  # fmt: skip

    unrotated_layers: sizes.Indices = sizes.derived(unrotated(ROPE))
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: ()))
    d_expert: sizes.Natural = sizes.hf()
    d_expert_latent: sizes.Positive = sizes.hf("moe_hidden_size")
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts")
    n_active_experts: sizes.Natural = sizes.hf()
    vision: MuseSparkVision
    audio: MuseSparkAudio

    audio_token = sizes.setting("/audio_token_id", default=200038)
    routed_scale = sizes.setting("routed_scaling_factor")
    gate_temperature = sizes.setting("residual_gate_temperature")
    rope = sizes.rotary(positions=1_048_576, absent=ROPE)

    def forward(c, tokens: Data) -> Data:
        x = ops.insert(c.embed(tokens), tokens, c.see(), c.image_token)
        return c.decode(ops.insert(x, tokens, c.hear(), c.audio_token))

    def hear(c) -> Data:
        """Samples of a sound to vectors of the language model's size."""
        sound = ops.block(ops.given("samples", "samples", 1), "model.audio_tower.", c.audio.forward, part="audio")
        return ops.plain_norm(sound, "rms", c.norm_eps)

    def placeholders(c) -> tuple[int | ops.Unknown, ...]:
        return *super().placeholders(), c.audio_token

    def kinds(c) -> parts.Kinds:
        unrotated, dense = set(c.unrotated_layers), set(c.dense_layers)
        return [
            ((word, i not in unrotated, "dense" if i in dense else "moe"), 1) for i, word in enumerate(c.layer_types)
        ]

    def layer(c, x: Data, kind: tuple[str, bool, str]) -> Data:
        word, rotated, mlp = kind
        a = c.attend(c.centred(x, "input_layernorm", c.norm_eps), word, rotated=rotated, gate=c.gate)
        x = c.add(x, ops.plain_norm(a, "rms", c.post_norm_eps), "post_attention_residual_gate.gate")
        h = c.centred(x, "pre_feedforward_layernorm", c.norm_eps)
        h = c.moe(h) if mlp == "moe" else c.gated_mlp(h)
        h = ops.norm_of_scaled(h, "post_feedforward_layernorm", c.post_norm_eps)
        return c.add(x, h, "post_feedforward_residual_gate.gate")

    def gate(c, x: Data, a: Data) -> Data:
        """A norm of every head, then one factor for each value."""
        return parts.sigmoid_gate("self_attn.gate_proj")(x, ops.plain_norm(a, "rms", c.norm_eps))

    def add(c, x: Data, y: Data, name: str) -> Data:
        stored = f"{c.prefix}{c.names[1]}.{{layer}}.{name}"
        return ops.add_by_gate(x, y, name, stored, c.gate_temperature, least=1e-3)

    def moe(c, x: Data) -> Data:
        """Experts that read and write a latent, whose outputs share a norm."""
        n, active = c.n_routed_experts, c.n_active_experts
        logits = ops.scale_by(ops.linear(x, "mlp.gate", "router", n), c.logit_scale, "times output_multiplier")
        bias = parts.routing_bias(c, "mlp.gate.e_score_correction_bias")
        scores = ops.route(logits, active, "sigmoid", bias=bias, normalise=True, least_sum=1e-15, factor=c.routed_scale)
        h = ops.linear(x, "mlp.pre_expert_proj", "other", c.d_expert_latent)
        h = c.centred(h, "mlp.pre_expert_norm", c.norm_eps)
        y = ops.experts(h, scores, "mlp.experts.", n, active, c.expert, stored="stacked")  # [n, d_latent]
        return ops.linear(y, "mlp.post_expert_proj", "other", c.d_model)

    def expert(c, x: Data) -> Data:
        y = parts.packed_mlp(x, "experts", c.d_expert, activation=c.activation)
        return ops.share(ops.norm_of_scaled(y, "post_expert_norm", c.post_norm_eps))

    def check(c: Any) -> None:
        super().check()
        sizes.check_active_experts(c, "n_active_experts", "n_routed_experts")
        sizes.check_equal(c, "audio.d_out", "d_model")
