"""MAIRA-2: RAD-DINO, which is DINOv2 for X-rays, a projector of four matrices and a language model."""

from typing import Any

from paramcount.architectures.llava import Llava
from paramcount.declare import Data, ops, parts, sizes


def list_matrices(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    n = js.get("projector_n_layers", 4)
    if type(n) is not int or not 0 < n <= 100:
        raise sizes.make_value_error(n, "projector_n_layers", "a number of matrices from 1 to 100")
    return tuple(range(1, n))


class DinoV2(parts.ViT):
    """A learned vector scales what each step adds. Source: arXiv:2304.07193; Dinov2Backbone of the reference, with the
    names of the released file."""

    model_types = ()  # type: ignore[assignment]
    is_section_type = False
    modules = {}
    config_class = "Dinov2Config"
    section = "vision_config"
    conditions = (
        sizes.one_of("model_type", ("dinov2",), "dinov2"), parts.only("use_swiglu_ffn", False),
        parts.only("apply_layernorm", True), parts.only("reshape_hidden_states", False),
    )  # fmt: skip

    d_ff: sizes.Natural = sizes.derived(lambda js, c: sizes.part_of(c["d_model"], js.get("mlp_ratio", 4), "mlp_ratio"))
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_pooled = sizes.constant(0)
    mask_token: sizes.Flag = sizes.hf("use_mask_token", absent=True)

    pooler_activation = None

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        """One image to vectors of the class token and the patches."""
        return c.norm(c.encode(c.embed(pixels), name=parts.LAYER), "layernorm")

    def mask(c, x: Data, masked: Data) -> Data:
        return ops.insert_learned(x, masked, "embeddings.mask_token", 1, stored=(1, c.d_model))

    def layer(c, x: Data, *reads: Data) -> Data:
        bias = (*[c.qkv_bias] * 3, True)
        y = parts.multi_head(c, c.norm(x, "norm1"), "attention.", parts.vit.ATTENTION, bias=bias)
        x = x + ops.multiply_vector(y, "layer_scale1.lambda1", "other", c.d_model)
        y = parts.encoder_mlp(c, c.norm(x, "norm2"))
        return x + ops.multiply_vector(y, "layer_scale2.lambda1", "other", c.d_model)


class Maira2(Llava):
    """Source: arXiv:2406.04449; modeling_maira2.py of microsoft/maira-2."""

    reference = "Maira2ForConditionalGeneration of microsoft/maira-2"
    model_types = ("maira2",)
    gguf = ""
    sections = sizes.Sections("llama", tie_rule="text")
    reference_names = {}

    vision: DinoV2
    n_views: sizes.Positive = sizes.derived(lambda js, c: 1)
    projector_bias = sizes.constant(True)
    later_matrices: sizes.Indices = sizes.derived(list_matrices)  # of the projector, after the first

    views = (-1,)
    selection = sizes.setting("vision_feature_select_strategy", default="default")
    activation = sizes.setting("projector_hidden_act", default="gelu")

    def project(c: Any, x: Data, *places: Data) -> Data:
        x, d = x if c.selection == "full" else ops.other_tokens(x), c.language.d_model
        x = ops.linear(x, "layers.0", "projector", d, bias=True)
        for i in c.later_matrices:
            x = ops.linear(ops.activate(x, c.activation), f"layers.{2 * i}", "projector", d, bias=True)
        return x

    def unreachable(c: Any, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if not c.vision.mask_token:
            return ()
        x, mask = ops.given("states", "patches", c.vision.d_model), ops.given("mask", "patches")
        unread = ops.block(x, c.encoder_prefix, c.vision.mask, reads=(mask,), part="vision")
        return (ops.Unreachable(unread, "no patch is masked"),)
