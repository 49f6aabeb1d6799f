"""GLM-4.5 and GLM-4.5-Air: DeepSeek-V3's experts behind grouped-query attention, half of each head rotated."""

from typing import Any, ClassVar

from paramcount.declare import Data, parts, sizes


def rotated_dimension(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """How much of each head is rotated: half by default.

    Rotation works on pairs unless the head has a single element.
    """
    width: int = sizes.rotary_dimension(0.5)(js, c)
    return min(width, 1) if c["d_head"] == 1 else width


class Glm4Moe(parts.AttentionBias, parts.GroupedExperts, parts.PartlyRotated):
    """Source: arXiv:2508.06471; Glm4MoeAttention and Glm4MoeTopkRouter of the reference."""

    reference = "Glm4MoeForCausalLM"
    gguf = "glm4moe"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.grouped_routing(1, 1),
        sizes.padding_in_table(None),
        sizes.not_null("n_routed_experts", "n_group", "topk_group"),
    )

    d_rope: sizes.Natural = sizes.derived(rotated_dimension)
    n_dense_layers: sizes.Natural = sizes.hf(at_most="n_layers")
    n_routed_experts: sizes.Natural = sizes.hf(
        "num_local_experts", "n_routed_experts", null=sizes.needed("num_local_experts"), late=True
    )
    n_shared_experts: sizes.Natural = sizes.hf()
    n_mtp_layers: sizes.Natural = sizes.hf("num_nextn_predict_layers", "num_mtp_layers", null=0)
    qk_norm: sizes.Flag = sizes.hf("use_qk_norm")

    rope = sizes.rotary(share=0.5)
    axes: ClassVar[Any] = None  # of the rotation, if positions have several
    kinds = parts.dense_first

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer."""
        *places, kind = reads
        x = x + c.attend(c.norm(x, "input_layernorm"), *places)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + parts.shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def attend(c, x: Data, *places: Data) -> Data:
        rotate = lambda y: parts.partial_rope(y, c.d_rope, c.rope, "halves", *places, axes=c.axes)  # noqa: E731
        return c.self_attention(x, bias=c.attention_bias, o_bias=False, prepare=c.prepare_by(rotate))

    def normalise_heads(c, q: Data, k: Data) -> tuple[Data, Data]:
        return parts.normalise_heads(c, q, k) if c.qk_norm else (q, k)

    def mtp(c, tokens: Data) -> Data:
        return parts.next_token_layers(c, tokens, lambda x: c.layer(x, "moe"))
