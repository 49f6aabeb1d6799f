"""Aria: SigLIP's encoder, learned queries that attend to its patches, and a mixture of experts."""

from typing import Any

from paramcount.architectures.idefics3 import Idefics3Vision
from paramcount.architectures.llava import viewed_layers
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate, attend, block, fused, layer_norm, learned_rows, linear
from paramcount.parts.composite import FORMER_PREFIXES, Multimodal
from paramcount.sizes import ConfigJson, FieldValues, Positive, derived, setting
from paramcount.sizes.sections import Sections

IN_PROJECTION = "multi_modal_projector.cross_attn.multihead_attn."


def most_queries(js: ConfigJson, c: FieldValues) -> int:
    """Of an image with as many patches as need most."""
    numbers = js.get("projector_patch_to_query_dict") or {"4900": 256}
    if not isinstance(numbers, dict) or not all(str(n).isdigit() for both in numbers.items() for n in both):
        raise ParamcountError(
            f"= {describe_value(numbers)}",
            where="projector_patch_to_query_dict",
            expected="the number of queries for each number of patches",
        )
    return max(int(n) for n in numbers.values())


class Aria(Multimodal):
    """Source: arXiv:2410.05993, section 2.2; modeling_aria.py of the reference."""

    reference = "AriaForConditionalGeneration"
    sections = Sections(
        "aria_text", ignores_model_type=True, default_encoder="idefics3_vision", encoders=("idefics3_vision",)
    )
    reference_names = FORMER_PREFIXES

    vision: Idefics3Vision
    n_queries: Positive = derived(most_queries)

    image_token = setting("image_token_index", "image_token_id", default=9)
    views = viewed_layers(-1)

    def encode(c: Any, pixels: Data) -> Data:
        encoded: Data = c.vision.forward(pixels, (c.views, 1))
        return encoded

    def project(c: Any, x: Data, *places: Data) -> Data:
        d = c.vision.d_model
        query = learned_rows("query", "projector", c.n_queries, d)
        query = linear(layer_norm(query, "cross_attn.layer_norm", 1e-5), "cross_attn.q_proj", "projector", d)
        x = layer_norm(x, "cross_attn.layer_norm_kv", 1e-5)
        k, v = (linear(x, f"cross_attn.{name}_proj", "projector", d) for name in "kv")
        q, k, v = (c.third(y, i) for i, y in enumerate((query, k, v)))
        a = linear(attend(q, k, v, cached=()), "cross_attn.multihead_attn.out_proj", "projector", d, bias=True)
        a = layer_norm(linear(a, "cross_attn.linear", "projector", d, bias=True), "layer_norm", 1e-5)
        h = activate(linear(a, "feed_forward.linear_in", "projector", c.language.d_model), "gelu_new")
        return linear(h, "feed_forward.linear_out", "projector", c.language.d_model)

    def third(c: Any, x: Data, i: int) -> Data:
        """x times the matrix of the queries (0), the keys (1) or the values (2), which are stored as one."""
        thirds = dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), (c.vision.n_heads, c.vision.d_head))

        def read(x: Data) -> Data:
            return fused(x, "in_proj", thirds, bias=True, suffixes=("_weight", "_bias"))[i]

        return block(x, "cross_attn.multihead_attn.", read, tied_to=IN_PROJECTION if i else None)
