"""HunyuanVL and HunyuanOCR: Hunyuan's dense layers, whose heads rotate by column, row and image, before images of any
size, of which each row ends in a learned vector.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.hunyuan_v1_dense import HunYuanDenseV1, rope_with_alpha
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

QKVO = ("q_proj", "k_proj", "v_proj", "o_proj")


def find_rope(js: Mapping[str, Any]) -> Mapping[str, Any]:
    return js.get("rope_scaling") or js.get("rope_parameters") or {}


def sections_of(js: Mapping[str, Any]) -> Any:
    """The pairs of each position; released files call them xdrope_section."""
    rope = find_rope(js)
    return rope.get("mrope_section", rope.get("xdrope_section"))


def count_axes(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The positions of a token, as many as mrope_section has numbers of pairs, which fill a head."""
    found, half = sections_of(js), c["d_head"] // 2
    is_list = isinstance(found, (list, tuple)) and all(type(n) in (int, float) and n == int(n) >= 0 for n in found)
    if not is_list or sum(map(int, found)) != half or c["d_head"] % 2:
        raise ParamcountError(
            "is missing" if found is None else f"= {describe_value(found)}",
            where="rope_parameters.mrope_section",
            expected=f"numbers of pairs that sum to {half}",
        )
    rope = find_rope(js)
    if rope.get("xdrope_section") is not None and list(map(float, rope["xdrope_section"])) != list(map(float, found)):
        raise sizes.make_value_error(rope["xdrope_section"], "rope_parameters.xdrope_section", "what mrope_section is")
    if rope.get("rope_type", rope.get("type")) == "xdrope" and "factor" not in rope:
        raise ParamcountError("is missing", where="rope_parameters.factor", expected="a number")
    return len(found)


def read_axes(config: Mapping[str, Any], c: Any) -> ops.Axes:
    return ops.Axes(tuple(map(int, sections_of(config))), "across halves")


def read_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """xdrope is dynamic scaling, here with a fixed alpha."""
    rope = dict(find_rope(config))
    for key in ("rope_type", "type"):
        if rope.get(key) == "xdrope":
            rope[key] = "dynamic"
    return rope_with_alpha({**config, "rope_scaling": rope}, c)


class HunYuanVLText(HunYuanDenseV1):
    """Source: HunYuanVLTextModel of the reference."""

    reference = "HunYuanVLForConditionalGeneration"
    model_types = ("hunyuan_vl_text",)
    is_section_type = False
    reference_names = {"model.": ""}
    base_model = "HunYuanVLTextModel"
    conditions = (sizes.padding_in_table(0, "pad_id"),)

    vocab_size: sizes.Positive = sizes.hf("org_vocab_size", "vocab_size")
    d_head: sizes.Positive = sizes.hf("attention_head_dim", "head_dim")
    n_axes: sizes.Positive = sizes.derived(count_axes)
    tie_word_embeddings: sizes.Flag = sizes.hf()

    rope = sizes.setting(default=read_rope)
    axes = sizes.setting(default=read_axes)

    def layer(c, x: Data, *places: Data) -> Data:
        def turn(y: Data) -> Data:
            return ops.rope_across_halves(y, places[0], c.rope, c.axes) if places else ops.rope(y, c.rope)

        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            return c.norm(turn(q), "self_attn.query_layernorm"), c.norm(turn(k), "self_attn.key_layernorm")

        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, prepare=prepare)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))


class HunYuanVLVision(parts.PatchVision):
    """`n_positions`: of a grid as large as the largest image, and of a class token that there is not."""

    config_class = "HunYuanVLVisionConfig"

    unused_keys = ("text_hidden_size", "out_hidden_size", "num_key_value_heads")

    n_heads: sizes.Positive = sizes.hf("attention_heads", "num_attention_heads")
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")
    n_positions: sizes.Positive = sizes.derived(
        lambda js, c: (js.get("max_image_size", 2048) // c["patch_size"]) ** 2 + 1
    )

    norm_eps = sizes.setting("layer_norm_eps", "rms_norm_eps")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, row by row."""
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        x = parts.embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        name, shape = "embeddings.position_embedding.weight", (c.n_positions, c.d_model)
        x = x + ops.lookup_in_grid(places, name, *shape, stretch="centres", first=1)
        return c.encode(x, name="layers.{layer}.")

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + parts.multi_head(c, c.norm(x, "input_layernorm"), "self_attn.", QKVO)
        return x + parts.encoder_mlp(
            c, c.norm(x, "post_attention_layernorm"), ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        )


class HunYuanVL(parts.PlacedImages):
    """Source: modeling_hunyuan_vl.py of the reference."""

    reference = "HunYuanVLForConditionalGeneration"
    sections = sizes.Sections(
        "hunyuan_vl_text", tie_rule="either", default_tie=True, ignores_model_type=True, is_flat=True
    )
    reference_names = {
        "model.": "model.language_model.",
        "vit.perceive.proj.0.": "model.vision_tower.patch_merger.proj_conv.",
        "vit.perceive.proj.2.": "model.vision_tower.patch_merger.proj_out.",
        "vit.perceive.": "model.vision_tower.patch_merger.",
        "vit.": "model.vision_tower.",
        "lm_head.": "lm_head.",
    }
    modules = {".mlp.dense_h_to_4h": (".mlp.fc1",), ".mlp.dense_4h_to_h": (".mlp.fc2",)}
    encoder_prefix = "vit."
    projector_prefix = "vit.perceive."
    moved = ("model.", "model.")
    places = parts.places_of_patches

    vision: HunYuanVLVision

    def place_tokens(c: Any, tokens: Data, pixels: Data) -> Data:
        side = c.vision.patch_size * c.vision.merge_size
        return ops.tokens_in_rows(tokens, pixels, side, c.language.n_axes, c.image_token)

    def project(c: Any, x: Data, *places: Data) -> Data:
        d, side = c.vision.d_model, c.vision.merge_size
        x = ops.merge_squares(
            ops.rms_norm(x, "before_rms", c.vision.norm_eps), side * side, *places, channels_first=True
        )
        x = convolution(x, "proj.0", d + d, d, side, side)
        x = convolution(ops.activate(x, c.vision.activation), "proj.2", 4 * d, d + d, 1, 1)
        x = ops.end_rows(x, "image_newline", "projector", *places)
        x = ops.linear(x, "mlp", "projector", c.language.d_model, bias=True)
        x = ops.class_token(x, "image_begin", component="projector")
        x = ops.class_token(x, "image_end", component="projector", last=True)
        return ops.rms_norm(x, "after_rms", c.vision.norm_eps)

    def unreachable(c: Any, tokens: Data) -> tuple[ops.Unreachable, ...]:
        x = ops.given("image", "image", c.language.d_model)
        idle = ops.block(
            x, c.projector_prefix, lambda x: ops.class_token(x, "image_sep", component="projector"), part="projector"
        )
        return (ops.Unreachable(idle, "the separator of images is never put between them"),)


def convolution(x: Data, name: str, d_out: ops.Size, *shape: ops.Size) -> Data:
    """A matrix over squares of patches, stored as a convolution."""
    weights = (
        ops.Weight(name + ".weight", "projector", (d_out, *shape)),
        ops.Weight(name + ".bias", "projector", (d_out,)),
    )
    return Data(ops.Linear(), (x,), (x.shape[0], d_out), weights)
