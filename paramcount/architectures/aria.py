"""Aria: SigLIP's encoder, learned queries that attend to its patches, and a mixture of experts."""

from typing import Any

from paramcount.architectures.idefics3 import Idefics3Vision
from paramcount.architectures.llava import viewed_layers
from paramcount.declare import Data, ops, parts, sizes

IN_PROJECTION = "multi_modal_projector.cross_attn.multihead_attn."


def most_queries(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Of an image with as many patches as need most."""
    numbers = js.get("projector_patch_to_query_dict") or {"4900": 256}
    if not isinstance(numbers, dict) or not all(str(n).isdigit() for both in numbers.items() for n in both):
        raise sizes.make_value_error(
            numbers, "projector_patch_to_query_dict", "the number of queries for each number of patches"
        )
    return max(int(n) for n in numbers.values())


class Aria(parts.FormerMultimodal):
    """Source: arXiv:2410.05993, section 2.2; modeling_aria.py of the reference."""

    reference = "AriaForConditionalGeneration"
    sections = sizes.Sections(
        "aria_text", ignores_model_type=True, default_encoder="idefics3_vision", encoders=("idefics3_vision",)
    )

    vision: Idefics3Vision
    n_queries: sizes.Positive = sizes.derived(most_queries)

    views = sizes.setting(default=viewed_layers(-1))

    def project(c: Any, x: Data, *places: Data) -> Data:
        d = c.vision.d_model
        query = ops.learned_rows("query", "projector", c.n_queries, d)
        query = ops.linear(ops.layer_norm(query, "cross_attn.layer_norm", 1e-5), "cross_attn.q_proj", "projector", d)
        x = ops.layer_norm(x, "cross_attn.layer_norm_kv", 1e-5)
        k, v = (ops.linear(x, f"cross_attn.{name}_proj", "projector", d) for name in "kv")
        q, k, v = (c.third(y, i) for i, y in enumerate((query, k, v)))
        a = ops.linear(ops.attend(q, k, v), "cross_attn.multihead_attn.out_proj", "projector", d, bias=True)
        a = ops.layer_norm(ops.linear(a, "cross_attn.linear", "projector", d, bias=True), "layer_norm", 1e-5)
        h = ops.activate(ops.linear(a, "feed_forward.linear_in", "projector", c.language.d_model), "gelu_new")
        return ops.linear(h, "feed_forward.linear_out", "projector", c.language.d_model)

    def third(c: Any, x: Data, i: int) -> Data:
        """x times the matrix of the queries (0), the keys (1) or the values (2), which are stored as one."""
        thirds = dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), (c.vision.n_heads, c.vision.d_head))

        def read(x: Data) -> Data:
            return ops.fused(x, "in_proj", thirds, bias=True, suffixes=("_weight", "_bias"))[i]

        return ops.tie_weights(ops.block(x, "cross_attn.multihead_attn.", read), IN_PROJECTION if i else None)
