"""dots3.note: its language model sees images through layers with more and more experts, and hears."""

from collections.abc import Sequence
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, count_noun, describe_value

KINDS = ("dense", "sparse")
PYRAMID = (*(-1 for _ in range(25)), *range(4, 65, 4), 64)
OF_EXPERTS = {"num_local_experts": "", "num_experts_per_tok": ""}
RENAMED = ("fc1", "fc3", "fc2")  # gate, up and down


def read_pyramid(js: sizes.ConfigJson, n_layers: int) -> Sequence[int] | None:
    """The number of experts of each layer, -1 if it has none; None if mlp_layer_types says which layers have some."""
    found = js.get("pyramid_num_routed")
    if found is None:
        return PYRAMID if js.get("mlp_layer_types") is None else None
    numbers: list[int] = found
    if sizes.PER_LAYER not in js and any(n > 0 for n in numbers[n_layers:]):
        problem = f"has {count_noun(len(numbers), 'entry')} for {count_noun(n_layers, 'layer')}"
        raise ParamcountError(problem, where="vision_config.pyramid_num_routed", expected="one entry per layer")
    return numbers


def mlp_words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    n = c["n_layers"]
    pyramid = read_pyramid(js, n)
    found = js["mlp_layer_types"] if pyramid is None else ["sparse" if n > 0 else "dense" for n in pyramid]
    return tuple(KINDS[found[i] == "sparse"] for i in sizes.per_layer(c))


def list_experts(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[tuple[int, int], ...]:
    """All experts and the active ones of each layer, none of a dense one."""
    n_active = js.get("num_experts_per_tok")
    n_active = js.get("capacity_factor", 2) if n_active is None else n_active
    pyramid, single = read_pyramid(js, c["n_layers"]), sizes.of_single_layers(js, c["n_layers"])
    found = []
    for i, word in enumerate(c["layer_types"]):
        own = single.get(i, sizes.NOTHING).sizes
        n, k = own.get("num_local_experts", js.get("num_local_experts", 64)), own.get("num_experts_per_tok", n_active)
        if pyramid is not None and sizes.PER_LAYER not in js:
            n, k = pyramid[i], min(n_active, pyramid[i])
        if word == "sparse" and not all(type(number) is int and number > 0 for number in (n, k)):
            problem = f"{describe_value(k)} of {describe_value(n)} experts"
            raise ParamcountError(f"has {problem}", where=f"vision_config, layer {i}", expected="positive integers")
        found.append((n, k) if word == "sparse" else (0, 0))
    return tuple(found)


def fits_adapter(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Sizes that the projector is said to have are those of the encoder."""
    for key, absent, expected in (("adapter_in_dim", 1536, c["d_model"]), ("adapter_merge_size", 2, c["merge_size"])):
        if (found := js.get(key, absent)) != expected:
            raise sizes.make_value_error(found, f"vision_config.{key}", f"{expected}")
    if c["mlp_bias"] and "sparse" in c["layer_types"]:
        raise ParamcountError("= true, but some layers have experts", where="vision_config.mlp_bias", expected="false")


class Dots3NoteVision(parts.PatchVision):
    """`experts_by_layer`, `active_by_layer`: of each layer, 0 of a dense one."""

    config_class = "Dots3NoteVisionConfig"

    conditions = (fits_adapter,)
    layered = dict.fromkeys(KINDS, OF_EXPERTS)

    d_model: sizes.Positive = sizes.hf("embed_dim", "hidden_size")
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf("num_heads", "num_attention_heads")
    d_ff: sizes.Natural = sizes.hf()
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")
    d_out: sizes.Positive = sizes.hf("adapter_out_dim")
    layer_types: sizes.Words = sizes.derived(mlp_words)
    experts_by_layer: sizes.Indices = sizes.derived(lambda js, c: tuple(n for n, _ in list_experts(js, c)))
    active_by_layer: sizes.Indices = sizes.derived(lambda js, c: tuple(n for _, n in list_experts(js, c)))
    d_expert: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf("use_bias", "attention_bias")
    mlp_bias: sizes.Flag = sizes.hf()

    norm_eps = sizes.setting("rms_norm_eps")
    rope = sizes.setting(default=sizes.axial_rope)
    routed_scale = sizes.setting("router_scaling_factor", "router_scale", default=1.0)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, square by square."""
        side, square = c.patch_size, c.merge_size
        x = parts.embed_patches(pixels, "patch_embed.proj", c.d_model, side, bias=True, square=square)
        places, kinds = ops.patch_places(pixels, side, side, square=square), zip(c.experts_by_layer, c.active_by_layer)
        x = ops.layers(
            c.norm(x, "patch_embed.norm"),
            "blocks.{layer}.",
            [(kind, 1) for kind in kinds],
            lambda kind, x, places: c.layer_of(kind, x, places),
            reads=(places,),
        )
        return c.norm(x, "post_trunk_norm")

    def layer_of(c, kind: tuple[int, int], x: Data, places: Data) -> Data:
        bias, h = c.attention_bias, c.norm(x, "norm_1")
        x = x + parts.encoder_attention(c, h, places, bias=bias, o_bias=bias, qk_norm=True)
        h = c.norm(x, "norm_2")
        if any(kind):
            return x + c.mixture(h, *kind)
        return x + parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, names=RENAMED, activation=c.activation, bias=c.mlp_bias)

    def mixture(c, x: Data, n: int, n_active: int) -> Data:
        (scores,) = ops.fused(x, "mlp.gate", {"router": n}, suffixes=("_weight", "_bias"))
        bias = ops.Weight("mlp.router_bias", "router", (n,), role="buffer")
        weights = ops.route(
            scores, n_active, "sigmoid", bias=bias, normalise=True, least_sum=1e-20, factor=c.routed_scale
        )

        def expert(x: Data) -> Data:
            return parts.gated_mlp(x, "", "experts", c.d_expert, names=RENAMED, activation=c.activation)

        return ops.experts(x, weights, "mlp.experts.{expert}.", n, n_active, expert)

    norm = parts.use_rms_norm

    def project(c, x: Data) -> Data:
        """Squares of patches to vectors of the language model's size."""
        merged = ops.merge_rows(ops.layer_norm(x, "ln_q", 1e-6), c.merge_size * c.merge_size)
        h = ops.activate(ops.linear(merged, "mlp.0", "projector", merged.shape[-1], bias=True), "gelu")
        return ops.linear(h, "mlp.2", "projector", c.d_out, bias=True)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_rotated_in_two_directions(c)
        for name in ("experts_by_layer", "active_by_layer"):
            if len(found := getattr(c, name)) != c.n_layers:
                problem = f"has {count_noun(len(found), 'entry')} for " + FieldName("n_layers") + f" = {c.n_layers}"
                raise ParamcountError(problem, where=FieldName(name), expected="one per layer")


def fits_encoder(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The size that the projector is said to read is the encoder's."""
    found = js.get("whisper_adapter_in_dim", js.get("adapter_input_size", 1280))
    if found != c["d_model"]:
        raise sizes.make_value_error(found, "audio_config.adapter_input_size", f"{c['d_model']}")


class Dots3NoteEars(parts.Qwen3Ears):
    """The convolutions of Qwen 3's audio encoders before layers like Llama's, which see all frames."""

    config_class = "Dots3NoteAudioConfig"

    unused_keys = ("conv_output_size", "head_dim", "num_key_value_heads")
    conditions = (fits_encoder,)

    d_model: sizes.Positive = sizes.hf("whisper_config.d_model", "hidden_size")
    n_layers: sizes.Natural = sizes.hf("whisper_config.encoder_layers", "num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf("whisper_config.encoder_attention_heads", "num_attention_heads")
    d_ff: sizes.Natural = sizes.hf("whisper_config.encoder_ffn_dim", "intermediate_size")
    n_mels: sizes.Positive = sizes.hf("whisper_config.num_mel_bins", "feature_size")
    d_out: sizes.Positive = sizes.hf("whisper_adapter_out_dim", "adapter_output_size", "adapter_out_dim")
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.5))
    attention_bias: sizes.Flag = sizes.hf()

    activation = sizes.setting("hidden_act")
    rope = sizes.rotary(share=0.5)

    def attend(c, x: Data) -> Data:
        x = ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.rotary_layer(x))
        return ops.rms_norm(x, "layer_norm", 1e-6)

    def rotary_layer(c, x: Data) -> Data:
        x = x + c.rotary_attention(ops.rms_norm(x, "self_attn_layer_norm", 1e-6))
        h = ops.rms_norm(x, "final_layer_norm", 1e-6)
        return x + parts.fused_gated_mlp(h, "", "mlp", c.d_ff, activation=c.activation, bias=True, names=("fc1", "fc2"))

    def rotary_attention(c, x: Data) -> Data:
        heads, bias = (c.n_heads, c.d_head), c.attention_bias
        q, k, v = (
            ops.linear(x, f"self_attn.{name}_proj", f"qkv.{name}", heads, bias=bias and name != "k") for name in "qkv"
        )
        q, k = (parts.partial_rope(y, c.d_rope, c.rope) for y in (q, k))
        return ops.linear(ops.attend(q, k, v), "self_attn.out_proj", "output_projection", c.d_model, bias=bias)

    def project(c, x: Data) -> Data:
        h = ops.linear(ops.layer_norm(x, "proj.0", 1e-5), "proj.1", "projector", c.d_out, bias=True)
        return ops.linear(ops.activate(h, "gelu"), "proj.3", "projector", c.d_out, bias=True)


class Dots3Note(parts.Multimodal):
    """Source: modeling_dots3_note.py of the reference. Names as in released files."""

    reference = "Dots3NoteForConditionalGeneration"
    sections = sizes.Sections(
        "dots3_note_text", ignores_model_type=True, is_flat=True, other_sections=("vision_config", "audio_config")
    )
    reference_names = {
        "audio_encoder.dots_encoder.speech_encoder.conv_out.": "model.audio_tower.conv_stem.conv_out.",
        "audio_encoder.dots_encoder.speech_encoder.": "model.audio_tower.",
        "audio_encoder.dots_encoder.": "model.audio_tower.",
        "audio_encoder.": "model.audio_tower.",
        "vision_encoder.adapter.": "model.vision_tower.merger.",
        "vision_encoder.": "model.vision_tower.",
        "model.": "model.language_model.",
    }
    base_model = "Dots3NoteModel"
    modules = {
        ".mlp.gate": (".mlp.gate",),
        ".mlp.fc1": (".mlp.gate_proj",),
        ".mlp.fc2": (".mlp.down_proj",),
        ".mlp.fc3": (".mlp.up_proj",),
        "speech_encoder.layers.{layer}.self_attn.out_proj": ("layers.{layer}.self_attn.o_proj",),
        "speech_encoder.layers.{layer}.fc1": ("layers.{layer}.mlp.gate_up_proj",),
        "speech_encoder.layers.{layer}.fc2": ("layers.{layer}.mlp.down_proj",),
        "audio_adapter.proj.1": ("adapter.fc1",),
        "audio_adapter.proj.3": ("adapter.fc2",),
    }
    encoder_prefix = "vision_encoder."
    projector_prefix = "vision_encoder.adapter."
    moved = None
    language_prefix = ""

    vision: Dots3NoteVision
    audio: Dots3NoteEars

    audio_token = sizes.setting("audio_token_id")

    def see_more(c) -> Sequence[tuple[Data, int | ops.Unknown]]:
        frames = ops.given("log-mel frames", "frames", c.audio.n_mels)
        sound = ops.block(frames, "audio_encoder.dots_encoder.speech_encoder.", c.audio.forward, part="audio")
        sound = ops.block(sound, "audio_encoder.audio_adapter.", c.audio.project, part="projector")
        return ((sound, c.audio_token),)

    def project(c, x: Data, *places: Data) -> Data:
        return c.vision.project(x)

    def check(c: Any) -> None:
        sizes.check_equal(c, "vision.d_out", "language.d_model")
        sizes.check_equal(c, "audio.d_out", "language.d_model")
