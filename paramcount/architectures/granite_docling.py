"""Granite Docling: SigLIP's layers over a tile of a page, a connector with two densities, and Granite.

What some layers of the encoder see is merged by itself and added behind the first layers of the language model.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.granite import Granite
from paramcount.architectures.idefics3 import Idefics3Vision
from paramcount.architectures.qwen3_vl import side_by_side
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

VISION = "model.vision_model."
CONNECTOR = VISION + "connector."


def fitting_tokens(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    expected, found = c["language"].d_model, c["vision"]["d_out"]
    if expected != found:
        where = "vision_config.out_hidden_size"
        raise ParamcountError(f"= {found}", where=where, expected=f"text_config.hidden_size = {expected}")


def routed_to_fine(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["d_density"] is not None and not c["vision"]["has_fine"]:
        expected = "null, because vision_config.use_fine_route is false"
        raise ParamcountError(f"= {c['d_density']}", where="density_router_hidden_size", expected=expected)


class GraniteDoclingText(Granite):
    """Source: GraniteDoclingTextModel of the reference."""

    reference = "GraniteDoclingForConditionalGeneration"
    model_types = ("granite_docling_text",)
    is_section_type = False
    reference_names = {"model.": ""}
    base_model = "GraniteDoclingTextModel"
    conditions = (sizes.padding_in_table(100256),)

    n_kv_heads: sizes.Positive = sizes.hf(null=sizes.equal_to("n_heads"))

    rope = sizes.rotary(positions=32768)
    logit_scale = sizes.setting(default=lambda config, c: float(1 / config.get("logits_scaling", 4.0)))


class GraniteDoclingVision(Idefics3Vision):
    """`deep_layers`: those whose output should be merged too; `views`: those of them that exist, in
    order. `coarse`, `fine`: patches a side that the connector merges.
    """

    config_class = "GraniteDoclingVisionConfig"

    defaults: ClassVar = {"d_model": 768, "n_heads": 12, "patch_size": 16}

    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 512) // c["patch_size"]) ** 2)
    d_out: sizes.Positive = sizes.hf("out_hidden_size")
    coarse: sizes.Positive = sizes.hf("scale_factor")
    fine: sizes.Natural = sizes.derived(lambda js, c: c["coarse"] // 2)
    has_fine: sizes.Flag = sizes.hf("use_fine_route")
    deep_layers: sizes.Indices = sizes.hf("deepstack_visual_indexes", absent=(3, 7, 10), null=(3, 7, 10))
    views: sizes.Indices = sizes.derived(
        lambda js, c: tuple(sorted({i for i in c["deep_layers"] if i < c["n_layers"]}))
    )

    def forward(c, pixels: Data, states: Any = None) -> Data:
        """One tile to vectors of its patches, with those of the deep views side by side."""
        x = c.encode(c.embed(pixels))
        y = c.norm(x, "post_layernorm")
        return ops.join(y, ops.hidden_states(x, tuple(i + 1 for i in c.views), len(c.views))) if c.views else y

    def connect(c, x: Data, *places: Data) -> Data:
        """Patches and their deep views to vectors of the language model's size. Beside them stand those of the fine
        path, which a denser page takes instead.
        """
        last, *views = ops.split(x, *[c.d_model] * (1 + len(c.views)))
        last = ops.layer_norm(last, "ln_in", 1e-5)
        image, *deep = c.merge(last, views, "coarse.", c.coarse * c.coarse, places[0])
        out = side_by_side(c.finish(image), *deep)
        if not c.has_fine:
            return out
        image, *deep = c.merge(last, views, "fine.", c.fine * c.fine, places[1])
        image = ops.tie_weights(ops.block(image, "", c.finish), CONNECTOR)
        return ops.bundle(out, side_by_side(image, *deep))

    def merge(c, x: Data, views: list[Data], prefix: str, square: ops.Size, places: Data) -> tuple[Data, ...]:
        image = ops.linear(ops.merge_squares(x, square), prefix + "projection", "projector", c.d_out)
        image = image + ops.grid_sinusoids(image, places)
        return image, *(
            c.widen(ops.merge_squares(view, square), f"{prefix}deepstack_mergers.{i}.") for i, view in enumerate(views)
        )

    def widen(c, x: Data, prefix: str) -> Data:
        h = ops.linear(
            ops.layer_norm(x, prefix + "layer_norm", 1e-5), prefix + "linear_1", "projector", c.d_out, bias=True
        )
        return ops.linear(ops.activate(h, "gelu"), prefix + "linear_2", "projector", c.d_out, bias=True)

    def finish(c, x: Data) -> Data:
        h = ops.activate(ops.layer_norm(x, "ln_mid", 1e-5), "gelu")
        return ops.layer_norm(ops.linear(h, "mlp_fc2", "projector", c.d_out), "ln_out", 1e-5)

    def check(c) -> None:
        super().check()
        if c.d_out % 4:
            raise sizes.make_value_error(c.d_out, "out_hidden_size", "a multiple of 4")
        if c.has_fine and c.coarse < 2:
            raise sizes.make_value_error(c.coarse, "scale_factor", "at least 2, because use_fine_route is true")


class GraniteDocling(parts.Composite):
    """Source: modeling_granite_docling.py of the reference. `seen_layers`: those of the language model behind which a
    deep view is added.
    """

    reference = "GraniteDoclingForConditionalGeneration"
    sections = sizes.Sections("granite_docling_text", default_tie=True, ignores_model_type=True)
    conditions = (fitting_tokens, routed_to_fine)
    moved = ("model.", "model.text_model.")

    language: sizes.Sizes
    vision: GraniteDoclingVision
    seen_layers: sizes.Indices = sizes.derived(
        lambda js, c: tuple(range(min(len(c["vision"]["views"]), c["language"].n_layers)))
    )
    d_density: sizes.Positive | None = sizes.hf("density_router_hidden_size", absent=None, null=None)

    image_token = sizes.setting("image_token_id")

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        n_views, d, image = len(c.vision.views), c.vision.d_out, c.see()
        first, *deep = ops.split(image, d, n_views * d) if n_views else (image,)
        x = ops.insert(c.embed_text(tokens), tokens, first, c.image_token)
        return c.read_text(x, tokens, *(ops.reshape(views, n_views, d) for views in deep), head=head)

    def see(c) -> Data:
        """A tile to vectors of the language model's size, with the deep views side by side."""
        vision = c.vision
        pixels = vision.image()
        states = ops.block(pixels, VISION, vision.forward, part="vision")
        sides = (vision.coarse, vision.fine) if vision.has_fine else (vision.coarse,)
        places = [ops.patch_places(pixels, side * vision.patch_size, side * vision.patch_size) for side in sides]
        image = ops.block(states, CONNECTOR, vision.connect, reads=places, part="projector")
        if c.d_density is None:
            return image
        return ops.bundle(image, ops.block(states, "model.density_router.", c.choose_path, part="vision"))

    def choose_path(c: Any, x: Data) -> Data:
        """A logit of whether a page takes the fine path."""
        d = c.vision.d_model
        last = ops.split(x, d, x.shape[-1] - d)[0] if c.vision.views else x
        mean = ops.weighted_mean(last, ops.linear(last, "att", "other", 1, bias=True))
        h = ops.linear(ops.layer_norm(mean, "norm", 1e-5), "fc1", "other", c.d_density, bias=True)
        return ops.linear(ops.activate(h, "gelu"), "fc2", "other", 1, bias=True)

    def transform(c: Any, x: Data, *reads: Data) -> Data:
        """Embedded tokens to hidden states. `reads`: the tokens and the deep views."""
        language, n = c.language, len(c.seen_layers)

        def layer(sees: bool, x: Data, tokens: Data, *deep: Data) -> Data:
            x = language.layer(x)
            return ops.insert_sum(x, tokens, ops.select_part(deep[0], "layer"), c.image_token) if sees else x

        x = language.to_first_layer(x, reads[0])
        kinds = [*((True, 1) for _ in range(n)), (False, language.n_layers - n)]
        return language.last(ops.layers(x, "model.layers.{layer}.", kinds, layer, reads=reads))

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        vision = c.vision
        first, last = len(vision.views), len(vision.deep_layers)
        if first == last:
            return ()
        found = []
        for name, side in (("coarse.", vision.coarse), *([("fine.", vision.fine)] if vision.has_fine else [])):
            x = ops.given("merged patches", "image", side * side * vision.d_model)
            for i in range(first, last):
                prefix = f"{CONNECTOR}{name}deepstack_mergers.{i}."
                found.append(ops.block(x, prefix, lambda x: vision.widen(x, ""), part="projector"))
        why = "deepstack_visual_indexes names layers twice, or that do not exist"
        return tuple(ops.Unreachable(flow, why) for flow in found)
