"""LLaVA, PaliGemma and Mistral 3: a vision encoder, a small projector and a language model, selected by config.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import SerializeAsAny

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate, block, given, linear, norm
from paramcount.parts.composite import with_language
from paramcount.sizes import Flag, Positive, Sizes, Tower, derived, hf


def n_views(absent: int) -> Any:
    """How many layers of the tower are looked at: one, or as many as a list names."""

    def number(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
        named = js.get("vision_feature_layer", absent)
        several = [named] if type(named) is int else named
        if not isinstance(several, (list, tuple)) or not all(type(i) is int for i in several):
            raise ParamcountError(
                f"= {describe_value(named)}", where="vision_feature_layer", expected="an integer or a list of integers"
            )
        return len(several)

    return derived(number)


class Llava(Sizes):
    """Source: arXiv:2304.08485, section 4.1; two matrices in the projector arXiv:2310.03744, section 3.2."""

    reference: ClassVar[str] = "LlavaForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: SerializeAsAny[Tower]
    n_views: Positive = n_views(-2)
    projector_bias: Flag = hf("multimodal_projector_bias", absent=True)

    def forward(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c, widen), head=True)

    def body(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c, widen), head=False)


class PaliGemma(Sizes):
    """Source: arXiv:2407.07726, section 3.1."""

    reference: ClassVar[str] = "PaliGemmaForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: SerializeAsAny[Tower]
    d_projected: Positive = hf("projection_dim", absent=2048)

    def forward(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c, project), head=True)

    def body(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c, project), head=False)


class Mistral3(Sizes):
    """Source: modeling_mistral3.py of the reference."""

    reference: ClassVar[str] = "Mistral3ForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: SerializeAsAny[Tower]
    n_views: Positive = n_views(-1)
    merge_size: Positive = hf("spatial_merge_size", absent=2)
    projector_bias: Flag = hf("multimodal_projector_bias", absent=False)

    def forward(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c, merge), head=True)

    def body(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c, merge), head=False)


def seen(c: Any, projector: Callable[[Any, Data], Data]) -> Data:
    """Pixels to vectors of the language model's width."""
    eyes = c.vision
    pixels = given("pixels", "patches", eyes.n_channels, eyes.patch_size, eyes.patch_size)
    image = block(pixels, "vision_tower.", eyes.forward, part="vision")
    return block(image, "multi_modal_projector.", lambda x: projector(c, x), part="projector")


def widen(c: Any, x: Data) -> Data:
    """What several layers of the tower saw, side by side, through two matrices."""
    x = Data("views", (x,), (x.shape[0], c.n_views * c.vision.d_model))
    h = activate(linear(x, "linear_1", "projector", c.language.d_model, bias=c.projector_bias), "gelu")
    return linear(h, "linear_2", "projector", c.language.d_model, bias=c.projector_bias)


def project(c: Any, x: Data) -> Data:
    return linear(x, "linear", "projector", c.d_projected, bias=True)


def merge(c: Any, x: Data) -> Data:
    """Squares of merge_size patches a side to one."""
    x = norm(x, "norm")
    x = Data("merge", (x,), ("image", c.merge_size * c.merge_size * c.vision.d_model))
    return widen(c, linear(x, "patch_merger.merging_layer", "projector", c.vision.d_model))
