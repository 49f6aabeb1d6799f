"""Perception Encoder as timm builds it: patches with learned and rotary positions, layers of full attention.

config.json names one of timm's models, and `model_args` what differs from it. What pools the patches is left out.

Source: arXiv:2504.13181, section 2; Eva in timm's eva.py and its vit_pe_* models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import ParamcountError, describe_value, join_words, make_choice_error
from paramcount.flow import Data

COLUMNS_AND_ROWS = ops.Axes((1, 1), "restarted")
BASE = 10_000.0


class Variant(NamedTuple):
    """A model of timm. `side`: of its image, in pixels; `reference`: the rows that positions are scaled to."""

    d_model: int
    n_layers: int
    n_heads: int
    patch_size: int
    side: int
    reference: int
    d_ff: float = 4.0  # times d_model
    class_token: bool = True
    scaled: bool = False
    normed: bool = False  # after the last layer


VARIANTS = {
    "vit_pe_core_base_patch16_224": Variant(768, 12, 12, 16, 224, 14, normed=True),
    "vit_pe_core_gigantic_patch14_448": Variant(1536, 50, 16, 14, 448, 32, 8960 / 1536, class_token=False, normed=True),
    "vit_pe_core_large_patch14_336": Variant(1024, 24, 16, 14, 336, 24, normed=True),
    "vit_pe_core_small_patch16_384": Variant(384, 12, 6, 16, 384, 24, normed=True),
    "vit_pe_core_tiny_patch16_384": Variant(192, 12, 3, 16, 384, 24, normed=True),
    "vit_pe_lang_gigantic_patch14_448": Variant(1536, 47, 16, 14, 448, 32, 8960 / 1536, class_token=False, scaled=True),
    "vit_pe_lang_large_patch14_448": Variant(1024, 23, 16, 14, 448, 32, scaled=True),
    "vit_pe_spatial_base_patch16_512": Variant(768, 12, 12, 16, 512, 32),
    "vit_pe_spatial_gigantic_patch14_448": Variant(
        1536, 50, 16, 14, 448, 32, 8960 / 1536, class_token=False, scaled=True
    ),
    "vit_pe_spatial_large_patch14_448": Variant(1024, 24, 16, 14, 448, 32),
    "vit_pe_spatial_small_patch16_512": Variant(384, 12, 6, 16, 512, 32),
    "vit_pe_spatial_tiny_patch16_512": Variant(192, 12, 3, 16, 512, 32),
}
ARGUMENTS = (
    "depth", "embed_dim", "global_pool", "img_size", "init_values", "mlp_ratio", "num_heads", "ref_feat_shape",
    "use_post_transformer_norm",
)  # fmt: skip


def find_variant(js: sizes.ConfigJson) -> Variant:
    if (name := js.get("architecture", "resnet50")) not in tuple(VARIANTS):
        raise make_choice_error(name, VARIANTS, where="vision_config.architecture")
    return VARIANTS[name]


def list_arguments(js: sizes.ConfigJson) -> Mapping[str, Any]:
    """The arguments that are no null, which timm takes for a missing one."""
    arguments = js.get("model_args")
    if not isinstance(arguments, Mapping):
        problem = "is missing" if arguments is None else f"= {describe_value(arguments)}"
        raise ParamcountError(problem, where="vision_config.model_args", expected="a JSON object with embed_dim")
    return {name: value for name, value in arguments.items() if value is not None}


def is_supported(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """timm has more arguments, and pools patches in several ways."""
    find_variant(js)
    where, arguments = "vision_config.model_args", list_arguments(js)
    for name in arguments:
        if name not in ARGUMENTS:
            raise ParamcountError(f"{name} is not supported", where=where, expected=join_words(ARGUMENTS, "or"))
    default = "map" if js["architecture"].startswith("vit_pe_core") else "avg"
    if (pooling := arguments.get("global_pool", default)) != "" and (pooling != "avg" or default == "map"):
        raise ParamcountError(
            f"= {describe_value(pooling)} is not supported", where=f"{where}.global_pool", expected='""'
        )


def of_variant(name: str) -> sizes.Derivation:
    return lambda js, c: getattr(find_variant(js), name)


def read_pair(js: sizes.ConfigJson, name: str, default: int) -> tuple[int, int]:
    """A height and a width, or both at once."""
    given = list_arguments(js).get(name, default)
    pair = given if isinstance(given, (list, tuple)) else (given, given)
    if len(pair) != 2 or not all(type(side) is int and side > 0 for side in pair):
        raise sizes.make_value_error(given, f"vision_config.model_args.{name}", "an integer, or a height and a width")
    return pair[0], pair[1]


def grid(js: sizes.ConfigJson) -> tuple[int, int]:
    """Rows and columns of patches."""
    variant = find_variant(js)
    height, width = read_pair(js, "img_size", variant.side)
    return height // variant.patch_size, width // variant.patch_size


def n_positions(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    rows, columns = grid(js)
    return rows * columns + find_variant(js).class_token


def d_ff(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    return sizes.part_of(
        c["d_model"], list_arguments(js).get("mlp_ratio", find_variant(js).d_ff), "model_args.mlp_ratio"
    )


def is_scaled(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    return find_variant(js).scaled or "init_values" in list_arguments(js)


def is_normed(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    return list_arguments(js).get("use_post_transformer_norm", find_variant(js).normed)


def scaled_angles(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Positions of any image reach as far as those of the reference."""
    if "architecture" not in config:
        raise LookupError("an entry without settings names no variant")
    (rows, columns), (down, across) = grid(config), read_pair(config, "ref_feat_shape", find_variant(config).reference)
    if rows * across != columns * down:
        raise ValueError("positions down and across are scaled differently")
    return ops.Rope(BASE, ops.LinearScaling(rows / down))


def scaled_layer(c: Any, x: Data, attention: Callable[[Data], Data]) -> Data:
    """A layer that learns scales of what it adds, with the names of the encoder's own code."""
    x = x + ops.multiply_vector(attention(c.norm(x, "ln_1")), "ls_1.gamma", "other", c.d_model)
    h = parts.encoder_mlp(c, c.norm(x, "ln_2"), ("mlp.c_fc", "mlp.c_proj"))
    return x + ops.multiply_vector(h, "ls_2.gamma", "other", c.d_model)


class PerceptionEncoder(parts.VisionEncoder):
    """Images fit if they have as many patches as there are positions."""

    config_class = "TimmWrapperConfig"

    conditions: ClassVar = (parts.tower_named("timm_wrapper"), is_supported)
    unused_keys: ClassVar = ("num_features", "num_classes")

    d_model: sizes.Positive = sizes.hf("model_args.embed_dim")
    n_layers: sizes.Natural = sizes.hf("model_args.depth", absent=of_variant("n_layers"), null=sizes.ABSENT)
    n_heads: sizes.Positive = sizes.hf("model_args.num_heads", absent=of_variant("n_heads"), null=sizes.ABSENT)
    d_ff: sizes.Natural = sizes.derived(d_ff)
    patch_size: sizes.Positive = sizes.derived(of_variant("patch_size"))
    n_positions: sizes.Natural = sizes.derived(n_positions)
    has_class_token: sizes.Flag = sizes.derived(of_variant("class_token"))
    scaled_output: sizes.Flag = sizes.derived(is_scaled)
    last_norm: sizes.Flag = sizes.derived(is_normed)

    activation: ClassVar[str] = "gelu"
    norm_eps: ClassVar[float] = 1e-5
    rope: ClassVar = sizes.setting(default=scaled_angles)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, after that of the class token if there is one."""
        x = parts.embed_patches(pixels, "patch_embed.proj", c.d_model, c.patch_size)
        places = ops.patch_places(pixels, c.patch_size, c.patch_size, class_place="first")
        if c.has_class_token:
            x = ops.class_token(x, "cls_token", 1, 1, c.d_model)
        else:
            places = ops.other_tokens(places)
        x = c.norm(ops.add_positions(x, "pos_embed", 1, c.n_positions, c.d_model), "norm_pre")
        x = c.encode(x, places, name="blocks.{layer}.")
        return c.norm(x, "norm") if c.last_norm else x

    def layer(c, x: Data, *reads: Data) -> Data:
        (places,) = reads
        x = x + c.scale(c.attention(c.norm(x, "norm1"), places), "gamma_1")
        return x + c.scale(parts.encoder_mlp(c, c.norm(x, "norm2")), "gamma_2")

    def attention(c, x: Data, places: Data) -> Data:
        return parts.attend_by_places(c, parts.fused_qkv(c, x, "attn.qkv"), places, COLUMNS_AND_ROWS, "attn.proj")

    def scale(c, x: Data, name: str) -> Data:
        return ops.multiply_vector(x, name, "other", c.d_model) if c.scaled_output else x

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_rotated_in_two_directions(c)
