"""Inkling 2 with its vision encoder: positions stretched from a grid and rotary ones by column and row, learned scales
of what layers add, and squares of patches through a plain MLP.
"""

from paramcount.architectures.inkling2_text import Inkling2Text
from paramcount.flow import (
    Data,
    activate,
    cut,
    learned_rows,
    linear,
    lookup,
    merge_rows,
    other_tokens,
    patch_places,
    put_in_front,
)
from paramcount.parts.composite import SeeingDecoder
from paramcount.parts.perception import COLUMNS_AND_ROWS, scaled_layer
from paramcount.parts.vision import VisionEncoder, attend_by_places
from paramcount.sizes import ABSENT, Flag, Natural, Positive, hf, setting
from paramcount.sizes.derivations import times_mlp_ratio
from paramcount.sizes.rules import check_equal, check_heads_fill, check_rotated_in_two_directions
from paramcount.sizes.setting_fields import axial_rope


class Inkling2Vision(VisionEncoder):
    """`n_positions`: rows and columns of the grid of learned positions."""

    config_class = "Inkling2VisionConfig"

    d_ff: Natural = hf(absent=times_mlp_ratio(4.0), null=ABSENT)
    n_channels: Positive = hf("num_channels")
    patch_size: Positive = hf("native_patch_size", "patch_size")
    merge_size: Positive = hf("adapter_merge_size", "spatial_merge_size")
    n_positions: Positive = hf("posemb_grid_size")
    d_projector: Positive = hf("projection_hidden_dim")
    projector_bias: Flag = hf("projector_bias")
    d_out: Positive = hf("text_hidden_size")

    norm_eps = setting("layer_norm_eps", default=1e-5)
    rope = setting(default=axial_rope)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, square by square."""
        side, square, name = c.patch_size, c.merge_size, "embeddings.position_embedding"
        patches = cut(pixels, side, side, square=square, channels_last=True)
        x = linear(patches, "embeddings.patch_embedding", "embedding", c.d_model)
        places, table = patch_places(pixels, side, side, square=square), (c.n_positions * c.n_positions, c.d_model)
        x = x + lookup(places, name, "position", *table, index="places", stretch="centres")
        first = learned_rows("embeddings.class_embedding", "embedding", 1, c.d_model, stored=(c.d_model,))
        place = learned_rows("embeddings.cls_position_embedding", "position", 1, c.d_model, stored=(c.d_model,))
        x = c.norm(put_in_front(first + place, x), "ln_pre")
        turned = patch_places(pixels, side, side, square=square, class_place="first")
        return other_tokens(c.encode(x, turned, name="layers.{layer}."))

    def layer(c, x: Data, *reads: Data) -> Data:
        return scaled_layer(c, x, lambda h: c.attend(h, *reads))

    def attend(c, x: Data, places: Data) -> Data:
        heads = (c.n_heads, c.d_head)
        q, k, v = (linear(x, f"self_attn.{name}_proj", f"qkv.{name}", heads, bias=True) for name in "qkv")
        return attend_by_places(c, (q, k, v), places, COLUMNS_AND_ROWS, "self_attn.out_proj")

    def project(c, x: Data) -> Data:
        """Squares of patches to vectors of the language model's size."""
        merged, bias = merge_rows(x, c.merge_size * c.merge_size), c.projector_bias
        h = activate(linear(merged, "proj_in", "projector", c.d_projector, bias=bias), c.activation)
        return linear(h, "proj_out", "projector", c.d_out, bias=bias)

    def check(c) -> None:
        check_heads_fill(c)
        check_rotated_in_two_directions(c)


class Inkling2(SeeingDecoder, Inkling2Text):
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
    section = "text_config"
    encoder_prefix = "model.visual.backbone."
    projector_prefix = "model.visual."
    modules = {
        **Inkling2Text.modules,
        ".visual.proj_in": (".vision_tower.merger.linear_1",), ".visual.proj_out": (".vision_tower.merger.linear_2",),
        ".mlp.c_fc": (".mlp.fc1",), ".mlp.c_proj": (".mlp.fc2",),
    }  # fmt: skip

    vision: Inkling2Vision

    image_token = setting("/image_token_id", default=200054)

    def project(c, x: Data) -> Data:
        return c.vision.project(x)

    def check(c) -> None:
        super().check()
        check_equal(c, "vision.d_out", "d_model")
