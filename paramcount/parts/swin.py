"""Swin Transformer: stages of windows of patches, shifted in every other layer; a stage narrows the image by half.

Source: arXiv:2103.14030, section 3; SwinModel and DonutSwinModel of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import ParamcountError
from paramcount.flow import Data

ATTENTION = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
MODULES = {  # of the reference
    "blocks.{layer}." + stored: ("blocks.{layer}." + name,)
    for stored, name in zip(
        (*ATTENTION, "intermediate.dense", "output.dense"),
        ("attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj", "mlp.fc1", "mlp.fc2"),
    )
}


def stages_agree(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not c["depths"]:
        raise ParamcountError("is empty", where="depths", expected="one number per stage")
    if len(c["heads"]) < len(c["depths"]):
        raise ParamcountError(f"has {len(c['heads'])} values", where="num_heads", expected=f"{len(c['depths'])}")
    for stage, heads in enumerate(c["heads"][: len(c["depths"])]):
        if c["d_embedding"] * 2**stage % heads:
            found = f"= {heads} does not divide {c['d_embedding'] * 2**stage}"
            raise ParamcountError(found, where=f"num_heads.{stage}", expected="a divisor of the size of its stage")
    if js.get("hidden_size", c["d_model"]) != c["d_model"]:
        raise sizes.make_value_error(js["hidden_size"], "hidden_size", f"{c['d_model']}, as embed_dim")


def head_dims(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The dimension of the heads of each stage, which divide its size."""
    return tuple(max(1, c["d_embedding"] * 2**i // n) for i, n in enumerate(c["heads"][: len(c["depths"])]))


class Swin(sizes.Tower):
    """`n_patches`: of the images that learned positions are for."""

    model_types = ("swin",)

    section: ClassVar[str | None] = None
    modules: ClassVar[Mapping[str, tuple[str, ...]]] = MODULES
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (stages_agree,)
    normed: ClassVar[bool] = True  # behind the last stage
    has_index: ClassVar[bool] = False  # whether files have the index of distances

    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_patches: sizes.Positive = sizes.derived(parts.vit.count_patches)
    d_embedding: sizes.Positive = sizes.hf("embed_dim")
    depths: sizes.Indices = sizes.hf("depths")
    heads: sizes.Widths = sizes.hf("num_attention_heads", "num_heads")
    d_model: sizes.Positive = sizes.derived(lambda js, c: c["d_embedding"] * 2 ** max(len(c["depths"]) - 1, 0))
    head_dims: sizes.Widths = sizes.derived(head_dims)
    window_size: sizes.Positive = sizes.hf("window_size")
    shift: sizes.Natural = sizes.derived(lambda js, c: c["window_size"] // 2)
    ff_dims: sizes.Widths = sizes.derived(
        lambda js, c: tuple(
            sizes.part_of(c["d_embedding"] * 2**i, js.get("mlp_ratio", 4.0), "mlp_ratio")
            for i in range(len(c["depths"]))
        )
    )
    qkv_bias: sizes.Flag = sizes.hf()
    absolute_positions: sizes.Flag = sizes.hf("use_absolute_embeddings")

    activation: ClassVar = sizes.setting("hidden_act")
    norm_eps: ClassVar = sizes.setting("layer_norm_eps")

    def image(c) -> Data:
        return ops.given("pixels", c.n_channels, "height", "width")

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        """One image to vectors of its patches in the last stage, [patches, d_model]."""
        if states is not None:
            raise ParamcountError("is not supported", where="vision.architecture", expected="a type such as vit")
        x = parts.embed_patches(
            pixels, "embeddings.patch_embeddings.projection", c.d_embedding, c.patch_size, bias=True
        )
        x, side = ops.layer_norm(x, "embeddings.norm", 1e-5), c.patch_size
        if c.absolute_positions:
            x = ops.add_positions(x, "embeddings.position_embeddings", 1, c.n_patches, c.d_embedding)
        for stage, depth in enumerate(c.depths):
            name = f"encoder.layers.{stage}."
            if depth:
                x = c.stage(x, pixels, stage, side)
            if stage + 1 < len(c.depths):
                squares = ops.merge_squares(x, 4, ops.patch_places(pixels, side, side), columns_first=True)
                squares = ops.layer_norm(squares, name + "downsample.norm", 1e-5)
                x = ops.linear(squares, name + "downsample.reduction", "mixer", c.d_embedding * 2 ** (stage + 1))
                side = side * 2
        return ops.layer_norm(x, "layernorm", c.norm_eps) if c.normed else x

    def stage(c, x: Data, pixels: Data, stage: int, side: int) -> Data:
        """The layers of a stage, whose patches have `side` pixels a side."""
        window = c.window_size * side
        padded, windows = ops.padded_places(pixels, side, window)
        shifted = ops.padded_windows(pixels, side, window, c.shift * side)
        reads = (padded, windows, shifted, ops.index_places(padded, c.window_size, c.window_size))
        kinds = [("windows" if i % 2 == 0 else "shifted windows", 1) for i in range(c.depths[stage])]

        def layer(kind: str, x: Data, padded: Data, windows: Data, shifted: Data, distances: Data) -> Data:
            return c.layer(x, stage, padded, windows if kind == "windows" else shifted, distances)

        return ops.layers(x, f"encoder.layers.{stage}.blocks.{{layer}}.", kinds, layer, reads=reads)

    def layer(c, x: Data, stage: int, padded: Data, windows: Data, distances: Data) -> Data:
        h = ops.pad_rows(ops.layer_norm(x, "layernorm_before", c.norm_eps), padded)
        x = x + ops.drop_rows(c.attend(h, stage, windows, distances), x)
        h = ops.layer_norm(x, "layernorm_after", c.norm_eps)
        names = ("intermediate.dense", "output.dense")
        return x + parts.plain_mlp(h, names, "mlp", c.ff_dims[stage], activation=c.activation, bias=True)

    def attend(c, x: Data, stage: int, windows: Data, distances: Data) -> Data:
        """Inside windows; zeros around the image are attended to."""
        n, d, area = c.heads[stage], x.shape[-1], c.window_size * c.window_size
        heads = (n, c.head_dims[stage])
        q, k, v = (ops.linear(x, name, f"qkv.{part}", heads, bias=c.qkv_bias) for name, part in zip(ATTENTION, "qkv"))
        side = 2 * c.window_size - 1
        weights = [ops.Weight("attention.self.relative_position_bias_table", "position", (side * side, n))]
        if c.has_index:
            weights.append(
                ops.Weight("attention.self.relative_position_index", "position", (area, area), role="buffer")
            )
        bias = Data(ops.Lookup(), (distances,), (*distances.shape, n), tuple(weights))
        a = ops.attend(q, k, v, bias, mask=None if windows is None else ops.Groups(windows))
        return ops.linear(a, ATTENTION[3], "output_projection", d, bias=True)


def no_positions(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference has one position more than patches, which no image fits."""
    if c["absolute_positions"]:
        raise ParamcountError("= true", where="use_absolute_embeddings", expected="false")


class DonutSwin(Swin):
    """Donut's encoder, without a last norm. Source: arXiv:2111.15664, section 3.2; DonutSwinModel."""

    model_types = ("donut-swin",)

    modules: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    conditions = (stages_agree, no_positions)
    normed = False
    has_index = True
