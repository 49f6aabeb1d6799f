"""MiniCPM-V 2.5 to 4.5: SigLIP over images of any shape, a resampler with learned queries, and a language model.

`version` selects Llama, Qwen2 or Qwen3.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, Unknown, Weight, attend, block, fused, linear, norm
from paramcount.parts.composite import with_language
from paramcount.parts.siglip import SiglipVision
from paramcount.parts.vision import States
from paramcount.sizes import ConfigJson, FieldValues, Flag, Positive, Sizes, derived, hf
from paramcount.sizes.sections import Sections

MINICPM_V = {"2.5": "llama", "2.6": "qwen2", "4.0": "llama", "4.5": "qwen3"}


def vision_is_given(js: ConfigJson, c: FieldValues) -> None:
    if not isinstance(js.get("vision_config"), Mapping):
        raise ParamcountError("is missing", where="vision_config", expected="the sizes of the vision encoder")


class MiniCPMVision(SiglipVision):
    """The sizes of the vision encoder."""

    conditions = ()

    pooling_head: Flag = derived(lambda js, c: False)
    drops_last_layer: Flag = hf("/drop_vision_last_layer", absent=True)

    def forward(c, pixels: Data, states: States | None = None) -> Data:
        n_layers = c.n_layers - 1 if c.drops_last_layer else c.n_layers
        return c.norm(c.encode(c.embed(pixels), n_layers=n_layers), "post_layernorm")


class MiniCPMV(Sizes):
    """Source: arXiv:2408.01800, section 3; modeling_minicpmv.py, modeling_navit_siglip.py and resampler.py of
    openbmb/MiniCPM-V-2_6 and openbmb/MiniCPM-V-4_5.
    """

    reference = "MiniCPMV of openbmb/MiniCPM-V-2_6"
    sections = Sections("qwen2", is_flat=True, versions=MINICPM_V)
    conditions = (vision_is_given,)

    language: Sizes
    vision: MiniCPMVision
    n_queries: Positive = hf("query_num", absent=64)
    n_query_heads: Positive = derived(lambda js, c: c["language"].d_model // 128)

    def forward(c, tokens: Data) -> Data:
        vision = c.vision
        image = block(vision.image(), "vpm.", vision.forward, part="vision")
        image = block(image, "resampler.", lambda x: resample(c, x), part="projector")
        return with_language(c, tokens, image, head=True, token=Unknown("image_token"), prefix="llm.")

    def check(c) -> None:
        d_model = c.language.d_model  # type: ignore[attr-defined]
        if type(d_model) is int and d_model % 128:
            raise ParamcountError(
                f"= {d_model}", where=FieldName("language.d_model"), expected="a multiple of 128", sizes=(d_model,)
            )


def resample(c: Any, x: Data) -> Data:
    """Patches to as many vectors as there are learned queries, which attend to them."""
    width = c.language.d_model
    memory = norm(linear(x, "kv_proj", "projector", width), "ln_kv", bias=True)
    query = Data("query", (x,), ("image", width), (Weight("query", "projector", (c.n_queries, width)),))
    query = norm(query, "ln_q", bias=True)
    heads = (c.n_query_heads, 128)
    thirds = {"qkv.q": heads, "qkv.k": heads, "qkv.v": heads}
    q, _, _ = fused(query, "attn.in_proj_", thirds, bias=True, suffixes=("weight", "bias"))
    k, v = (Data("split", (q.inputs[0], memory), (memory.shape[0], *heads)) for _ in "kv")
    a = linear(attend(q, k, v, cached=()), "attn.out_proj", "output_projection", width, bias=True)
    projection = Weight("proj", "projector", (width, width))
    return Data("linear", (norm(a, "ln_post", bias=True),), a.shape, (projection,))
