"""Gemma 4 with its vision and audio encoders, either of which a model may lack.

Vision has positions in two dimensions; audio has convolutions between attention and MLPs. Gemma 4 12B has neither
encoder: pixels and sound go through one matrix each.
"""

from typing import Any

from paramcount.architectures.gemma4_text import Gemma4Text, Gemma4UnifiedText
from paramcount.declare import Data, ops, parts, sizes


class Gemma4Vision(parts.VisionEncoder):
    """Patches with a place across and a place down, which rotate their own halves of every head. Squares of patches
    become their mean.
    """

    config_class = "Gemma4VisionConfig"

    unused_keys = ("pooling_kernel_size",)

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_places: sizes.Positive = sizes.hf("position_embedding_size")
    clipped: sizes.Flag = sizes.hf("use_clipped_linears")
    standardised: sizes.Flag = sizes.hf("standardize")

    activation = sizes.setting("hidden_activation")
    norm_eps = sizes.setting("rms_norm_eps")
    rope = sizes.setting(default=lambda js, c: ops.Rope((js.get("rope_parameters") or {}).get("rope_theta", 100.0)))
    n_merged = sizes.setting(default=lambda js, c: js.get("pooling_kernel_size", 3) ** 2)

    def forward(c, pixels: Data) -> Data:
        """One image, whose values are from 0 to 1, to vectors of its squares."""
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        x = ops.scale_by(ops.cut(pixels, c.patch_size, c.patch_size, axes="hwc"), 2.0, "from -1 to 1", shift=-1.0)
        x = ops.linear(x, "patch_embedder.input_proj", "embedding", c.d_model)
        x = x + ops.place_tables(places, "patch_embedder.position_embedding_table", c.n_places, c.d_model)
        x = ops.mean_of_squares(c.encode(x, places), c.n_merged, places)
        x = ops.scale_by_root(x, c.d_model)
        if c.standardised:
            x = ops.add_vector(x, "std_bias", "other", c.d_model, role="buffer", is_negative=True)
            x = ops.multiply_vector(x, "std_scale", "other", c.d_model, role="buffer")
        return x

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + c.norm(c.attend(c.norm(x, "input_layernorm"), *reads), "post_attention_layernorm")
        return x + c.norm(c.feed_forward(c.norm(x, "pre_feedforward_layernorm")), "post_feedforward_layernorm")

    def attend(c, x: Data, places: Data) -> Data:
        q = parts.clipped_linear(x, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head), clipped=c.clipped)
        k = parts.clipped_linear(x, "self_attn.k_proj", "qkv.k", (c.n_kv_heads, c.d_head), clipped=c.clipped)
        v = parts.clipped_linear(x, "self_attn.v_proj", "qkv.v", (c.n_kv_heads, c.d_head), clipped=c.clipped)
        q = ops.rope_apart(c.norm(q, "self_attn.q_norm"), places, c.rope)
        k = ops.rope_apart(c.norm(k, "self_attn.k_norm"), places, c.rope)
        a = ops.attend(q, k, ops.plain_norm(v, "rms", c.norm_eps), scale=1.0)  # [n, n_heads, d_head]
        return parts.clipped_linear(a, "self_attn.o_proj", "output_projection", c.d_model, clipped=c.clipped)

    def feed_forward(c, x: Data) -> Data:
        gate = ops.activate(
            parts.clipped_linear(x, "mlp.gate_proj", "mlp.gate", c.d_ff, clipped=c.clipped), c.activation
        )
        up = parts.clipped_linear(x, "mlp.up_proj", "mlp.up", c.d_ff, clipped=c.clipped)
        return parts.clipped_linear(gate * up, "mlp.down_proj", "mlp.down", c.d_model, clipped=c.clipped)

    norm = parts.use_rms_norm

    def check(c) -> None:
        sizes.check_rotated_in_two_directions(c)


class Gemma4(Gemma4Text):
    """Source: modeling_gemma4.py of the reference."""

    reference = "Gemma4ForConditionalGeneration"
    gguf = "gemma4"
    base_model = "Gemma4Model"
    prefix = "model.language_model."
    section = "text_config"

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=True)
    vision: Gemma4Vision | None
    audio: parts.Gemma4Audio | None

    image_token = sizes.setting("/image_token_id", default=258880)
    audio_token = sizes.setting("/audio_token_id", default=258881)
    video_token = sizes.setting("/video_token_id", default=258884)

    def forward(c, tokens: Data) -> Data:
        others = []
        if c.vision:
            image = ops.block(c.vision.image(), "model.vision_tower.", c.vision.forward, part="vision")
            eps = c.vision.norm_eps
            image = ops.block(image, "model.embed_vision.", lambda x: project(x, c.d_model, eps), part="projector")
            others.append((image, c.image_token))
        if c.audio:
            sound = ops.rename_weights(
                ops.block(c.audio.sound(), "model.audio_tower.", c.audio.forward, part="audio"),
                replaced=parts.usm.NAMES,
            )
            eps_of_audio = c.audio.norm_eps
            sound = ops.block(
                sound, "model.embed_audio.", lambda x: project(x, c.d_model, eps_of_audio), part="projector"
            )
            others.append((sound, c.audio_token))
        return c.read(tokens, *others)

    def placeholders(c) -> tuple[int | ops.Unknown, ...]:
        return c.image_token, c.audio_token, c.video_token


def project(x: Data, d_model: ops.Size, eps: float | ops.Unknown) -> Data:
    return ops.linear(ops.plain_norm(x, "rms", eps), "embedding_projection", "projector", d_model)


def whole_patches(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    size = c["patch_size"] * c["n_pooled"]
    if (found := js.get("model_patch_size", size)) != size:
        raise sizes.make_value_error(found, "model_patch_size", f"{size}")


class Gemma4Patches(sizes.Tower):
    """How the 12B reads pixels: norms around one matrix, and a learned vector for each column and each row."""

    config_class = "Gemma4UnifiedVisionConfig"

    conditions = (whole_patches,)

    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_pooled: sizes.Positive = sizes.hf("pooling_kernel_size")  # patches read together, across as well as down
    d_model: sizes.Positive = sizes.hf("mm_embed_dim")
    n_places: sizes.Positive = sizes.hf("mm_posemb_size")
    d_out: sizes.Positive = sizes.hf("output_proj_dims")

    norm_eps = sizes.setting("rms_norm_eps")

    def image(c) -> Data:
        """The input: one image, whose values are from 0 to 1."""
        return ops.given("pixels", 3, "height", "width")

    def forward(c, pixels: Data) -> Data:
        side = c.patch_size * c.n_pooled
        x = ops.reshape(ops.cut(pixels, side, side, axes="hwc"), 3 * side * side)
        x = ops.linear(ops.layer_norm(x, "patch_ln1", 1e-5), "patch_dense", "embedding", c.d_model, bias=True)
        places = ops.place_tables(
            ops.patch_places(pixels, side, side), "pos_embedding", c.n_places, c.d_model, in_turns=True
        )
        return ops.layer_norm(ops.layer_norm(x, "patch_ln2", 1e-5) + places, "pos_norm", 1e-5)

    def check(c) -> None:
        sizes.check_equal(c, "d_out", "d_model")


def samples(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    """One number under four names, of which the reference takes the last that stands in the file."""
    found = js.get("audio_embed_dim", 640)
    for key in js:
        if key in ("hidden_size", "output_proj_dims", "audio_samples_per_token"):
            found = js[key]
    return found


class Gemma4Samples(sizes.Sizes):
    """How the 12B reads sound: so many samples at once."""

    config_class = "Gemma4UnifiedAudioConfig"

    section = "audio_config"
    conditions = (sizes.not_null("hidden_size", "output_proj_dims", "audio_samples_per_token"),)

    n_samples: sizes.Positive = sizes.derived(samples)

    norm_eps = sizes.setting("rms_norm_eps")


class Gemma4Unified(Gemma4UnifiedText):
    """Source: modeling_gemma4_unified.py of the reference."""

    reference = "Gemma4UnifiedForConditionalGeneration"
    model_types = ("gemma4_unified",)
    gguf = "gemma4"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    base_model = "Gemma4UnifiedModel"
    prefix = "model.language_model."
    section = "text_config"

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=True)
    vision: Gemma4Patches | None
    audio: Gemma4Samples | None

    image_token = sizes.setting("/image_token_id", default=258880)
    audio_token = sizes.setting("/audio_token_id", default=258881)

    def forward(c, tokens: Data) -> Data:
        others = []
        if c.vision:
            eps = c.vision.norm_eps
            image = ops.block(c.vision.image(), "model.vision_embedder.", c.vision.forward, part="vision")
            image = ops.block(image, "model.embed_vision.", lambda x: project(x, c.d_model, eps), part="projector")
            others.append((image, c.image_token))
        if c.audio:
            eps_of_audio = c.audio.norm_eps
            sound = ops.given("samples", "frames", c.audio.n_samples)
            sound = ops.block(
                sound, "model.embed_audio.", lambda x: project(x, c.d_model, eps_of_audio), part="projector"
            )
            others.append((sound, c.audio_token))
        return c.read(tokens, *others)
