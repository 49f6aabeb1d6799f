"""Inkling 2 with its vision encoder: positions stretched from a grid and rotary ones by column and row, learned scales
of what layers add, and squares of patches through a plain MLP.
"""

from paramcount.architectures.inkling2_text import Inkling2Text
from paramcount.declare import Data, ops, parts, sizes


class Inkling2Vision(parts.VisionEncoder):
    """`n_positions`: rows and columns of the grid of learned positions."""

    config_class = "Inkling2VisionConfig"

    d_ff: sizes.Natural = sizes.hf(absent=sizes.times_mlp_ratio(4.0), null=sizes.ABSENT)
    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("native_patch_size", "patch_size")
    merge_size: sizes.Positive = sizes.hf("adapter_merge_size", "spatial_merge_size")
    n_positions: sizes.Positive = sizes.hf("posemb_grid_size")
    d_projector: sizes.Positive = sizes.hf("projection_hidden_dim")
    projector_bias: sizes.Flag = sizes.hf("projector_bias")
    d_out: sizes.Positive = sizes.hf("text_hidden_size")

    rope = sizes.setting(default=sizes.axial_rope)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, square by square."""
        side, square, name = c.patch_size, c.merge_size, "embeddings.position_embedding"
        patches = ops.cut(pixels, side, side, square=square, axes="hwc")
        x = ops.linear(patches, "embeddings.patch_embedding", "embedding", c.d_model)
        places, table = ops.patch_places(pixels, side, side, square=square), (c.n_positions * c.n_positions, c.d_model)
        x = x + ops.lookup_in_grid(places, name, *table, stretch="centres")
        first = ops.learned_rows("embeddings.class_embedding", "embedding", 1, c.d_model, stored=(c.d_model,))
        place = ops.learned_rows("embeddings.cls_position_embedding", "position", 1, c.d_model, stored=(c.d_model,))
        x = c.norm(ops.put_in_front(first + place, x), "ln_pre")
        turned = ops.patch_places(pixels, side, side, square=square, class_place="first")
        return ops.other_tokens(c.encode(x, turned, name="layers.{layer}."))

    def layer(c, x: Data, *reads: Data) -> Data:
        return parts.scaled_layer(c, x, lambda h: c.attend(h, *reads))

    def attend(c, x: Data, places: Data) -> Data:
        heads = (c.n_heads, c.d_head)
        q, k, v = (ops.linear(x, f"self_attn.{name}_proj", f"qkv.{name}", heads, bias=True) for name in "qkv")
        return parts.attend_by_places(c, (q, k, v), places, parts.perception.COLUMNS_AND_ROWS, "self_attn.out_proj")

    def project(c, x: Data) -> Data:
        """Squares of patches to vectors of the language model's size."""
        merged, bias = ops.merge_rows(x, c.merge_size * c.merge_size), c.projector_bias
        h = ops.activate(ops.linear(merged, "proj_in", "projector", c.d_projector, bias=bias), c.activation)
        return ops.linear(h, "proj_out", "projector", c.d_out, bias=bias)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_rotated_in_two_directions(c)


class Inkling2(parts.SeeingDecoder, Inkling2Text):
    """Source: modeling_inkling2.py of the reference. Names as the reference saves them."""

    reference = "Inkling2ForConditionalGeneration"
    reference_names = {
        "model.llm.lm_head.": "lm_head.",
        "model.llm.": "model.language_model.",
        "model.visual.backbone.": "model.vision_tower.",
        ".attn.k_sconv.": ".self_attn.k_sconv.",
        ".attn.v_sconv.": ".self_attn.v_sconv.",
    }
    base_model = "Inkling2Model"
    encoder_prefix = "model.visual.backbone."
    projector_prefix = "model.visual."
    modules = {
        **Inkling2Text.modules,
        ".visual.proj_in": (".vision_tower.merger.linear_1",), ".visual.proj_out": (".vision_tower.merger.linear_2",),
        ".mlp.c_fc": (".mlp.fc1",), ".mlp.c_proj": (".mlp.fc2",),
    }  # fmt: skip

    vision: Inkling2Vision

    image_token = sizes.setting("/image_token_id", default=200054)

    def project(c, x: Data) -> Data:
        return c.vision.project(x)

    def check(c) -> None:
        super().check()
        sizes.check_equal(c, "vision.d_out", "d_model")
