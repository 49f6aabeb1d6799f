"""MiniCPM-V 2.5 to 4.5: SigLIP over images of any shape, a resampler with learned queries, and a language model.

`version` selects Llama, Qwen2 or Qwen3.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.parts.resampler import Resampler, resample

MINICPM_V = {"2.5": "llama", "2.6": "qwen2", "4.0": "llama", "4.5": "qwen3"}


def vision_is_given(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not isinstance(js.get("vision_config"), Mapping):
        raise ParamcountError("is missing", where="vision_config", expected="the sizes of the vision encoder")


class MiniCPMVision(parts.SiglipVision):
    """The sizes of the vision encoder."""

    conditions = ()

    pooling_head: sizes.Flag = sizes.derived(lambda js, c: False)
    drops_last_layer: sizes.Flag = sizes.hf("/drop_vision_last_layer", absent=True)

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        n_layers = c.n_layers - 1 if c.drops_last_layer else c.n_layers
        return c.norm(c.encode(c.embed(pixels), n_layers=n_layers), "post_layernorm")


class MiniCPMV(parts.Multimodal):
    """Source: arXiv:2408.01800, section 3; modeling_minicpmv.py, modeling_navit_siglip.py and resampler.py of
    openbmb/MiniCPM-V-2_6 and openbmb/MiniCPM-V-4_5.
    """

    reference = "MiniCPMV of openbmb/MiniCPM-V-2_6"
    sections = sizes.Sections("qwen2", is_flat=True, versions=MINICPM_V)
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (vision_is_given,)

    encoder_prefix = "vpm."
    projector_prefix = "resampler."
    moved = None
    language_prefix = "llm."

    vision: MiniCPMVision
    n_queries: sizes.Positive = sizes.hf("query_num", absent=64)
    n_query_heads: sizes.Positive = sizes.derived(lambda js, c: c["language"].d_model // 128)

    image_token = ops.Unknown("image_token")

    def project(c: Any, x: Data, *places: Data) -> Data:
        """Patches to as many vectors as there are learned queries, which attend to them."""
        width, a = c.language.d_model, resample(c.resampler(), x)
        projection = ops.Weight("proj", "projector", (width, width))
        return Data("linear", (ops.norm(a, "ln_post", bias=True),), a.shape, (projection,))

    def resampler(c: Any) -> Resampler:
        return Resampler(c.n_queries, c.n_query_heads, c.language.d_model)

    def check(c) -> None:
        d_model = c.language.d_model  # type: ignore[attr-defined]
        if type(d_model) is int and d_model % 128:
            raise ParamcountError(
                f"= {d_model}", where=FieldName("language.d_model"), expected="a multiple of 128", sizes=(d_model,)
            )
