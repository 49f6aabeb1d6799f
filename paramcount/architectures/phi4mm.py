"""Phi-4-multimodal as released: its decoder has LoRA adapters, some of which are added for images, others for speech.

The sizes of the vision encoder stand in the authors' code.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.phi3 import attention
from paramcount.architectures.phi4_multimodal import (
    Phi4Audio,
    Phi4Multimodal,
    Phi4Vision,
    audio,
    halvings,
    project_image,
)
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

# What the release says of itself; the code knows other ways, which it does not go.
RELEASED: Mapping[str, Any] = {
    "audio_processor.name": "cascades",
    "audio_processor.config.input_layer": "nemo_conv",
    "audio_processor.config.bias_in_glu": True,
    "audio_processor.config.batch_norm": False,
    "audio_processor.config.relative_attention_bias_args.type": "t5",
    "embd_layer.embedding_cls": "image_audio",
    "embd_layer.audio_embd_layer.projection_cls": "mlp",
    "embd_layer.audio_embd_layer.downsample_rate": 1,
    "embd_layer.image_embd_layer.projection_cls": "mlp",
    "embd_layer.image_embd_layer.use_hd_transform": True,
    "embd_layer.image_embd_layer.with_learnable_separator": True,
    "embd_layer.image_embd_layer.image_token_compression_cls": "avg_pool_2d",
}
# The adapted matrices: four in each layer, whichever way the pattern is written.
PATTERNS = (
    r"layers.*((self_attn\.(qkv_proj|o_proj))|(mlp\.(gate_up|down)_proj))",
    r"((layers.*self_attn\.(qkv|o)_proj)|(layers.*mlp\.(gate_up|down)_proj))",
)
LAYER_NAMES = tuple((f".{name}.weight", f".{name}.base_layer.weight") for name in (
    "qkv_proj", "o_proj", "gate_up_proj", "down_proj"
))  # fmt: skip
AUDIO_NAMES = (
    (".gate_up_proj.", ".net.0.linear."),
    (".down_proj.", ".net.2."),
    (".self_attn.o_proj.", ".self_attn.linear_out."),
    *((f".self_attn.{y}_proj.", f".self_attn.linear_{y}.") for y in "qkv"),
)
WAYS = ("speech", "vision")
PROJECTOR_NAMES = (
    ("global_img_feature_extensor", "glb_GN"),
    ("sub_img_feature_extensor", "sub_GN"),
    ("img_projection_up", "img_projection.0"),
    ("img_projection_down", "img_projection.2"),
)


def find_key(js: Mapping[str, Any], path: str) -> Any:
    for name in path.split("."):
        js = js.get(name) if isinstance(js, Mapping) else None  # type: ignore[assignment]
    return js


def as_released(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    expected = {**RELEASED, **{f"{name}_lora.layer": PATTERNS for name in ("vision", "speech")}}
    for path, value in expected.items():
        found = find_key(js, path)
        if found != value and not (value is PATTERNS and found in PATTERNS):
            state = "is missing" if found is None else f"= {describe_value(found)} is not supported"
            raise ParamcountError(
                state, where=path, expected=describe_value(PATTERNS[0] if value is PATTERNS else value)
            )


class Phi4MMVision(Phi4Vision):
    section = "siglip"  # which no config.json has: the defaults are the sizes of the code


def n_distances(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    given = js["relative_attention_bias_args"]
    n, symmetric = given.get("t5_bias_max_distance", 1000), given.get("t5_bias_symmetric", False)
    if type(n) is not int or n < 1 or type(symmetric) is not bool:
        found = n if type(symmetric) is bool else symmetric
        raise sizes.make_value_error(found, "audio_processor.config.relative_attention_bias_args", "positive numbers")
    return n if symmetric else 2 * n


def as_wide(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Widths that the code lets a config set, though the encoder runs only where they are equal."""
    for key in ("ext_pw_out_channel", "depthwise_separable_out_channel", "depthwise_seperable_out_channel"):
        if (found := js.get(key, c["d_model"])) != c["d_model"]:
            raise sizes.make_value_error(found, f"audio_processor.config.{key}", f"{c['d_model']}")
    if "time_reduction" not in js:
        raise ParamcountError("is missing", where="audio_processor.config.time_reduction", expected="an even number")
    halvings(js)


class Phi4MMAudio(Phi4Audio):
    section = "audio_processor.config"
    config_class = ""
    conditions = (as_wide,)
    unused_keys = ("ext_pw_kernel_size",)

    d_model: sizes.Positive = sizes.hf("attention_dim")
    n_layers: sizes.Natural = sizes.hf("num_blocks")
    n_heads: sizes.Positive = sizes.hf("attention_heads")
    d_ff: sizes.Natural = sizes.hf("linear_units")
    d_conv: sizes.Positive = sizes.hf("kernel_size")
    n_multiples: sizes.Positive = sizes.hf("depthwise_multiplier")
    n_bands: sizes.Positive = sizes.hf("input_size")
    n_channels: sizes.Positive = sizes.hf("nemo_conv_settings.conv_channels")
    n_distances: sizes.Positive = sizes.derived(n_distances)


class Phi4MM(Phi4Multimodal):
    """Source: arXiv:2503.01743, section 2; modeling_phi4mm.py of microsoft/Phi-4-multimodal-instruct."""

    reference = "Phi4MMForCausalLM of microsoft/Phi-4-multimodal-instruct"
    task_heads: ClassVar[Any] = {}
    gguf = ""
    base_model = "Phi4MMModel"
    conditions = (as_released, *Phi4Multimodal.conditions)  # type: ignore[assignment]
    defaults = {
        "vocab_size": 200064, "d_model": 3072, "d_ff": 8192, "tie_word_embeddings": False, "window": None,
        "norm_eps": 1e-5, "activation": "silu",
    }  # fmt: skip

    vision: Phi4MMVision
    audio: Phi4MMAudio
    vision_rank: sizes.Positive = sizes.hf("vision_lora.r")
    speech_rank: sizes.Positive = sizes.hf("speech_lora.r")

    def forward(c, tokens: Data) -> Data:
        prefix = "model.embed_tokens_extend."
        image = ops.block(c.vision.image(), prefix + "image_embed.img_processor.", c.vision.forward, part="vision")
        image = Data("hidden states", (image,), image.shape)
        image = ops.block(image, prefix + "image_embed.", lambda x: project_image(c, x), part="projector")
        image = ops.rename_weights(image, replaced=PROJECTOR_NAMES)
        frames, name = ops.given("mel bands", "frames", c.audio.n_bands), prefix + "audio_embed."
        sound = ops.block(frames, name + "encoder.", lambda x: audio(c.audio, x), part="audio")
        sound = ops.rename_weights(sound, replaced=AUDIO_NAMES)
        ways = [ops.block(sound, f"{name}audio_projection.{way}.", c.project_sound, part="projector") for way in WAYS]
        sound = Data("select projector", tuple(ways), ways[0].shape)
        x = ops.block(parts.insert(c.embed(tokens), image, sound), "", c.transform)
        return c.head(ops.rename_weights(x, replaced=LAYER_NAMES))

    def project_sound(c, x: Data) -> Data:
        x = ops.activate(ops.linear(x, "0", "projector", c.d_model, bias=True), "gelu")
        return ops.linear(x, "2", "projector", c.d_model, bias=True)

    def layer(c, x: Data) -> Data:
        """The adapters of one way, if any, are added to what the matrices return."""
        heads, kv = c.n_heads * c.d_head, 2 * c.n_kv_heads * c.d_head
        h = c.norm(x, "input_layernorm")
        x = x + c.adapt(
            attention(c, h), "self_attn.", {"qkv_proj": (c.d_model, heads + kv), "o_proj": (heads, c.d_model)}
        )
        h = parts.fused_gated_mlp(c.norm(x, "post_attention_layernorm"), "mlp.", "mlp", c.d_ff, activation=c.activation)
        return x + c.adapt(h, "mlp.", {"gate_up_proj": (c.d_model, 2 * c.d_ff), "down_proj": (c.d_ff, c.d_model)})

    def adapt(c, x: Data, prefix: str, matrices: Mapping[str, tuple[ops.Size, ops.Size]]) -> Data:
        """`matrices`: the sizes of what goes in and comes out by name."""
        weights = []
        for name, (d_in, d_out) in matrices.items():
            for way, rank in (("vision", c.vision_rank), ("speech", c.speech_rank)):
                for side, shape in (("A", (rank, d_in)), ("B", (d_out, rank))):
                    weights.append(ops.Weight(f"{prefix}{name}.lora_{side}.{way}.weight", "other", shape))
        return Data("adapters", (x,), x.shape, tuple(weights))
