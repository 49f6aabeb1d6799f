"""BEiT: ViT with scaled residuals, whose attention may gain a bias for the distance of patches in rows and columns.

Source: arXiv:2106.08254, sections 2.2 and 2.3; BeitModel of the reference.
"""

from __future__ import annotations

from math import isqrt

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

TABLE = "relative_position_bias.relative_position_bias_table"


def positions_are_square(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference interpolates learned positions of images that are no square, as if the table were one."""
    if c["absolute_positions"] and isqrt(c["n_patches"]) ** 2 != c["n_patches"]:
        raise sizes.make_value_error(js.get("image_size", 224), "image_size", "a square with positions")


class Beit(parts.ViT):
    model_types = ("beit",)
    conditions = (positions_are_square,)

    n_rows: sizes.Positive = sizes.derived(lambda js, c: parts.vit.grid(js, c)[0])
    n_columns: sizes.Positive = sizes.derived(lambda js, c: parts.vit.grid(js, c)[1])
    qkv_bias: sizes.Flag = sizes.derived(lambda js, c: True)
    d_pooled: sizes.Positive = sizes.derived(lambda js, c: c["d_model"])
    mask_token: sizes.Flag = sizes.hf("use_mask_token")
    absolute_positions: sizes.Flag = sizes.hf("use_absolute_position_embeddings")
    relative_positions: sizes.Flag = sizes.hf("use_relative_position_bias")
    shared_positions: sizes.Flag = sizes.hf("use_shared_relative_position_bias")
    mean_pooled: sizes.Flag = sizes.hf("use_mean_pooling")
    scaled_residuals: sizes.Flag = sizes.derived(lambda js, c: js.get("layer_scale_init_value", 0.1) > 0)

    def forward(c, pixels: Data, states: parts.States | None = None, *masked: Data) -> Data:
        """One image to vectors of the class token and the patches; the pooled vector is beside them. `masked`: which
        patches are the mask token, if there is one."""
        biases: tuple[Data, ...] = ()
        if c.relative_positions or c.shared_positions:
            places = ops.patch_places(pixels, c.patch_size, c.patch_size)
            biases = (ops.index_places(places, c.n_rows, c.n_columns, has_class=True),)
        if c.shared_positions:
            biases += (c.bias(biases[0], f"encoder.{TABLE}"),)
        x = ops.layers(
            c.embed(pixels, *masked), parts.LAYER, [("layer", c.n_layers)], lambda kind, *x: c.layer(*x), reads=biases
        )
        y = x if c.mean_pooled else c.norm(x, "layernorm")
        return ops.bundle(y if states is None else parts.select_states(x, states), c.pool(y))

    def embed(c, pixels: Data, *masked: Data) -> Data:
        x = parts.embed_patches(pixels, "embeddings.patch_embeddings.projection", c.d_model, c.patch_size, bias=True)
        for mask in masked:
            x = ops.insert_learned(x, mask, "embeddings.mask_token", 1, stored=(1, 1, c.d_model))
        x = ops.class_token(x, "embeddings.cls_token", 1, 1, c.d_model)
        if not c.absolute_positions:
            return x
        return ops.add_positions(x, "embeddings.position_embeddings", 1, c.n_patches + 1, c.d_model)

    def bias(c, distances: Data, name: str) -> Data:
        n: ops.Size = (2 * c.n_rows - 1) * (2 * c.n_columns - 1) + 3
        return ops.lookup(distances, name, "position", n, c.n_heads)

    def layer(c, x: Data, *reads: Data) -> Data:
        a = c.attend(c.norm(x, "layernorm_before"), *reads)
        x = x + (ops.multiply_vector(a, "lambda_1", "other", c.d_model) if c.scaled_residuals else a)
        h = parts.bert_mlp(c, c.norm(x, "layernorm_after"))
        return x + (ops.multiply_vector(h, "lambda_2", "other", c.d_model) if c.scaled_residuals else h)

    def attend(c, x: Data, *reads: Data) -> Data:
        """`reads`: the distances of all pairs, and the biases that all layers share."""
        heads, biases = (c.n_heads, c.d_head), reads[1:]
        if c.relative_positions:
            biases = (*biases, c.bias(reads[0], f"attention.attention.{TABLE}"))
        q = ops.linear(x, "attention.attention.query", "qkv.q", heads, bias=True)
        k = ops.linear(x, "attention.attention.key", "qkv.k", heads)
        v = ops.linear(x, "attention.attention.value", "qkv.v", heads, bias=True)
        return ops.linear(
            ops.attend(q, k, v, *biases), "attention.output.dense", "output_projection", c.d_model, bias=True
        )

    def pool(c, x: Data) -> Data:
        return (
            c.norm(ops.pool_text(ops.other_tokens(x), "mean"), "pooler.layernorm")
            if c.mean_pooled
            else ops.first_token(x)
        )
